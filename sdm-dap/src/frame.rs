//! The DAP base protocol: `Content-Length: N`, an empty line, and N bytes of JSON.

use std::fmt;

/// Maximum length of a header, in bytes, including its empty line.
pub const HEADER_BYTES_MAX: usize = 4096;
/// Maximum length of the body of a client's message, in bytes. A longer one is skipped.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// End of a header.
const HEADER_END: &[u8] = b"\r\n\r\n";

/// An item in the bytes of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framed {
    /// The body of a message, at most [`BODY_BYTES_MAX`] bytes.
    Body(Vec<u8>),
    /// Skipped bytes that are no message.
    Bad(FrameError),
}

/// The reason why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header is longer than [`HEADER_BYTES_MAX`].
    #[error("the header of the editor's message has more than {HEADER_BYTES_MAX} bytes")]
    LongHeader,
    /// The header has no length, or one that is not a number.
    #[error("the header of the editor's message has no `Content-Length: NUMBER`")]
    NoLength,
    /// The body is too long.
    #[error("the editor's message has {length} bytes: the maximum is {BODY_BYTES_MAX}")]
    LongBody {
        /// The length that the header gives, in bytes.
        length: u64,
    },
}

/// A parser that splits a stream of bytes into messages. It holds at most one header and one body.
#[derive(Default)]
pub struct Framer {
    waiting: Vec<u8>,
    /// Bytes of an oversized body that are still to be skipped.
    skipped: u64,
    /// The length of the body, once its header was read. `None` while a header is read.
    body: Option<usize>,
}

impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("waiting", &self.waiting.len())
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl Framer {
    /// Handles bytes, in pieces of any size, and passes each complete message to `each`.
    pub fn handle_bytes(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Framed)) {
        while !bytes.is_empty() {
            if self.skipped > 0 {
                let passed = bytes
                    .len()
                    .min(usize::try_from(self.skipped).unwrap_or(usize::MAX));
                self.skipped -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            // At most one message is buffered, however many bytes arrive at once.
            let room = match self.body {
                Some(length) => length - self.waiting.len(),
                None => HEADER_BYTES_MAX,
            };
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            bytes = later;
            self.waiting.extend_from_slice(now);
            while let Some(framed) = self.next() {
                each(framed);
            }
        }
    }

    fn next(&mut self) -> Option<Framed> {
        loop {
            if let Some(length) = self.body {
                if self.waiting.len() < length {
                    return None;
                }
                self.body = None;
                let later = self.waiting.split_off(length);
                return Some(Framed::Body(std::mem::replace(&mut self.waiting, later)));
            }
            let mut windows = self.waiting.windows(HEADER_END.len());
            let Some(end) = windows.position(|window| window == HEADER_END) else {
                if self.waiting.len() <= HEADER_BYTES_MAX {
                    return None;
                }
                // The last bytes could be the beginning of a header's end.
                let kept = self.waiting.len() - (HEADER_END.len() - 1);
                self.waiting.drain(..kept);
                return Some(Framed::Bad(FrameError::LongHeader));
            };
            let later = self.waiting.split_off(end + HEADER_END.len());
            let header = std::mem::replace(&mut self.waiting, later);
            match length(&header) {
                None => return Some(Framed::Bad(FrameError::NoLength)),
                Some(length) => match usize::try_from(length) {
                    Ok(length) if length <= BODY_BYTES_MAX => self.body = Some(length),
                    _ => return Some(Framed::Bad(self.skip(length))),
                },
            }
        }
    }

    /// Begins to skip a body that is too long.
    fn skip(&mut self, length: u64) -> FrameError {
        let here = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(self.waiting.len());
        self.waiting.drain(..here);
        self.skipped = length - here as u64;
        FrameError::LongBody { length }
    }
}

/// The length in a header. Names are compared without regard to case, as in HTTP.
fn length(header: &[u8]) -> Option<u64> {
    let header = std::str::from_utf8(header).ok()?;
    let mut lines = header.split("\r\n");
    lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.trim().eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().ok())?
    })
}

/// A message with its header.
#[must_use]
pub fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Framed> {
        let mut framer = Framer::default();
        let mut all = Vec::new();
        for piece in pieces {
            framer.handle_bytes(piece, &mut |framed| all.push(framed));
        }
        all
    }

    fn body(text: &str) -> Framed {
        Framed::Body(text.as_bytes().to_vec())
    }

    #[test]
    fn messages_are_parsed_at_any_chunk_size() {
        let bytes = b"Content-Length: 2\r\n\r\n{}content-LENGTH:4\r\nContent-Type: x\r\n\r\n[12]";
        let expect = [body("{}"), body("[12]")];
        assert_eq!(read(&[bytes]), expect);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), expect);
        for cut in 0..bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), expect, "{cut}");
        }
    }

    #[test]
    fn malformed_message_is_skipped() {
        let good = framed(b"{}");
        let bad = b"Content-Length: -3\r\n\r\n";
        let expect = [Framed::Bad(FrameError::NoLength), body("{}")];
        assert_eq!(read(&[bad, &good]), expect);
        let long = BODY_BYTES_MAX as u64 + 1;
        let header = format!("Content-Length: {long}\r\n\r\n");
        let piece = vec![b'x'; 1 << 20];
        let mut pieces: Vec<&[u8]> = vec![header.as_bytes()];
        pieces.extend(std::iter::repeat_n(piece.as_slice(), 16));
        pieces.extend([&b"y"[..], &good]);
        let expect = [
            Framed::Bad(FrameError::LongBody { length: long }),
            body("{}"),
        ];
        assert_eq!(read(&pieces), expect);
    }

    #[test]
    fn a_header_without_an_end_is_bounded() {
        let mut framer = Framer::default();
        let mut bad = 0;
        for _ in 0..100 {
            framer.handle_bytes(&[b'a'; 1000], &mut |framed| {
                assert_eq!(framed, Framed::Bad(FrameError::LongHeader));
                bad += 1;
            });
            assert!(framer.waiting.len() <= 2 * HEADER_BYTES_MAX);
        }
        assert!(bad > 10);
    }
}
