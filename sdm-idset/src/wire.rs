//! The wire form: a tag byte and one of several codings. None is longer than the bitmap's portable form.
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
//! 58, 59   the rest of the bitmap        the portable Roaring format, absolute ids; its own first byte is this one
//!
//! Numbers are LEB128, 7 bits in a byte, the lowest first, at most 5 bytes. The gap of the first piece in coding 2 and the first
//! id in coding 3 are relative to base and may be below it: they stand as zigzag (2 d, or -2 d - 1 where d < 0).
//! ```
//!
//! A bitmap is written container by container, as it is stored. If all containers turn out to be bits, they
//! are moved to the position for coding 3. If they are few pieces (`pieces`), coding 2 overwrites them.
//!
//! The coding determines its end, and further bytes belong to the caller. Equal sets may have different
//! forms, so a form is never compared or hashed. Every set of ids up to [`ID_MAX`] fits into
//! [`SET_BYTES_MAX`].

mod number;
mod pieces;
mod portable;
mod reader;

use std::ops::Range;

use roaring::RoaringBitmap;

use crate::run::Run;
use crate::set::Layout;
use crate::{IdSet, Stride, TaskId, dense};
pub use number::write_number;
use number::{unzigzag, zigzag};
use pieces::{Piece, Pieces};
use portable::{Ids, Part, Parts};
pub use reader::DecodeError;
use reader::Reader;

/// Maximum length of the wire form of a set, in bytes: that of a bitmap of the largest ids.
pub const SET_BYTES_MAX: usize = portable::BYTES_MAX;

const EMPTY: u8 = 0;
const BELOW: u8 = 1;
const PIECES: u8 = 2;
const DENSE: u8 = 3;
/// The tag of a bitmap in the portable format: the first byte of that format.
const PORTABLE: u8 = portable::FIRST_BYTE;
const PORTABLE_RUNS: u8 = portable::FIRST_BYTE_RUNS;

impl IdSet {
    /// Appends the wire form, encoded relative to `base`. The reader needs the same `base`.
    ///
    /// The form has at most as many bytes as the portable Roaring format of the set in its smallest layout,
    /// and takes about the same time to write. After many changes since it was last
    /// [compact](IdSet::compact), the set is copied and the copy is compacted first. A set with ids above
    /// [`ID_MAX`](crate::ID_MAX) is written too, but no decoder accepts it.
    pub fn encode(&self, base: u32, out: &mut Vec<u8>) {
        match &self.layout {
            Layout::Empty => out.push(EMPTY),
            Layout::Run(run) => encode_run(base, *run, out),
            Layout::Bits(bits) => match bits.compact() {
                Some(bits) => encode_bits(base, bits, out),
                None => {
                    let mut compact = self.clone();
                    compact.compact();
                    compact.encode(base, out);
                }
            },
        }
    }

    /// Number of bytes that [`IdSet::encode`] appends (`sdm_set_serialized_length`, but exact).
    #[must_use]
    pub fn encoded_len(&self, base: u32) -> u64 {
        let mut out = Vec::new();
        self.encode(base, &mut out);
        out.len() as u64
    }

    /// Decodes a wire form at the start of `input`. Returns the set and the number of bytes used.
    ///
    /// # Errors
    /// The bytes are not a valid set, or the set has ids above [`ID_MAX`](crate::ID_MAX). Memory is limited
    /// to a small multiple of the input's length, plus the 2 MiB of the largest set of evenly spaced ids.
    pub fn decode(base: u32, input: &[u8]) -> Result<(IdSet, usize), DecodeError> {
        let mut reader = Reader::new(input);
        let set = match reader.byte()? {
            EMPTY => IdSet::new(),
            BELOW => decode_below(base, &mut reader)?,
            PIECES => decode_pieces(base, &mut reader)?,
            DENSE => decode_dense(base, &mut reader)?,
            PORTABLE | PORTABLE_RUNS => decode_portable(&mut reader)?,
            _ => return Err(reader.error_before("unknown tag")),
        };
        Ok((set, reader.used()))
    }
}

