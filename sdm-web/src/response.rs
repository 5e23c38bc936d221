//! Responses to a browser, each with what keeps other pages out.

use std::io::{self, Write};

use crate::RequestError;

/// No code but this server's files, nothing from elsewhere, in nobody's frame, and no text that becomes code.
const HEADERS: &str = "\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cache-Control: no-store\r\n";

/// The status of what went well.
pub(crate) const OK: &str = "200 OK";

/// A whole response.
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

/// Says why a request is refused.
pub(crate) fn refuse(to: &mut impl Write, why: RequestError) -> io::Result<()> {
    write(to, (why.status(), "text/plain"), None, &format!("{why}\n"))
}

/// The beginning of a response of events.
pub(crate) fn begin_events(to: &mut impl Write) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{HEADERS}Content-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    );
    to.write_all(head.as_bytes())?;
    to.flush()
}
