//! The wire form: a tag byte and the smallest of several codings.
//!
//! ```text
//! byte 0   rest
//! 0        nothing                       the empty set
//! 1        n                             the ids base .. base + n, n >= 1
//! 2        pieces, then for each piece   pieces of evenly spaced ids, rising, none overlapping another
//!            gap                         ids left out since the last id of the piece before; for the first one see below
//!            (count - 1) * 2 + stepped   count ids; stepped is 0 or 1
//!            [ step ]                    only where stepped: how far the ids are apart, >= 1
//! 3        first, bytes, then the bits   bit b (least significant first) of byte i stands for the id first + 8 i + b; written
//!                                        with a first that is a multiple of 8, read with any
//! 4        bytes, then the bitmap        the portable Roaring format, absolute ids
//!
//! Numbers are LEB128, 7 bits in a byte, the lowest first, at most 5 bytes. The gap of the first piece in coding 2 and the first
//! id in coding 3 are relative to base and may be below it: they stand as zigzag (2 d, or -2 d - 1 where d < 0).
//! ```
//!
//! The end is where the coding says; what follows belongs to the caller. Equal sets may have different forms: a
//! form is never compared or hashed. Every set of ids up to [`ID_MAX`] fits into [`SET_BYTES_MAX`].

mod number;
mod portable;

use roaring::RoaringBitmap;

use crate::dense;
use crate::{ID_MAX, IdSet, Stride, TaskId};
use number::{Reader, number_len, unzigzag, write_number, zigzag};

/// The longest wire form of a set that is taken, in bytes: all ids as bits, and the head.
pub const SET_BYTES_MAX: usize = (ID_MAX as usize + 1) / 8 + 16;

/// A list of pieces this short is taken without trying the bitmaps.
const PIECES_BYTES_SMALL: u64 = 32;

const EMPTY: u8 = 0;
const BELOW: u8 = 1;
const PIECES: u8 = 2;
const DENSE: u8 = 3;
const PORTABLE: u8 = 4;

/// Why bytes are no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("set: {what} at byte {offset}")]
pub struct DecodeError {
    /// What is wrong with the bytes.
    pub what: &'static str,
    /// The position of it in the given bytes.
    pub offset: usize,
}

impl IdSet {
    /// Appends the wire form, coded relative to `base` (the link's first id).
    ///
    /// A set with ids above [`ID_MAX`] is written too, but no decoder takes it.
    pub fn encode(&self, base: u32, out: &mut Vec<u8>) {
        let (Some(TaskId(first)), Some(TaskId(last))) = (self.first(), self.last()) else {
            return out.push(EMPTY);
        };
        let span = u64::from(last - first) + 1;
        if first == base && self.len() == span {
            out.push(BELOW);
            return write_number(span, out);
        }
        let bytes = dense::byte_count(first, last);
        let head = 1 + number_len(zigzag(base, dense::origin(first))) + number_len(bytes);
        let start = out.len();
        // The smallest form so far; pieces are written to see how long they get.
        let mut best = head + bytes;
        let in_pieces = self.encode_pieces(base, best, out);
        if in_pieces {
            best = (out.len() - start) as u64;
            if best <= PIECES_BYTES_SMALL {
                return;
            }
        }
        let mut bits = self.bits().into_owned();
        bits.optimize();
        let body = bits.serialized_size() as u64;
        if 1 + number_len(body) + body < best {
            out.truncate(start);
            encode_portable(&bits, out);
        } else if !in_pieces {
            self.encode_dense(base, dense::origin(first), bytes, out);
        }
    }

    /// How many bytes [`IdSet::encode`] appends (`sdm_set_serialized_length`, but exact).
    #[must_use]
    pub fn encoded_len(&self, base: u32) -> u64 {
        let mut out = Vec::new();
        self.encode(base, &mut out);
        out.len() as u64
    }

    /// Appends the coding in pieces where it takes at most `len_max` bytes; otherwise false, and nothing.
    fn encode_pieces(&self, base: u32, len_max: u64, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.push(PIECES);
        let mut count = 0;
        let mut before = None;
        for piece in self.strides() {
            let (gap, shape) = piece_numbers(base, before, piece);
            write_number(gap, out);
            write_number(shape, out);
            if piece.step() > 1 {
                write_number(u64::from(piece.step()), out);
            }
            before = Some(piece.last().0);
            count += 1;
            if (out.len() - start) as u64 + number_len(count) > len_max {
                out.truncate(start);
                return false;
            }
        }
        // How many there are stands before them.
        let end = out.len();
        write_number(count, out);
        let moved = out.len() - end;
        out[start + 1..].rotate_right(moved);
        true
    }

