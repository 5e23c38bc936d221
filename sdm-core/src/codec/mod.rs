//! Encoding of values: LEB128 varints, length-prefixed bytes, and enum tags to which new ones are only appended.
//!
//! [`Writer`] appends to a buffer; [`Reader`] takes values off its front. A reader checks a length before
//! it allocates for it, and accepts only one encoding of each number. Payloads that it returns share the
//! received buffer.

mod exchange;
mod message;
mod plan;

use bytes::Bytes;
use sdm_idset::{IdSet, SET_BYTES_MAX, write_number};

use crate::limits::SETS_BYTES_MAX;

pub(crate) use message::{BorrowedCommand, encode_answer, peek_command};
pub use message::{decode_message, encode_message};
pub use plan::{decode_slice, encode_slice};

/// Fault of received bytes that cannot be decoded. The peer that sent them is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("received data end within {what}, which begins at byte {offset}")]
    MissingData {
        /// Name of the part of the value.
        what: &'static str,
        /// Offset at which the value begins, in bytes.
        offset: usize,
    },
    /// The value ends before the bytes do.
    #[error("received data go on after the end of {what} at byte {offset}")]
    TrailingData {
        /// Name of the value that ended, such as `message`.
        what: &'static str,
        /// Offset at which the value ended, in bytes.
        offset: usize,
    },
    /// A length or a count is above its bound.
    #[error("received {what} at byte {offset} exceeds the maximum of {max}")]
    TooLarge {
        /// Name of the part of the value.
        what: &'static str,
        /// Offset at which the value begins, in bytes.
        offset: usize,
        /// The largest that is allowed, in bytes or elements.
        max: u64,
    },
    /// A tag or a number that has no meaning.
    #[error("received {what} at byte {offset} is invalid")]
    Unexpected {
        /// Name of the part of the value.
        what: &'static str,
        /// Offset at which the value begins, in bytes.
        offset: usize,
    },
}

/// A value that is above a bound of the wire, and so cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot send {what}: it exceeds the maximum of {max}")]
pub struct EncodeError {
    /// Name of the part of the value.
    pub what: &'static str,
    /// The largest that is allowed, in bytes or elements.
    pub max: u64,
}

/// Appends values to a buffer.
///
/// Values above their bound are remembered and reported once, by [`Writer::finish`].
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    overflow: Option<EncodeError>,
}

impl<'a> Writer<'a> {
    /// Writes after the present contents of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            overflow: None,
        }
    }

    /// Ends the writing.
    ///
    /// # Errors
    /// The first value that exceeded its bound; the written bytes are useless then.
    pub fn finish(self) -> Result<(), EncodeError> {
        self.overflow.map_or(Ok(()), Err)
    }

    /// Records that `what` is too large if `len` is above `max`. Returns true if `len` is within the bound.
    pub fn check(&mut self, what: &'static str, len: usize, max: usize) -> bool {
        if len > max {
            self.overflow.get_or_insert(EncodeError {
                what,
                max: max as u64,
            });
        }
        len <= max
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Writes a number as a varint: seven bits in a byte, the lowest bits first.
    pub fn u64(&mut self, value: u64) {
        write_number(value, |byte| self.out.push(byte));
    }

    /// Writes a number as [`Writer::u64`] does.
    pub fn u32(&mut self, value: u32) {
        self.u64(value.into());
    }

    /// Writes the number of elements that follow, at most `max`.
    pub fn count(&mut self, what: &'static str, count: usize, max: usize) {
        self.check(what, count, max);
        self.u64(count as u64);
    }

    /// Writes a length, at most `max`, and that number of bytes.
    pub fn bytes(&mut self, what: &'static str, bytes: &[u8], max: usize) {
        if self.check(what, bytes.len(), max) {
            self.u64(bytes.len() as u64);
            self.out.extend_from_slice(bytes);
        }
    }

    /// Writes a text of at most `max` bytes, after its length.
    pub fn text(&mut self, what: &'static str, text: &str, max: usize) {
        self.bytes(what, text.as_bytes(), max);
    }

    /// Writes a text for the user. A text that is too long is truncated, as no decision depends on it.
    pub fn truncated_text(&mut self, text: &str, max: usize) {
        let mut len = text.len().min(max);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.text("text", &text[..len], max);
    }

    /// Writes a set: its first id (0 for the empty set), then the set encoded relative to that id.
    pub fn set(&mut self, set: &IdSet) {
        let base = set.first().map_or(0, |id| id.0);
        self.u32(base);
        let start = self.out.len();
        set.encode(base, self.out);
        self.check("set", self.out.len() - start, SET_BYTES_MAX);
    }
}

