//! Responses to a browser, with headers that protect the page from other pages.

use std::io::{self, Write};

use crate::RequestError;

/// The security headers of each response. Scripts and styles come only from this server, and nothing is loaded from
/// elsewhere. No other page can show the page in a frame, and no text is executed as code.
const HEADERS: &str = "\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cache-Control: no-store\r\n";

/// The status of a successful response.
pub(crate) const OK: &str = "200 OK";

/// Writes a complete response.
pub(crate) fn write(
    to: &mut impl Write,
    (status, kind): (&str, &str),
    cookie: Option<&str>,
    body: &str,
) -> io::Result<()> {
    let cookie = cookie.map_or(String::new(), |it| format!("Set-Cookie: {it}\r\n"));
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{HEADERS}{cookie}Content-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\r\n"
    );
    to.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    to.flush()
}

/// Writes the response that refuses a request, with the reason as text.
pub(crate) fn refuse(to: &mut impl Write, why: RequestError) -> io::Result<()> {
    write(to, (why.status(), "text/plain"), None, &format!("{why}\n"))
}

/// Writes the head of a response that consists of server-sent events.
pub(crate) fn begin_events(to: &mut impl Write) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{HEADERS}Content-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    );
    to.write_all(head.as_bytes())?;
    to.flush()
}