    fn encode_dense(&self, base: u32, origin: u32, bytes: u64, out: &mut Vec<u8>) {
        out.push(DENSE);
        write_number(zigzag(base, origin), out);
        write_number(bytes, out);
        let start = out.len();
        let bytes = usize::try_from(bytes).expect("a usize holds a u32");
        out.resize(start + bytes, 0);
        dense::write(self, origin, &mut out[start..]);
    }

    /// Reads one wire form off the front of `input`; gives the set and the bytes used.
    ///
    /// # Errors
    /// Bytes that are no set, or one with ids above [`ID_MAX`]. Nothing is allocated beyond a small multiple of the input's
    /// length and the 2 MiB that the largest set of evenly spaced ids takes.
    pub fn decode(base: u32, input: &[u8]) -> Result<(IdSet, usize), DecodeError> {
        let mut reader = Reader::new(input);
        let set = match reader.byte()? {
            EMPTY => IdSet::new(),
            BELOW => decode_below(base, &mut reader)?,
            PIECES => decode_pieces(base, &mut reader)?,
            DENSE => decode_dense(base, &mut reader)?,
            PORTABLE => decode_portable(&mut reader)?,
            _ => return Err(reader.error_before("expected a tag of at most 4")),
        };
        Ok((set, reader.used()))
    }
}

/// The gap and the shape of a piece, as the coding has them.
fn piece_numbers(base: u32, before: Option<u32>, piece: Stride) -> (u64, u64) {
    let first = piece.first().0;
    let gap = match before {
        None => zigzag(base, first),
        Some(last) => u64::from(first - last - 1),
    };
    let stepped = u64::from(piece.step() > 1);
    (gap, ((piece.count() - 1) << 1) | stepped)
}

fn encode_portable(bits: &RoaringBitmap, out: &mut Vec<u8>) {
    out.push(PORTABLE);
    let bytes = bits.serialized_size();
    write_number(bytes as u64, out);
    out.reserve(bytes);
    bits.serialize_into(out)
        .expect("writing to a Vec cannot fail");
}

fn decode_below(base: u32, reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let count = reader.number()?;
    let Some(more) = count.checked_sub(1) else {
        return Err(reader.error_before("expected a count of at least 1"));
    };
    let last = reader.id(u64::from(base) + more)?;
    Ok(IdSet::from_range(base..=last))
}

fn decode_pieces(base: u32, reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let count = reader.number()?;
    // Each piece takes two bytes at least.
    if count > (reader.left() / 2) as u64 {
        return Err(reader.error_before("more pieces than there are bytes for"));
    }
    let mut set = IdSet::new();
    // The smallest id that the next piece may begin with.
    let mut next = 0;
    for index in 0..count {
        let gap = reader.number()?;
        let first = if index == 0 {
            unzigzag(base, gap).ok_or_else(|| reader.error_before("expected an id"))?
        } else {
            next + gap
        };
        let first = reader.id(first)?;
        let shape = reader.number()?;
        let step = if shape & 1 == 1 { reader.number()? } else { 1 };
        if step == 0 {
            return Err(reader.error_before("expected a step of at least 1"));
        }
        // Both are below 2^35: the product fits.
        let last = reader.id(u64::from(first).saturating_add((shape >> 1).saturating_mul(step)))?;
        next = u64::from(last) + 1;
        // A piece of one id may carry any step.
        let step = u32::try_from(step).unwrap_or(u32::MAX);
        let piece = Stride::new(TaskId(first), TaskId(last), step);
        set.insert_stride(piece.expect("first <= last and step >= 1"));
    }
    set.compact();
    Ok(set)
}

fn decode_dense(base: u32, reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let gap = reader.number()?;
    let first = unzigzag(base, gap).ok_or_else(|| reader.error_before("expected an id"))?;
    let first = reader.id(first)?;
    let bytes = reader.bytes()?;
    let Some(last) = dense::last_id(first, bytes) else {
        return Ok(IdSet::new());
    };
    reader.id(last)?;
    Ok(IdSet::from_bits(dense::read(first, bytes)))
}

fn decode_portable(reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let bytes = reader.bytes()?;
    portable::check(bytes).map_err(|what| reader.error_before(what))?;
    let bits = RoaringBitmap::deserialize_from(bytes)
        .map_err(|_| reader.error_before("the bitmap's contents are out of order"))?;
    Ok(IdSet::from_bits(bits))
}

#[cfg(test)]
mod tests;
