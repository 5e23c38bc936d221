//! Search for the evenly spaced pieces of a bitmap, without iterating over its runs.
//!
//! The bitmap is examined in the portable format, in which neighbouring containers of bits are adjacent. A piece whose
//! first ids are evenly spaced is extended by comparing bytes, because bits with distance `step` repeat every `step`
//! bytes.
//!
//! The search gives up a bitmap that does not consist of few pieces. The maximum number of steps grows with the
//! bitmap's length, so the search costs less than writing the bitmap.

use super::number::{NUMBER_BYTES_MAX, write_number, zigzag};
use super::portable::{Ids, Parts};
use crate::Stride;

/// Minimum number of steps before a bitmap is given up.
const STEPS_MIN: usize = 4;
/// Additional steps per container. One more step is allowed per `BYTES_PER_STEP` bytes of the bitmap.
const STEPS_PER_CONTAINER: usize = 2;
const BYTES_PER_STEP: usize = 64;
/// Maximum number of single ids that are not next to a run. A bitmap with more is given up as irregular.
const LONE_MAX: usize = 3;
/// Number of bytes by which the encoded pieces may initially exceed the encoded bits.
const AHEAD_BYTES: usize = 4;
/// Maximum step for comparison by bytes. Ids farther apart are mostly in arrays.
const EVEN_STEP_MAX: u32 = 32;
/// Number of ids that are compared at once in an array.
const FOUR: usize = 4;
/// Maximum step for which four steps fit into 16 bits.
const MANY_STEP_MAX: u32 = 0xffff / 4;
/// Number of groups of four ids that are compared before the result is checked.
const BLOCK: usize = 128;
/// Maximum length of a set's encoded pieces, in bytes. The number of pieces then takes one byte.
const BYTES_MAX: usize = 128;

/// A piece: the ids from `first` to `last` with distance `step`, which is 0 for a single id.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) step: u32,
}

/// Encoded pieces, without the tag and the number of pieces.
pub(super) struct Pieces {
    bytes: [u8; BYTES_MAX],
    len: usize,
    count: u8,
    base: u32,
    before: Option<u32>,
}

/// The error of a search that has given up.
#[derive(Debug)]
pub(super) struct GivenUp;

impl Pieces {
    /// An empty list of pieces, encoded relative to `base`.
    pub(super) fn new(base: u32) -> Self {
        Self {
            bytes: [0; BYTES_MAX],
            len: 0,
            count: 0,
            base,
            before: None,
        }
    }

    /// The coding of the pieces: their number, and their bytes.
    pub(super) fn coding(&self) -> (u8, &[u8]) {
        (self.count, &self.bytes[..self.len])
    }

    /// Appends a piece. Returns an error if the pieces get too long.
    pub(super) fn push(&mut self, piece: Piece) -> Result<(), GivenUp> {
        let Piece { first, last, step } = piece;
        let gap = match self.before {
            None => zigzag(self.base, first),
            Some(before) => u64::from(first - before - 1),
        };
        if self.len + 3 * NUMBER_BYTES_MAX as usize > BYTES_MAX {
            return Err(GivenUp);
        }
        self.number(gap);
        if step <= 1 {
            self.number(u64::from(last - first) << 1);
        } else {
            self.number(u64::from((last - first) / step) << 1 | 1);
            self.number(step.into());
        }
        self.count += 1;
        self.before = Some(last);
        Ok(())
    }

    fn number(&mut self, number: u64) {
        write_number(number, |byte| {
            self.bytes[self.len] = byte;
            self.len += 1;
        });
    }

    /// Splits a bitmap of `body_len` bytes into pieces, if there are few.
    pub(super) fn find(&mut self, body_len: usize, parts: Parts<'_>) -> Result<(), GivenUp> {
        let steps = STEPS_PER_CONTAINER * parts.containers() + body_len / BYTES_PER_STEP;
        let mut finder = Finder {
            pieces: self,
            growing: None,
            steps_left: STEPS_MIN + steps,
            lone_left: LONE_MAX,
        };
        for part in parts {
            match part.ids {
                Ids::Array(ids) => finder.array(part.first, ids)?,
                Ids::Runs(runs) => finder.runs(part.first, runs)?,
                Ids::Bits(bits) => finder.bits(part.first, bits)?,
            }
        }
        finder.end()
    }
}

