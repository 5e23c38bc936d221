//! MPICH's objects with handles: each object begins with its handle. The first objects of a kind are in one array, the
//! others in blocks.

use sdm_mpi::MPICH_KIND;

use super::{Piece, WORD};
use crate::memory::Memory;

/// The kinds of handles.
pub(super) const COMMUNICATORS: u32 = 0x1;
pub(super) const GROUPS: u32 = 0x2;
pub(super) const WINDOWS: u32 = 0x8;
pub(super) const REQUESTS: u32 = 0xb;

/// Bit fields of a handle, beside the kind: the storage of the object, and its index. For an object in a block the
/// upper bits of the index are the block's number.
const WHERE: u32 = 30;
const INDEX: u32 = (1 << MPICH_KIND) - 1;
const IN_BLOCK: u32 = 12;
const DIRECT: u32 = 0b10;
const INDIRECT: u32 = 0b11;
const BYTES_MIN: usize = 32;
const BYTES_MAX: usize = 8 << 10;
/// Distance from the object size in MPICH's description of a kind back to the address of its blocks, in words.
const BLOCKS_WORDS: usize = 6;

/// The objects of one kind.
pub(super) struct Objects {
    kind: u32,
    /// Size of each object, in bytes.
    size_bytes: usize,
    /// Address of the array of the first objects.
    first: u64,
    /// Possible addresses of the list of blocks, with the objects that are not in the first array.
    blocks: Vec<u64>,
}

impl Objects {
    /// Finds the objects of a kind by MPICH's description in its variables: the kind, the object size, and the address
    /// of the first objects. `None` if there is no such description.
    pub(super) fn find(
        memory: &dyn Memory,
        variables: &[Piece],
        (kind, size_bytes): (u32, Option<usize>),
    ) -> Option<Self> {
        let in_block = |block: &Piece| {
            let mut places = (4..block.0.len()).step_by(4);
            places.find_map(|at| {
                let size = usize::try_from(block.number(at)).ok()?;
                let fits = (BYTES_MIN..=BYTES_MAX).contains(&size)
                    && size_bytes.is_none_or(|wanted| wanted == size)
                    && block.number(at - 4).cast_unsigned() == kind;
                if !fits {
                    return None;
                }
                let first = block.word((at + 4).next_multiple_of(WORD));
                let head = Piece::read(memory, first, 4)?.number(0).cast_unsigned();
                let from = at - at % WORD;
                let before = (1..=BLOCKS_WORDS).filter_map(|words| from.checked_sub(words * WORD));
                (head == DIRECT << WHERE | kind << MPICH_KIND).then(|| Self {
                    kind,
                    size_bytes: size,
                    first,
                    blocks: before.map(|at| block.word(at)).collect(),
                })
            })
        };
        variables.iter().find_map(in_block)
    }

    /// The object with this handle, if its reference count is not 0, and its address. `None` for other handles.
    pub(super) fn object(&self, memory: &dyn Memory, handle: u32) -> Option<(u64, Piece)> {
        self.any(memory, handle).filter(|(_, one)| is_owned(one))
    }

    /// Like [`Self::object`], also for freed objects, which keep their handles, and for objects without a reference
    /// count. `None` for other handles.
    pub(super) fn any(&self, memory: &dyn Memory, handle: u32) -> Option<(u64, Piece)> {
        let index = handle & INDEX;
        let at = |list: u64, index: u32| {
            let bytes = u64::from(index).checked_mul(self.size_bytes as u64)?;
            let address = list.checked_add(bytes)?;
            let one = Piece::read(memory, address, self.size_bytes)?;
            (one.number(0).cast_unsigned() == handle).then_some((address, one))
        };
        if !is_later(handle, self.kind) {
            return None;
        }
        match handle >> WHERE {
            DIRECT => at(self.first, index),
            INDIRECT => self.blocks.iter().find_map(|blocks| {
                let block = u64::from(index >> IN_BLOCK) * WORD as u64;
                let block = Piece::read(memory, blocks.checked_add(block)?, WORD)?;
                at(block.word(0), index & ((1 << IN_BLOCK) - 1))
            }),
            _ => None,
        }
    }

    /// The objects with a reference count above 0 in the first array and in the first block, at most `most` of each.
    pub(super) fn all(&self, memory: &dyn Memory, most: u32) -> impl Iterator<Item = Piece> {
        let every = self.every(memory, most).map(|(_, one)| one);
        every.filter(is_owned)
    }

    /// Like [`Self::all`], also for freed objects and for those without a reference count, each with its address.
    pub(super) fn every(
        &self,
        memory: &dyn Memory,
        most: u32,
    ) -> impl Iterator<Item = (u64, Piece)> {
        let lists = [DIRECT, INDIRECT].into_iter();
        lists.flat_map(move |list| {
            let handles =
                (0..most).map(move |index| list << WHERE | self.kind << MPICH_KIND | index);
            handles.map_while(move |handle| self.any(memory, handle))
        })
    }
}

/// Number of bytes of a communicator or a window in which the pointer to its error handler is.
pub const HANDLER_BYTES_MAX: u32 = 512;

/// The words of an object that can be a pointer to another object, with their positions. The position of each pointer
/// depends on the version.
pub fn pointers(object: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    let (words, _) = object.as_chunks();
    let words = words.iter().map(|word| u64::from_ne_bytes(*word));
    let is_address = |word: u64| word.is_multiple_of(8) && word >= 0x1000 && word >> 47 == 0;
    words.enumerate().filter(move |(_, word)| is_address(*word))
}

/// True for a handle of an object of this kind that is not predefined.
pub(super) fn is_later(handle: u32, kind: u32) -> bool {
    let of_kind = |place| place << (WHERE - MPICH_KIND) | kind;
    [DIRECT, INDIRECT]
        .map(of_kind)
        .contains(&(handle >> MPICH_KIND))
}

/// True for an object whose reference count is above 0.
fn is_owned(one: &Piece) -> bool {
    one.number(4) > 0
}
