//! Splits bytes into lines, wherever the bytes are cut.

/// Maximum length of a line that is kept whole, in bytes. A longer one is split into pieces of this size.
pub(crate) const LINE_BYTES_MAX: usize = 4096;

/// Reassembles lines from the pieces that are read from a pipe.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The incomplete last line, at most `LINE_BYTES_MAX` bytes.
    rest: Vec<u8>,
}

impl Lines {
    /// Adds `bytes`, and passes each complete line without its line end to `line`.
    pub(crate) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(String)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (piece, ended) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.extend(piece, &mut line);
            if ended {
                line(text(&self.rest));
                self.rest.clear();
            }
        }
    }

    /// Passes the incomplete last line to `line`, if there is one.
    pub(crate) fn finish(&mut self, mut line: impl FnMut(String)) {
        if !self.rest.is_empty() {
            line(text(&self.rest));
            self.rest = Vec::new();
        }
    }

    fn extend(&mut self, mut piece: &[u8], line: &mut impl FnMut(String)) {
        while self.rest.len() + piece.len() > LINE_BYTES_MAX {
            let (fits, more) = piece.split_at(LINE_BYTES_MAX - self.rest.len());
            self.rest.extend_from_slice(fits);
            line(text(&self.rest));
            self.rest.clear();
            piece = more;
        }
        self.rest.extend_from_slice(piece);
    }
}

fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut all = Vec::new();
        let mut lines = Lines::default();
        for piece in pieces {
            lines.push(piece, |line| all.push(line));
        }
        lines.finish(|line| all.push(line));
        all
    }

    #[test]
    fn lines_are_split_at_newlines_in_any_chunks() {
        let check = |input: &[&[u8]], expect: &[&str]| assert_eq!(lines(input), expect);
        check(&[], &[]);
        check(&[b"a\nb\n"], &["a", "b"]);
        check(&[b"a\r\nb\r\n"], &["a", "b"]);
        check(&[b"a", b"b\n", b"\n", b"c"], &["ab", "", "c"]);
        check(&[b"\xff\n"], &["\u{fffd}"]);
    }

    #[test]
    fn long_line_is_split_into_pieces() {
        let long = vec![b'x'; 2 * LINE_BYTES_MAX + 1];
        let sizes: Vec<usize> = lines(&[&long]).iter().map(String::len).collect();
        assert_eq!(sizes, [LINE_BYTES_MAX, LINE_BYTES_MAX, 1]);
    }

    proptest! {
        #[test]
        fn lines_are_equal_at_any_chunk_size(text in "[a-z\n]{0,64}", cut in 0usize..64) {
            let cut = cut.min(text.len());
            let (a, b) = text.as_bytes().split_at(cut);
            let expect: Vec<&str> = text.lines().collect();
            prop_assert_eq!(lines(&[a, b]), expect);
        }
    }
}
