//! A reader of the wire form, with checks of each item and the position of an error.

use super::number::NUMBER_BYTES_MAX;
use super::portable::{self, BYTES_MAX as SET_BYTES_MAX};
use crate::ID_MAX;

/// The error for a form that is longer than [`SET_BYTES_MAX`].
const LONG: &str = "expected at most 2099748 bytes";

/// An error in the wire form of a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("encoded set of tasks: {what} at byte {offset}")]
pub struct DecodeError {
    /// The fault of the bytes.
    pub what: &'static str,
    /// Position of the error in the input, in bytes.
    pub offset: usize,
}

/// A reader of the wire form, with its position.
pub(super) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    /// Offset at which the item that was read last begins.
    before: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input: &input[..input.len().min(SET_BYTES_MAX)],
            at: 0,
            before: 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.input.len() - self.at
    }

    /// An error at the item that was read last.
    pub(super) fn error_before(&self, what: &'static str) -> DecodeError {
        DecodeError {
            what,
            offset: self.before,
        }
    }

    fn cut(&self) -> DecodeError {
        let what = if self.input.len() < SET_BYTES_MAX {
            "cut short"
        } else {
            LONG
        };
        DecodeError {
            what,
            offset: self.input.len(),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.before = self.at;
        let byte = *self.input.get(self.at).ok_or_else(|| self.cut())?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, DecodeError> {
        let start = self.at;
        let mut number = 0;
        for index in 0..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.before = start;
                return Ok(number);
            }
        }
        self.before = start;
        Err(self.error_before("expected a number of at most 5 bytes"))
    }

    /// Reads a length and that number of bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.number()?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > SET_BYTES_MAX {
            return Err(self.error_before(LONG));
        }
        let input = self.input;
        let bytes = input
            .get(self.at..)
            .and_then(|rest| rest.get(..len))
            .ok_or_else(|| self.cut())?;
        self.before = self.at;
        self.at += len;
        Ok(bytes)
    }

    /// Reads a bitmap whose first byte is the byte that was read last.
    pub(super) fn bitmap(&mut self) -> Result<&'a [u8], DecodeError> {
        let input = &self.input[self.before..];
        let len = portable::check(input).map_err(|what| self.error_before(what))?;
        self.at = self.before + len;
        Ok(&input[..len])
    }

    /// Checks that the id, computed from the number read last, is valid.
    pub(super) fn id(&self, id: u64) -> Result<u32, DecodeError> {
        u32::try_from(id)
            .ok()
            .filter(|id| *id <= ID_MAX)
            .ok_or_else(|| self.error_before("expected ids of at most 16777215"))
    }
}