/// Decodes values from the front of a buffer.
pub struct Reader<'a> {
    buf: &'a [u8],
    /// The buffer that contains `buf`, which returned payloads share; `None` if they are copied.
    owner: Option<&'a Bytes>,
    /// Position of the next byte to read, at most `buf.len()`.
    at: usize,
    /// Bytes of memory that the sets still to be decoded may own.
    sets_bytes_left: u64,
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    #[must_use]
    pub fn new(buf: &'a Bytes) -> Self {
        Self {
            owner: Some(buf),
            ..Self::over(buf)
        }
    }

    /// A reader of borrowed bytes: [`Reader::bytes`] returns copies.
    #[must_use]
    pub fn over(buf: &'a [u8]) -> Self {
        Self {
            buf,
            owner: None,
            at: 0,
            sets_bytes_left: SETS_BYTES_MAX,
        }
    }

    /// Checks that all bytes of the value `what` have been read.
    ///
    /// # Errors
    /// Bytes are left over.
    pub fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.at < self.buf.len() {
            let offset = self.at;
            return Err(DecodeError::TrailingData { what, offset });
        }
        Ok(())
    }

    /// Number of bytes read so far.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// No byte is left.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        let byte = *self.buf.get(self.at).ok_or(self.missing(what))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a number in its shortest encoding.
    ///
    /// # Errors
    /// A number that is cut off, above 64 bits, or spelt longer than need be.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let start = self.at;
        let bad = DecodeError::Unexpected {
            what,
            offset: start,
        };
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.buf.get(self.at).ok_or(DecodeError::MissingData {
                what,
                offset: start,
            })?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return Err(bad);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 {
                    Err(bad)
                } else {
                    Ok(value)
                };
            }
        }
        Err(bad)
    }

    /// Reads a number of at most 32 bits.
    ///
    /// # Errors
    /// As [`Reader::u64`], and a number above 32 bits.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        let offset = self.at;
        let value = self.u64(what)?;
        u32::try_from(value).map_err(|_| DecodeError::Unexpected { what, offset })
    }

    /// Reads a number of at most 16 bits.
    ///
    /// # Errors
    /// As [`Reader::u64`], and a number above 16 bits.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        let offset = self.at;
        let value = self.u64(what)?;
        u16::try_from(value).map_err(|_| DecodeError::Unexpected { what, offset })
    }

    /// Reads a truth value: one byte, 0 or 1.
    ///
    /// # Errors
    /// No byte is left, or the byte is neither 0 nor 1.
    pub fn bool(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        let offset = self.at;
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Unexpected { what, offset }),
        }
    }

    /// Reads the number of elements that follow, each of at least one byte. At most `max`, and at most the
    /// number of bytes left.
    ///
    /// # Errors
    /// The count is above one of these bounds.
    pub fn count(&mut self, what: &'static str, max: usize) -> Result<usize, DecodeError> {
        let offset = self.at;
        let count = self.u64(what)?;
        if count > max as u64 {
            let max = max as u64;
            return Err(DecodeError::TooLarge { what, offset, max });
        }
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= self.buf.len() - self.at)
            .ok_or(DecodeError::MissingData { what, offset })
    }

    /// Reads a length, at most `max`, and returns that number of bytes.
    ///
    /// # Errors
    /// A length above `max`, or bytes that are cut off.
    pub fn slice(&mut self, what: &'static str, max: usize) -> Result<&'a [u8], DecodeError> {
        let len = self.count(what, max)?;
        let start = self.at;
        self.at += len;
        Ok(&self.buf[start..self.at])
    }

    /// Reads bytes as [`Reader::slice`] does. They share the buffer; a reader made by [`Reader::over`] copies them.
    ///
    /// # Errors
    /// As [`Reader::slice`].
    pub fn bytes(&mut self, what: &'static str, max: usize) -> Result<Bytes, DecodeError> {
        let slice = self.slice(what, max)?;
        Ok(self.owned(slice))
    }

    /// A part of the buffer as [`Bytes`]: it shares the memory of `owner`, or is a copy if there is no owner.
    fn owned(&self, slice: &'a [u8]) -> Bytes {
        match self.owner {
            Some(owner) => owner.slice_ref(slice),
            None => Bytes::copy_from_slice(slice),
        }
    }

    /// Reads a text of at most `max` bytes.
    ///
    /// # Errors
    /// As [`Reader::slice`], and for bytes that are not UTF-8.
    pub fn text(&mut self, what: &'static str, max: usize) -> Result<&'a str, DecodeError> {
        let offset = self.at;
        std::str::from_utf8(self.slice(what, max)?)
            .map_err(|_| DecodeError::Unexpected { what, offset })
    }

    /// Reads a set.
    ///
    /// # Errors
    /// As [`Reader::set_from`].
    pub fn set(&mut self, what: &'static str) -> Result<IdSet, DecodeError> {
        let offset = self.at;
        let base = self.u32(what)?;
        self.decode_set(base, what, offset)
    }

    /// Reads a set that is encoded relative to `base`.
    ///
    /// # Errors
    /// The bytes do not form a set, the set exceeds its bounds, or the sets of this buffer together exceed
    /// [`SETS_BYTES_MAX`].
    pub fn set_from(&mut self, base: u32, what: &'static str) -> Result<IdSet, DecodeError> {
        self.decode_set(base, what, self.at)
    }

    /// Decodes a set that is encoded relative to `base`. The set is part of a value that begins at `offset`.
    fn decode_set(
        &mut self,
        base: u32,
        what: &'static str,
        offset: usize,
    ) -> Result<IdSet, DecodeError> {
        let (set, used) =
            IdSet::decode(base, &self.buf[self.at..]).map_err(|e| DecodeError::Unexpected {
                what: e.what,
                offset: self.at + e.offset,
            })?;
        self.at += used;
        self.charge(&set, what, offset)?;
        Ok(set)
    }

    /// Copies a set to which the received bytes refer without encoding it again. It counts towards the memory bound
    /// as an encoded set does.
    ///
    /// # Errors
    /// A set with which the sets of this buffer own more than [`SETS_BYTES_MAX`].
    pub fn copied_set(&mut self, set: &IdSet, what: &'static str) -> Result<IdSet, DecodeError> {
        self.charge(set, what, self.at)?;
        Ok(set.clone())
    }

    /// Subtracts the memory of a set from the memory that the sets of this buffer may still own. `offset` is the start
    /// of the value that contains the set.
    fn charge(
        &mut self,
        set: &IdSet,
        what: &'static str,
        offset: usize,
    ) -> Result<(), DecodeError> {
        let max = SETS_BYTES_MAX;
        let left = self.sets_bytes_left.checked_sub(set.memory_bytes());
        self.sets_bytes_left = left.ok_or(DecodeError::TooLarge { what, offset, max })?;
        Ok(())
    }

    fn missing(&self, what: &'static str) -> DecodeError {
        let offset = self.at;
        DecodeError::MissingData { what, offset }
    }
}

fn unexpected(what: &'static str, offset: usize) -> DecodeError {
    DecodeError::Unexpected { what, offset }
}

/// A list of at most `max` elements, each read by `read`.
fn read_list<T>(
    r: &mut Reader<'_>,
    what: &'static str,
    max: usize,
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = r.count(what, max)?;
    // An element takes more memory than bytes on the wire, so the list grows only with elements that are really
    // there.
    let mut list = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        list.push(read(r)?);
    }
    Ok(list)
}

#[cfg(test)]
mod tests;
