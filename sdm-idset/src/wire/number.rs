//! Reading and writing the numbers of the wire form.

use super::{DecodeError, SET_BYTES_MAX};
use crate::ID_MAX;

/// The most bytes that a number takes: 35 bits, which a zigzag of two `u32` needs.
const NUMBER_BYTES_MAX: u32 = 5;

/// `id - base` as a number that is small where the two are near.
pub(super) fn zigzag(base: u32, id: u32) -> u64 {
    let distance = u64::from(id.abs_diff(base));
    if id >= base {
        2 * distance
    } else {
        2 * distance - 1
    }
}

/// The id that `zigzag` made a number of; none where it is below 0.
pub(super) fn unzigzag(base: u32, number: u64) -> Option<u64> {
    let base = u64::from(base);
    if number & 1 == 0 {
        base.checked_add(number >> 1)
    } else {
        base.checked_sub((number >> 1) + 1)
    }
}

/// How many bytes `write_number` appends.
pub(super) fn number_len(number: u64) -> u64 {
    let bits = u64::BITS - (number | 1).leading_zeros();
    u64::from(bits.div_ceil(7))
}

/// Appends `number`, 7 bits in a byte, the lowest first.
pub(super) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("7 bits");
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Reads a form from its front; knows where it stands.
pub(super) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    /// Where the thing read last began.
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

    /// An error at the thing read last.
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
            "expected at most 2097168 bytes"
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

    /// A length, and so many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.number()?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > SET_BYTES_MAX {
            return Err(self.error_before("expected at most 2097168 bytes"));
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

    /// Checks that an id, made from the number read last, is one.
    pub(super) fn id(&self, id: u64) -> Result<u32, DecodeError> {
        u32::try_from(id)
            .ok()
            .filter(|id| *id <= ID_MAX)
            .ok_or_else(|| self.error_before("expected ids of at most 16777215"))
    }
}
