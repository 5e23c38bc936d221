//! Parsing of HTTP requests of a browser, with bounded memory.

use std::io::{self, Read};

use crate::RequestError;

/// Maximum size of the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum size of the body of a request, in bytes. The body is a line of the console.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 10;
/// The most headers of a request.
const HEADERS_MAX: usize = 64;
/// The most bytes that are read at once.
const READ_BYTES: usize = 4 << 10;

/// The parts of an HTTP request that the site uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The HTTP method: `GET`, `POST`.
    pub(crate) method: String,
    /// The path in the address, without a query.
    pub(crate) path: String,
    /// The `Host` header: the host in the address, with its port.
    pub(crate) host: String,
    /// The `Origin` header: scheme, host and port of the page that has sent the request. None if the browser sends no
    /// such header.
    pub(crate) origin: Option<String>,
    /// The `Sec-Fetch-Site` header: the relation of the page that has sent the request to this server, such as
    /// `same-origin` or `none`. None if the browser sends no such header.
    pub(crate) site: Option<String>,
    /// The values of all `Cookie` headers, each followed by a semicolon.
    pub(crate) cookies: String,
    /// The `Last-Event-ID` header: the number of the last event that the page had received before its connection was
    /// lost. None if it is missing or not a number.
    pub(crate) last_event: Option<u64>,
    /// True if the client asks to close the connection after this request.
    pub(crate) is_last: bool,
    /// The body of the request.
    pub(crate) body: Vec<u8>,
}

/// Reads one request after another.
pub(crate) struct Requests<R> {
    from: R,
    read: Vec<u8>,
}

impl<R: Read> Requests<R> {
    pub(crate) fn new(from: R) -> Self {
        let read = Vec::new();
        Self { from, read }
    }

    /// Reads the next request. None at the end of the connection.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<Request, RequestError>>> {
        loop {
            match parse(&self.read) {
                Ok(None) => {}
                Ok(Some((request, used))) => {
                    self.read.drain(..used);
                    return Ok(Some(Ok(request)));
                }
                Err(error) => return Ok(Some(Err(error))),
            }
            let mut bytes = [0; READ_BYTES];
            match self.from.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Parses the request at the beginning of these bytes. Returns also its length in bytes. None if more bytes are needed.
fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, RequestError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) if head <= HEAD_BYTES_MAX => head,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooLong),
        Err(_) => return Err(RequestError::Malformed),
    };
    if parsed.version != Some(1) {
        return Err(RequestError::Malformed);
    }
    let target = parsed.path.unwrap_or_default();
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    let mut length = None;
    let mut host = None;
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| RequestError::Malformed)?;
        let value = value.trim();
        let once = |known: &mut Option<String>| match known.replace(value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(RequestError::Malformed),
        };
        match header.name.to_ascii_lowercase().as_str() {
            "host" => once(&mut host)?,
            "origin" => once(&mut request.origin)?,
            "sec-fetch-site" => once(&mut request.site)?,
            "content-length" => once(&mut length)?,
            "connection" => request.is_last |= value.eq_ignore_ascii_case("close"),
            "last-event-id" => request.last_event = value.parse().ok(),
            // The length of such a body is told in another way.
            "transfer-encoding" => return Err(RequestError::Malformed),
            "cookie" => {
                request.cookies.push_str(value);
                request.cookies.push(';');
            }
            _ => {}
        }
    }
    request.host = host.ok_or(RequestError::Malformed)?;
    let length = body_bytes(length.as_deref())?;
    let Some(body) = bytes.get(head..head + length) else {
        return Ok(None);
    };
    request.body = body.to_vec();
    Ok(Some((request, head + length)))
}

fn body_bytes(length: Option<&str>) -> Result<usize, RequestError> {
    let Some(text) = length else { return Ok(0) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(RequestError::Malformed);
    }
    let bytes: usize = text.parse().map_err(|_| RequestError::TooLong)?;
    match bytes <= BODY_BYTES_MAX {
        true => Ok(bytes),
        false => Err(RequestError::TooLong),
    }
}

/// Checks for arbitrary bytes that a parsed request is of bounded size, and does not depend on where reads split the
/// bytes.
pub(crate) fn fuzz(bytes: &[u8]) {
    let whole = Requests::new(bytes).next().expect("a slice can be read");
    if let Some(Ok(request)) = &whole {
        assert!(request.body.len() <= BODY_BYTES_MAX && request.path.len() <= HEAD_BYTES_MAX);
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let parts = Requests::new(first.chain(second)).next();
    let parts = parts.expect("slices can be read");
    // Where it is cut does not matter to what is well formed.
    if let Some(Ok(_)) = whole {
        assert_eq!(whole, parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Result<Request, RequestError>> {
        Requests::new(text.as_bytes()).next().unwrap()
    }

    #[test]
    fn a_request_is_read_whole_or_refused() {
        let post = "POST /line?x HTTP/1.1\r\nHost: a:1\r\nOrigin: http://a:1\r\nCookie: b=c\r\n\
                    Content-Length: 2\r\n\r\nbtGET";
        let request = read(post).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.path), ("POST", "/line"));
        assert_eq!((&*request.host, &*request.cookies), ("a:1", "b=c;"));
        assert_eq!(request.body, b"bt");
        assert_eq!(read("GET / HTTP/1.1\r\nHost: a"), None);
        let long = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(HEAD_BYTES_MAX));
        let crowd = "A: b\r\n".repeat(HEADERS_MAX + 1);
        for (text, expect) in [
            ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", RequestError::Malformed),
            ("GET / HTTP/1.1\r\n\r\n", RequestError::Malformed),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                RequestError::Malformed,
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nOrigin: b\r\nOrigin: c\r\n\r\n",
                RequestError::Malformed,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                RequestError::Malformed,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nbt",
                RequestError::Malformed,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                RequestError::TooLong,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16385\r\n\r\n",
                RequestError::TooLong,
            ),
            ("\u{1}\r\n\r\n", RequestError::Malformed),
            (&long, RequestError::TooLong),
            (
                &format!("GET / HTTP/1.1\r\n{crowd}\r\n"),
                RequestError::TooLong,
            ),
        ] {
            assert_eq!(read(text), Some(Err(expect)), "{text:.80}");
        }
    }

    #[test]
    fn request_parser_never_panics_or_exceeds_its_bounds() {
        let good = b"POST /line HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nbt";
        for at in 0..good.len() {
            for byte in [0, b'\n', b' ', b':', 0xff] {
                let mut bytes = good.to_vec();
                bytes[at] = byte;
                fuzz(&bytes);
                fuzz(&bytes[..at]);
            }
        }
    }
}
