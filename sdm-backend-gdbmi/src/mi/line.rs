//! Splits what gdb writes into lines, in whatever pieces it comes.

use super::{Record, parse_line};

/// The longest line that is kept, in bytes; of a longer one only its token is.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// One line of gdb's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line longer than [`LINE_BYTES_MAX`]: its first bytes, and how long it was.
    TooLong {
        /// What it began with, a few bytes.
        head: Vec<u8>,
        /// Its whole length in bytes.
        bytes: u64,
    },
}

/// Reassembles lines from pieces of any size.
#[derive(Debug, Default)]
pub struct LineReader {
    /// What has come and was not given out.
    buffer: Vec<u8>,
    /// `buffer[..start]` was given out already.
    start: usize,
    /// `buffer[start..scanned]` holds no line end.
    scanned: usize,
    /// Bytes of a line too long that are no longer kept; 0 where the line is not too long.
    dropped: u64,
}

impl LineReader {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line, if any.
    pub fn next_line(&mut self) -> Option<Line> {
        let found = self.buffer[self.scanned..]
            .iter()
            .position(|&byte| byte == b'\n');
        let Some(length) = found else {
            self.scanned = self.buffer.len();
            self.drop_excess();
            return None;
        };
        let end = self.scanned + length;
        let line = &self.buffer[self.start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let bytes = self.dropped + line.len() as u64;
        let line = if bytes > LINE_BYTES_MAX as u64 {
            let head = line[..line.len().min(HEAD_BYTES)].to_vec();
            Line::TooLong { head, bytes }
        } else {
            Line::Whole(line.to_vec())
        };
        self.dropped = 0;
        self.start = end + 1;
        self.scanned = self.start;
        Some(line)
    }

    /// The next complete line, read.
    pub fn next_record(&mut self) -> Option<Record> {
        Some(match self.next_line()? {
            Line::Whole(line) => parse_line(&line),
            Line::TooLong { head, bytes } => Record::too_long(&head, bytes),
        })
    }

    /// Keeps only the head of a line that has grown too long.
    fn drop_excess(&mut self) {
        let length = self.buffer.len() - self.start;
        if length > LINE_BYTES_MAX {
            let keep = self.start + HEAD_BYTES;
            self.dropped += (self.buffer.len() - keep) as u64;
            self.buffer.truncate(keep);
            self.scanned = keep;
        } else if self.dropped > 0 && length > HEAD_BYTES {
            let keep = self.start + HEAD_BYTES;
            self.dropped += (length - HEAD_BYTES) as u64;
            self.buffer.truncate(keep);
            self.scanned = keep;
        }
    }
}

/// What is kept of a line too long: enough for its token.
const HEAD_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_from_pieces() {
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
    fn a_line_too_long_keeps_its_token_and_nothing_else() {
        let mut reader = LineReader::default();
        reader.push(b"17^done,value=\"");
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..10 {
            reader.push(&piece);
            assert_eq!(reader.next_line(), None);
        }
        assert!(reader.buffer.len() <= LINE_BYTES_MAX + piece.len());
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
