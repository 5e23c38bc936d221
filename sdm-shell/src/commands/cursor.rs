//! A read position in a command line.

use super::CommandError;

/// A command line with the position of its unread rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of a line.
    pub(super) fn new(line: &'a str) -> Self {
        let mut cursor = Self { line, at: 0 };
        cursor.skip_blanks();
        cursor
    }

    /// Returns the unread rest, without blanks at its end.
    pub(super) fn rest(&self) -> &'a str {
        self.line[self.at..].trim_end()
    }

    /// Offset of the unread rest, in bytes from the line's start.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// True at the end of the line.
    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Skips some bytes and the blanks after them.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.line.len());
        self.skip_blanks();
    }

    /// Takes the text up to the next blank.
    pub(super) fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.skip(end);
        &rest[..end]
    }

    /// Takes the rest of the line.
    pub(super) fn take_rest(&mut self) -> &'a str {
        let rest = self.rest();
        self.skip(rest.len());
        rest
    }

    /// Takes `word` if it is next and ends at a blank or at the end of the line. Returns false if it is not next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let found = ahead.word() == word;
        if found {
            *self = ahead;
        }
        found
    }

    /// An error at this position.
    pub(super) fn error(&self, message: impl Into<String>) -> CommandError {
        CommandError::at(self.at, message)
    }

    /// Fails unless the whole line was read.
    pub(super) fn finish(&self, command: &str) -> Result<(), CommandError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.error(format!("{command}: unexpected argument: `{}`", self.rest())))
    }

    fn skip_blanks(&mut self) {
        let rest = &self.line[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }
}
