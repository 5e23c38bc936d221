//! Splits gdb's output into lines, at any cut.

use super::inner::InnerAnswer;
use super::{Record, parse_line};

/// Maximum length of a line, in bytes. Of a longer line only the first bytes are kept, with the token.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// One line of gdb's output, whole or only its first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its newline.
    Whole(Vec<u8>),
    /// A line longer than [`LINE_BYTES_MAX`]: its first bytes, and its length.
    TooLong {
        /// The first bytes of the line, at most `HEAD_BYTES`.
        head: Vec<u8>,
        /// Length of the line, in bytes.
        bytes: u64,
    },
}

/// Reassembles lines from pieces of any size.
#[derive(Debug, Default)]
pub struct LineReader {
    /// Bytes received, up to `end`; the rest is free space.
    buffer: Vec<u8>,
    /// `buffer[start..end]` has not been returned yet: `start <= scanned <= end <= buffer.len()`.
    start: usize,
    /// `buffer[start..scanned]` holds no newline.
    scanned: usize,
    end: usize,
    /// Number of bytes dropped so far from a line that is too long; 0 for any other line.
    dropped: u64,
    inner: InnerAnswer,
}

/// Range of a line in the buffer, without its newline, and the line's full length in bytes.
struct Found {
    line: std::ops::Range<usize>,
    bytes: u64,
}

impl Found {
    fn is_too_long(&self) -> bool {
        self.bytes > LINE_BYTES_MAX as u64
    }
}

impl LineReader {
    /// Free space for the next bytes, at least one byte. [`LineReader::take`] then consumes the bytes that were
    /// written to it.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.end == 0 && self.buffer.len() > KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
        if self.end == self.buffer.len() {
            let wanted = (2 * self.buffer.len()).clamp(ROOM_BYTES, self.end + KEPT_BYTES_MAX);
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Consumes the first `count` bytes of the free space.
    ///
    /// # Panics
    /// The free space was smaller.
    pub fn take(&mut self, count: usize) {
        assert!(
            count <= self.buffer.len() - self.end,
            "more than there was room for"
        );
        self.end += count;
    }

    /// Adds bytes of any size.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.take(now.len());
            bytes = later;
        }
    }

    /// The next complete line; `None` if there is none.
    pub fn next_line(&mut self) -> Option<Line> {
        let found = self.find_line()?;
        let bytes = found.bytes;
        Some(if found.is_too_long() {
            let head = self.head(found).to_vec();
            Line::TooLong { head, bytes }
        } else {
            Line::Whole(self.buffer[found.line].to_vec())
        })
    }

    /// Parses the next record; `None` if no further record is complete. The answer of an inner command is joined to the
    /// outer answer that follows it.
    pub fn next_record(&mut self) -> Option<Record> {
        loop {
            let found = self.find_line()?;
            let bytes = found.bytes;
            let record = if found.is_too_long() {
                Record::too_long(self.head(found), bytes)
            } else {
                parse_line(&self.buffer[found.line])
            };
            if let Some(record) = self.inner.join(record) {
                return Some(record);
            }
        }
    }

    fn head(&self, found: Found) -> &[u8] {
        let line = &self.buffer[found.line];
        &line[..line.len().min(HEAD_BYTES)]
    }

    fn find_line(&mut self) -> Option<Found> {
        let unseen = &self.buffer[self.scanned..self.end];
        let Some(length) = unseen.iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.end;
            self.drop_excess();
            return None;
        };
        let (start, end) = (self.start, self.scanned + length);
        let line = &self.buffer[start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let found = Found {
            line: start..start + line.len(),
            bytes: self.dropped + line.len() as u64,
        };
        self.dropped = 0;
        self.start = end + 1;
        self.scanned = self.start;
        Some(found)
    }

    /// Drops all but the first `HEAD_BYTES` of a line that has become too long and is not complete yet.
    fn drop_excess(&mut self) {
        let length = self.end - self.start;
        if length > LINE_BYTES_MAX || (self.dropped > 0 && length > HEAD_BYTES) {
            let keep = self.start + HEAD_BYTES;
            self.dropped += (self.end - keep) as u64;
            self.end = keep;
            self.scanned = keep;
        }
    }
}

/// Number of bytes kept of a line that is too long: enough for its token.
const HEAD_BYTES: usize = 64;
/// Initial size of the buffer, in bytes. A full buffer doubles, but grows by at most [`KEPT_BYTES_MAX`] at once.
const ROOM_BYTES: usize = 4 << 10;
/// Maximum size of a buffer that is kept while it holds no bytes, and maximum growth of the buffer at once, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_assembled_from_pieces() {
        let mut reader = LineReader::default();
        reader.push(b"one\ntw");
        assert_eq!(reader.next_line(), Some(Line::Whole(b"one".to_vec())));
        assert_eq!(reader.next_line(), None);
        reader.push(b"o\r\n\n");
        assert_eq!(reader.next_line(), Some(Line::Whole(b"two".to_vec())));
        assert_eq!(reader.next_line(), Some(Line::Whole(Vec::new())));
        assert_eq!(reader.next_line(), None);
    }

    #[test]
    fn overlong_line_keeps_only_its_token() {
        let mut reader = LineReader::default();
        reader.push(b"17^done,value=\"");
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..10 {
            reader.push(&piece);
            assert_eq!(reader.next_line(), None);
        }
        assert!(reader.buffer.len() <= LINE_BYTES_MAX + KEPT_BYTES_MAX);
        reader.push(b"\"\n18^done\n");
        let bytes = 15 + (10 << 20) + 1;
        assert_eq!(
            reader.next_record(),
            Some(Record::TooLong {
                token: Some(17),
                bytes
            })
        );
        assert!(matches!(
            reader.next_record(),
            Some(Record::Result {
                token: Some(18),
                ..
            })
        ));
    }
}