struct Finder<'a> {
    pieces: &'a mut Pieces,
    /// The last piece, which can still grow; `None` before the first one.
    growing: Option<Piece>,
    steps_left: usize,
    lone_left: usize,
}

impl Finder<'_> {
    /// Finds the pieces in a container of ids. Gives up if its first ids are not evenly spaced.
    fn array(&mut self, first: u32, bytes: &[u8]) -> Result<(), GivenUp> {
        let (mut ids, _) = bytes.as_chunks::<2>();
        if are_uneven(bytes) {
            return Err(GivenUp);
        }
        while let Some((id, _)) = ids.split_first() {
            self.id(first + id_of(*id))?;
            let step = self.growing.map_or(0, |it| it.step);
            let even = if step == 0 { 0 } else { even_ids(ids, step) };
            self.grow_to(first + id_of(ids[even]));
            ids = &ids[even + 1..];
        }
        Ok(())
    }

    fn runs(&mut self, first: u32, bytes: &[u8]) -> Result<(), GivenUp> {
        for [a, b, c, d] in bytes.as_chunks::<4>().0 {
            let begin = first + id_of([*a, *b]);
            let end = begin + id_of([*c, *d]);
            self.run(begin, end)?;
        }
        Ok(())
    }

    /// Adds the next run of consecutive ids.
    fn run(&mut self, first: u32, last: u32) -> Result<(), GivenUp> {
        if first == last {
            return self.id(first);
        }
        if let Some(growing) = &mut self.growing {
            if growing.step <= 1 && growing.last + 1 == first {
                (growing.last, growing.step) = (last, 1);
                return Ok(());
            }
            self.end()?;
        }
        self.growing = Some(Piece {
            first,
            last,
            step: 1,
        });
        Ok(())
    }

    /// Finds the pieces in a container of bits. Gives up if the first pieces take more bytes than the bits.
    fn bits(&mut self, first: u32, bytes: &[u8]) -> Result<(), GivenUp> {
        let before = self.pieces.len + AHEAD_BYTES;
        let (words, _) = bytes.as_chunks::<8>();
        let mut from = 0;
        while let Some(bit) = next_bit(words, from) {
            self.id(first + bit)?;
            let even = self.growing.map_or(bit, |it| even_bits(bytes, first, it));
            self.grow_to(first + even);
            from = even + 1;
            if self.pieces.len > before + (even / 8) as usize {
                return Err(GivenUp);
            }
        }
        Ok(())
    }

    /// Adds the next id.
    #[inline]
    fn id(&mut self, id: u32) -> Result<(), GivenUp> {
        let Some(growing) = &mut self.growing else {
            self.growing = Some(Piece::lone(id));
            return Ok(());
        };
        let distance = id - growing.last;
        if growing.step == 0 || distance == growing.step {
            growing.step = distance;
            growing.last = id;
            return Ok(());
        }
        let mut ended = *growing;
        if ended.is_two_apart() {
            // The second may have more in common with this one.
            *growing = Piece {
                first: ended.last,
                last: id,
                step: distance,
            };
            ended = Piece::lone(ended.first);
        } else {
            *growing = Piece::lone(id);
        }
        self.push(ended)
    }

    /// Extends the growing piece up to this id.
    fn grow_to(&mut self, id: u32) {
        if let Some(growing) = &mut self.growing {
            growing.last = id;
        }
    }

    fn end(&mut self) -> Result<(), GivenUp> {
        let Some(growing) = self.growing.take() else {
            return Ok(());
        };
        if growing.is_two_apart() {
            self.push(Piece::lone(growing.first))?;
            return self.push(Piece::lone(growing.last));
        }
        self.push(growing)
    }

    fn push(&mut self, piece: Piece) -> Result<(), GivenUp> {
        if piece.step == 0 {
            self.lone_left = self.lone_left.checked_sub(1).ok_or(GivenUp)?;
        }
        self.steps_left = self.steps_left.checked_sub(1).ok_or(GivenUp)?;
        self.pieces.push(piece)
    }
}

