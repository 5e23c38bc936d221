//! Requests of a browser, read within bounds.

use std::io::{self, Read};

use crate::RequestError;

/// The most bytes of a request before its body.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The most bytes of a body: a line of the console.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 10;
/// The most headers of a request.
const HEADERS_MAX: usize = 64;
/// The most bytes that are read at once.
const READ_BYTES: usize = 4 << 10;

/// One request, as far as the page has a use for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET`, `POST`.
    pub(crate) method: String,
    /// The path in the address, without a query.
    pub(crate) path: String,
    /// The name in the address, with its port.
    pub(crate) host: String,
    /// The page that has sent it, where the browser says so.
    pub(crate) origin: Option<String>,
    /// The relation of that page to this server, where the browser says so: `same-origin`, `none`.
    pub(crate) site: Option<String>,
    /// All cookies.
    pub(crate) cookies: String,
    /// The last event that a page had before its connection went.
    pub(crate) last_event: Option<u64>,
    /// No other request follows.
    pub(crate) is_last: bool,
    /// The bytes behind the head.
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

    /// The next one; absent at the end of the connection.
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

/// The request at the beginning of these bytes, and how many of them it takes; absent where more are needed.
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

/// Whatever the bytes are, what is read of them is bounded and the same however they come.
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