fn encode_run(base: u32, run: Run, out: &mut Vec<u8>) {
    let Run { first, last } = run;
    if first == base {
        out.push(BELOW);
        return write_number(u64::from(last - first) + 1, |byte| out.push(byte));
    }
    let mut pieces = Pieces::new(base);
    let step = 1;
    let pushed = pieces.push(Piece { first, last, step });
    pushed.expect("one piece is short");
    encode_pieces(&pieces, out);
}

/// Writes a bitmap in the portable format, examines the bytes, and overwrites them by a shorter coding if there is one.
fn encode_bits(base: u32, bits: &RoaringBitmap, out: &mut Vec<u8>) {
    if bits.len() == 2 {
        let mut pieces = Pieces::new(base);
        for id in bits {
            pieces.push(Piece::lone(id)).expect("two pieces are short");
        }
        return encode_pieces(&pieces, out);
    }
    let start = out.len();
    out.reserve(bits.serialized_size());
    bits.serialize_into(&mut *out)
        .expect("writing to a Vec cannot fail");
    let body = &out[start..];
    let Some(parts) = Parts::new(body).ok().filter(Parts::are_of_ids) else {
        return;
    };
    let mut rest = parts.clone();
    let dense = match (rest.next(), rest.next()) {
        (
            Some(Part {
                ids: Ids::Array(ids),
                ..
            }),
            _,
        ) if pieces::are_uneven(ids) => return,
        (
            Some(Part {
                first,
                ids: Ids::Bits(bits),
            }),
            None,
        ) => Some(Dense::new(first, bits, body.len())),
        _ => None,
    };
    let len = dense.as_ref().map_or(body.len(), |dense| dense.at.len());
    let mut pieces = Pieces::new(base);
    if pieces.find(body.len(), parts).is_ok() && pieces.coding().1.len() + 2 < len {
        out.truncate(start);
        encode_pieces(&pieces, out);
    } else if let Some(Dense { origin, at }) = dense {
        // The head is shorter than that of the bitmap.
        let end = out.len();
        out.push(DENSE);
        write_number(zigzag(base, origin), |byte| out.push(byte));
        write_number(at.len() as u64, |byte| out.push(byte));
        let head = out.len() - end;
        out.copy_within(end.., start);
        out.copy_within(start + at.start..start + at.end, start + head);
        out.truncate(start + head + at.len());
    }
}

/// The bits of a bitmap that consists of bits only, without the zero bytes at both ends.
struct Dense {
    /// The id of the first bit.
    origin: u32,
    /// Byte range of the bits in the bitmap.
    at: Range<usize>,
}

impl Dense {
    fn new(first: u32, bits: &[u8], body_len: usize) -> Self {
        let (before, behind) = dense::zeros(bits);
        let start = body_len - bits.len();
        Self {
            origin: first + 8 * u32::try_from(before).expect("bits of ids"),
            at: start + before..body_len - behind,
        }
    }
}

fn encode_pieces(pieces: &Pieces, out: &mut Vec<u8>) {
    let (count, bytes) = pieces.coding();
    out.extend_from_slice(&[PIECES, count]);
    out.extend_from_slice(bytes);
}

fn decode_below(base: u32, reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let count = reader.number()?;
    let Some(more) = count.checked_sub(1) else {
        return Err(reader.error_before("expected a range of at least 1 task"));
    };
    let last = reader.id(u64::from(base) + more)?;
    Ok(IdSet::from_range(base..=last))
}

fn decode_pieces(base: u32, reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let count = reader.number()?;
    // Each piece takes two bytes at least.
    if count > (reader.left() / 2) as u64 {
        return Err(reader.error_before("the set announces more ranges than its bytes can hold"));
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
    Ok(IdSet::from_compact(dense::read(first, bytes)))
}

fn decode_portable(reader: &mut Reader<'_>) -> Result<IdSet, DecodeError> {
    let body = reader.bitmap()?;
    let bits = RoaringBitmap::deserialize_from(body)
        .map_err(|_| reader.error_before("the bitmap's contents are out of order"))?;
    Ok(IdSet::from_compact(bits))
}

#[cfg(test)]
mod tests;