impl Piece {
    pub(super) fn lone(id: u32) -> Self {
        Self {
            first: id,
            last: id,
            step: 0,
        }
    }

    /// True for a piece of exactly two ids that are not adjacent. They are written as two single ids and not as a
    /// stride.
    fn is_two_apart(self) -> bool {
        self.step > 1 && self.last - self.first == self.step
    }
}

impl From<Stride> for Piece {
    fn from(stride: Stride) -> Self {
        Self {
            first: stride.first().0,
            last: stride.last().0,
            step: stride.step(),
        }
    }
}

/// True if the first three ids of a list are not evenly spaced.
pub(super) fn are_uneven(bytes: &[u8]) -> bool {
    let (ids, _) = bytes.as_chunks::<2>();
    matches!(ids, [a, b, c, ..] if id_of(*b) - id_of(*a) != id_of(*c) - id_of(*b))
}

fn id_of(bytes: [u8; 2]) -> u32 {
    u16::from_le_bytes(bytes).into()
}

/// Number of ids after the first that are each `step` above the one before. Compares four at a time, as one
/// number.
fn even_ids(ids: &[[u8; 2]], step: u32) -> usize {
    let even_from = |at: usize| {
        let pairs = ids[at..].iter().zip(&ids[at + 1..]);
        pairs.take_while(|(a, b)| id_of(**b) - id_of(**a) == step)
    };
    let begun = even_from(0).take(FOUR).count();
    if begun < FOUR || step > MANY_STEP_MAX {
        return begun;
    }
    // As the ids rise there is no carry from one to the next.
    let ahead = 0x0001_0001_0001_0001 * (4 * u64::from(step));
    let (fours, _) = ids.as_flattened().as_chunks::<8>();
    let number = |four: &[u8; 8]| u64::from_le_bytes(*four);
    let mut even = 0;
    while even + 1 < fours.len() {
        let block = &fours[even..fours.len().min(even + 1 + BLOCK)];
        let pairs = block.iter().zip(&block[1..]);
        let uneven = pairs.fold(0, |uneven, (a, b)| {
            uneven | (number(b).wrapping_sub(number(a)) ^ ahead)
        });
        if uneven != 0 {
            break;
        }
        even += block.len() - 1;
    }
    let last = FOUR * even + FOUR - 1;
    last + even_from(last).count()
}

/// The first set bit at or after `from`; `None` if there is none.
fn next_bit(words: &[[u8; 8]], from: u32) -> Option<u32> {
    let mut at = (from / 64) as usize;
    let mut word = u64::from_le_bytes(*words.get(at)?) & (u64::MAX << (from % 64));
    while word == 0 {
        at += 1;
        word = u64::from_le_bytes(*words.get(at)?);
    }
    u32::try_from(at)
        .ok()
        .map(|at| 64 * at + word.trailing_zeros())
}

/// Finds the last id up to which a piece stays evenly spaced, in bits that begin at id `first`. Returns the present
/// last id if the piece is too short to tell, or its step too long.
fn even_bits(bytes: &[u8], first: u32, growing: Piece) -> u32 {
    let Piece { last, step, .. } = growing;
    let begin = growing.first.max(first) - first;
    let last = last - first;
    // The byte of the last bit is the first that is not known; in front of it a whole period must be.
    let at = (last / 8) as usize;
    let known = at - begin.div_ceil(8).min(last / 8) as usize;
    let period = step as usize;
    if step == 0 || step > EVEN_STEP_MAX || known < period {
        return last;
    }
    let even = at + matching(&bytes[at - period..], &bytes[at..]);
    let end = u32::try_from(8 * even).expect("bits of ids");
    // The largest of its bits below the end.
    last + (end.max(last + 1) - 1 - last) / step * step
}

/// Length of the common prefix of two slices, in bytes.
fn matching(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 512;
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    let whole = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let whole = whole.min(len);
    let rest = a[whole..].iter().zip(&b[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}
