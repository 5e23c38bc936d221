//! Ranks of MPICH's communicators, read from its memory.
//!
//! Its structures differ from version to version, and it has neither symbols nor debug information of them. But each
//! communicator begins with its handle, and of two everything is known: that of all, and that of each rank alone, which
//! lie beside each other. So their size, and where the ranks stand in them, is learned from these two. What is read by
//! that layout afterwards is believed only where it fits: the handle has to be the communicator's own, its ranks
//! different ones of the job, and the process itself has to be where it says that it is.

use std::ops::Range;

use super::{Members, Piece, WORD, WORLD_NAME};
use crate::python::Memory;

const WORLD: i32 = 0x4400_0000;
const ALONE: i32 = 0x4400_0001;
const ALONE_NAME: &[u8; 14] = b"MPI_COMM_SELF\0";
/// The beginning of handles of the communicators that are made later: of those in one list, and of those in blocks.
const DIRECT: u32 = 0x8400_0000;
const INDIRECT: u32 = 0xc400_0000;
/// The bits of a handle that say which one it is; of those in blocks the upper ones are the block's.
const INDEX_BITS: u32 = 0x03ff_ffff;
const IN_BLOCK_BITS: u32 = 12;
/// The most bytes of a communicator.
const COMMUNICATOR_BYTES_MAX: usize = 8 << 10;
/// How much of the library's variables is looked at, in bytes.
const VARIABLES_BYTES_MAX: usize = 16 << 20;
/// So many words in front of the size of what a list holds it is looked for where its blocks are.
const BLOCKS_WORDS: usize = 6;
/// The numbers that the communicators of all and of one have among themselves.
const CONTEXTS: [i32; 2] = [0, 0x0010_0010];
const RANKS_MAX: i32 = 1 << 20;

/// A table of ranks: how they are told, of which processes, how many, and as what: first, distance, block; or where.
const TABLE_BYTES: usize = 40;
const TABLE_GROUP: usize = 4;
const TABLE_COUNT: usize = 8;
const TABLE_FIRST: usize = 12;
const TABLE_DISTANCE: usize = 16;
const TABLE_BLOCK: usize = 20;
const TABLE_LIST: usize = 32;
const NO_TABLE: i32 = 11;

/// What is known of a process's MPICH.
pub(crate) struct Mpich<'a> {
    memory: &'a dyn Memory,
    /// Of a communicator, in bytes.
    size_bytes: usize,
    /// Where in it stand how many ranks it has, the process's own one behind that, and in front of it what tells it from others.
    count: usize,
    /// Where in it the table of ranks is. That of a second group lies behind it.
    table: usize,
    /// Where those are that were made first.
    first: u64,
    /// Where it can stand where the blocks of the others are.
    blocks: Vec<u64>,
    /// The process's rank in the job, and how many the job has.
    rank: u32,
    size: u32,
    tells_contexts: bool,
}

impl<'a> Mpich<'a> {
    /// Learns the layout from the communicators of all and of one, which are in the library's variables; nothing where it
    /// is not told apart from other layouts.
    pub(crate) fn learn(memory: &'a dyn Memory, variables: &[Range<u64>]) -> Option<Self> {
        let blocks = blocks(memory, variables);
        let mut found = blocks.iter().filter_map(predefined);
        let (world, alone) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        let size_bytes = world.0.len();
        let mut tables = (0..size_bytes.checked_sub(2 * TABLE_BYTES)?).step_by(4);
        let table = tables.find(|at| is_table(&world, &alone, *at))?;
        let size = world.number(table + TABLE_COUNT);
        let rank = own_rank(&alone, table);
        let mut counts = (0..table).step_by(4);
        let count = counts.find(|at| {
            let stands = |one: &Piece| [one.number(*at), one.number(at + 4)];
            stands(&world) == [size, rank] && stands(&alone) == [1, 0]
        })?;
        let contexts = [&world, &alone].map(|one| count.checked_sub(4).map(|at| one.number(at)));
        let (first, lists) = blocks.iter().find_map(|block| {
            let mut places = (0..block.0.len()).step_by(4);
            places.find_map(|at| lists(memory, block, (at, size_bytes)))
        })?;
        Some(Self {
            memory,
            size_bytes,
            count,
            table,
            first,
            blocks: lists,
            rank: u32::try_from(rank).ok()?,
            size: u32::try_from(size).ok()?,
            tells_contexts: contexts == CONTEXTS.map(Some),
        })
    }

    /// How many ranks the job has.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// The ranks of a communicator as ranks of the job, in its order.
    pub(crate) fn members(&self, handle: u32) -> Option<Members> {
        let one = self.communicator(handle)?;
        let own = usize::try_from(one.number(self.count + 4)).ok()?;
        let is_own = |ranks: &Vec<u32>| ranks.get(own) == Some(&self.rank);
        let named = self.table;
        let ours = named + TABLE_BYTES;
        let is_of_one_group = one.number(ours) == NO_TABLE;
        let theirs = match one.number(named + TABLE_GROUP) {
            0 => self.ranks(&one, named),
            // The processes of a job that was spawned or connected are a group of their own.
            1.. if !is_of_one_group => {
                return self
                    .ranks(&one, ours)
                    .filter(is_own)
                    .map(|_| Members::WithOtherJobs);
            }
            _ => None,
        }?;
        let is_count = usize::try_from(one.number(self.count)) == Ok(theirs.len());
        if !is_count {
            return None;
        }
        if is_of_one_group {
            return Some(theirs).filter(is_own).map(Members::Of);
        }
        let ours = self.ranks(&one, ours).filter(is_own)?;
        Some(Members::Between(ours, theirs))
    }

    /// What tells a communicator of one group from others at all its ranks.
    pub(crate) fn context(&self, handle: u32) -> Option<i64> {
        let one = self.communicator(handle)?;
        let number = one.number(self.count.checked_sub(4)?).cast_unsigned();
        // It is there twice: for what is sent, and for what is received.
        let halves = [number & 0xffff, number >> 16];
        (self.tells_contexts && halves[0] == halves[1]).then(|| halves[0].into())
    }

    fn communicator(&self, handle: u32) -> Option<Piece> {
        let index = handle & INDEX_BITS;
        let at = |list: u64, index: u32| {
            let bytes = u64::from(index).checked_mul(self.size_bytes as u64)?;
            let one = Piece::read(self.memory, list.checked_add(bytes)?, self.size_bytes)?;
            (one.number(0).cast_unsigned() == handle).then_some(one)
        };
        match handle & !INDEX_BITS {
            DIRECT => at(self.first, index),
            INDIRECT => self.blocks.iter().find_map(|blocks| {
                let block = u64::from(index >> IN_BLOCK_BITS) * WORD as u64;
                let block = Piece::read(self.memory, blocks.checked_add(block)?, WORD)?;
                at(block.word(0), index & ((1 << IN_BLOCK_BITS) - 1))
            }),
            _ => None,
        }
    }

    /// The ranks in a table, which are different ones of the job.
    fn ranks(&self, one: &Piece, table: usize) -> Option<Vec<u32>> {
        let number = |at| one.number(table + at);
        let count = Some(number(TABLE_COUNT)).filter(|count| (1..=RANKS_MAX).contains(count))?;
        let (first, distance, block) = (
            number(TABLE_FIRST),
            number(TABLE_DISTANCE),
            number(TABLE_BLOCK),
        );
        let list = || {
            let bytes = 4 * usize::try_from(count).ok()?;
            Piece::read(self.memory, one.word(table + TABLE_LIST), bytes)
        };
        let ranks: Option<Vec<i32>> = match number(0) {
            0 | 1 => Some((0..count).collect()),
            2 | 3 => (0..count).map(|rank| rank.checked_add(first)).collect(),
            4..=7 if block > 0 => {
                let rank = |at: i32| {
                    let of_block = (at / block).checked_mul(distance)?;
                    of_block.checked_add(at % block)?.checked_add(first)
                };
                (0..count).map(rank).collect()
            }
            8 | 9 => list().map(|list| {
                (0..list.0.len())
                    .step_by(4)
                    .map(|at| list.number(at))
                    .collect()
            }),
            _ => None,
        };
        let is_rank = |rank: &u32| *rank < self.size;
        let ranks: Option<Vec<u32>> = ranks?
            .into_iter()
            .map(|rank| u32::try_from(rank).ok().filter(is_rank))
            .collect();
        ranks.filter(|ranks| {
            let mut sorted = ranks.clone();
            sorted.sort_unstable();
            sorted.windows(2).all(|pair| pair[0] != pair[1])
        })
    }
}

/// The library's variables, as far as they are looked at.
fn blocks(memory: &dyn Memory, variables: &[Range<u64>]) -> Vec<Piece> {
    let mut left = VARIABLES_BYTES_MAX;
    let mut blocks = Vec::new();
    for area in variables {
        let bytes = usize::try_from(area.end.saturating_sub(area.start)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        left -= bytes;
        blocks.extend(Piece::read(memory, area.start, bytes));
    }
    blocks
}

/// The communicators of all and of one in a block of variables: equally large, one behind the other, each with its name at the same place.
fn predefined(block: &Piece) -> Option<(Piece, Piece)> {
    let places = |handle, from| {
        let places = (from..block.0.len()).step_by(WORD);
        places.filter(move |at| block.number(*at) == handle)
    };
    let end = block.0.len();
    places(WORLD, 0).find_map(|world| {
        let alone = places(ALONE, world + WORD).next()?;
        let bytes = Some(alone - world).filter(|bytes| *bytes <= COMMUNICATOR_BYTES_MAX)?;
        let part = |from: usize| block.0.get(from..(from + bytes).min(end));
        let (of_all, of_one) = (part(world)?, part(alone).filter(|it| it.len() == bytes)?);
        let mut names = of_all.windows(WORLD_NAME.len());
        let name = names.position(|part| part == WORLD_NAME)?;
        let is_named = of_one.get(name..)?.starts_with(ALONE_NAME);
        is_named.then(|| (Piece(of_all.to_vec()), Piece(of_one.to_vec())))
    })
}

/// True where the tables of the communicators of all and of one can be.
fn is_table(world: &Piece, alone: &Piece, at: usize) -> bool {
    let is_alike =
        |one: &Piece| one.number(at + TABLE_GROUP) == 0 && one.number(at + TABLE_BYTES) == NO_TABLE;
    let size = world.number(at + TABLE_COUNT);
    is_alike(world)
        && is_alike(alone)
        && (1..=RANKS_MAX).contains(&size)
        && alone.number(at + TABLE_COUNT) == 1
        && matches!(world.number(at), 0 | 1)
        && matches!(alone.number(at), 0..=3)
        && (0..size).contains(&own_rank(alone, at))
}

/// The rank of a process in its job, by the table of itself alone.
fn own_rank(alone: &Piece, table: usize) -> i32 {
    match alone.number(table) {
        0 | 1 => 0,
        _ => alone.number(table + TABLE_FIRST),
    }
}

/// Where the communicators are that were made first, and where that of the others can stand: beside their size, which is here.
fn lists(
    memory: &dyn Memory,
    block: &Piece,
    (at, size_bytes): (usize, usize),
) -> Option<(u64, Vec<u64>)> {
    if usize::try_from(block.number(at)) != Ok(size_bytes) {
        return None;
    }
    let first = block.word((at + 4).next_multiple_of(WORD));
    let head = Piece::read(memory, first, 4)?;
    let is_first = head.number(0).cast_unsigned() == DIRECT;
    let from = at - at % WORD;
    let before = (1..=BLOCKS_WORDS).filter_map(|words| from.checked_sub(words * WORD));
    is_first.then(|| (first, before.map(|at| block.word(at)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::pieces::Pieces;

    const SIZE: usize = 0x368;
    const COUNT: usize = 0x44;
    const NAME: usize = 0x74;
    const TABLE: usize = 0x310;
    const LISTS: u64 = 0x10_0000;
    const FIRST: u64 = 0x20_0000;
    const LATER: u64 = 0x30_0000;
    const OF_ALL: u64 = 0x40_0000;
    const LIST: u64 = 0x50_0000;
    /// Of 8 ranks this one is looked at.
    const RANK: i32 = 5;

    /// How a communicator's ranks are told: what its table has.
    type Table<'a> = &'a [i32];

    impl Pieces {
        fn numbers(&mut self, address: u64, at: usize, numbers: &[i32]) {
            let piece = self.0.entry(address).or_insert_with(|| vec![0; 8 * SIZE]);
            for (number, part) in numbers.iter().zip(piece[at..].chunks_mut(4)) {
                part.copy_from_slice(&number.to_ne_bytes());
            }
        }

        /// A communicator: its handle, its number, the rank of the process in it, and its tables.
        fn mpich(
            &mut self,
            (address, at): (u64, usize),
            (handle, context, rank): (u32, i32, i32),
            (table, other): (Table<'_>, Table<'_>),
        ) {
            self.numbers(address, at, &[handle.cast_signed(), 1]);
            self.numbers(address, at + COUNT - 4, &[context, table[2], rank]);
            self.numbers(address, at + TABLE, table);
            self.numbers(address, at + TABLE + TABLE_BYTES, other);
        }
    }

    const ONE: Table<'_> = &[NO_TABLE];

    /// The memory of rank 5 of 8.
    fn memory() -> Pieces {
        let mut memory = Pieces::default();
        let all = (WORLD.cast_unsigned(), 0, RANK);
        memory.mpich((OF_ALL, 0x40), all, (&[1, 0, 8], ONE));
        let alone = (ALONE.cast_unsigned(), 0x0010_0010, 0);
        memory.mpich((OF_ALL, 0x40 + SIZE), alone, (&[3, 0, 1, RANK], ONE));
        memory.set(OF_ALL, 0x40 + NAME, WORLD_NAME);
        memory.set(OF_ALL, 0x40 + SIZE + NAME, ALONE_NAME);
        // What MPICH keeps of all that are made: where the blocks are, of what, how large, and where the first are.
        memory.set(LISTS, 16, &(LATER + 0x8000).to_ne_bytes());
        memory.numbers(LISTS, 40, &[1, i32::try_from(SIZE).unwrap()]);
        memory.set(LISTS, 48, &FIRST.to_ne_bytes());
        memory.set(LATER + 0x8000, 0, &LATER.to_ne_bytes());
        memory.numbers(FIRST, 0, &[DIRECT.cast_signed()]);
        memory
    }

    fn learn(memory: &Pieces) -> Option<Mpich<'_>> {
        let variables = [LISTS..LISTS + 0x400, OF_ALL..OF_ALL + 0x1000];
        Mpich::learn(memory, &variables)
    }

    fn check(table: Table<'_>, rank: i32, expect: Option<&[u32]>) {
        let mut memory = memory();
        let handle = DIRECT + 2;
        memory.mpich((FIRST, 2 * SIZE), (handle, 0x1e0_01e0, rank), (table, ONE));
        memory.set(FIRST, 2 * SIZE + TABLE + TABLE_LIST, &LIST.to_ne_bytes());
        memory.numbers(LIST, 0, &[7, 5, 1]);
        let known = learn(&memory).unwrap();
        assert_eq!(known.size(), 8);
        let expect = expect.map(|ranks| Members::Of(ranks.to_vec()));
        assert_eq!(known.members(handle), expect, "{table:?}");
        assert_eq!(known.context(handle), Some(0x1e0));
    }

    #[test]
    fn ranks_are_told_in_several_ways() {
        check(&[1, 0, 8], 5, Some(&[0, 1, 2, 3, 4, 5, 6, 7]));
        check(&[3, 0, 4, 4], 1, Some(&[4, 5, 6, 7]));
        check(&[5, 0, 4, 1, 2, 1], 2, Some(&[1, 3, 5, 7]));
        check(&[7, 0, 4, 0, 4, 2], 3, Some(&[0, 1, 4, 5]));
        check(&[8, 0, 3], 1, Some(&[7, 5, 1]));
    }

    #[test]
    fn what_does_not_fit_is_not_believed() {
        // The process is not where it says that it is.
        check(&[3, 0, 4, 4], 2, None);
        // Ranks that the job does not have, one twice, a way that is not known, a block of nothing.
        check(&[3, 0, 4, 5], 0, None);
        check(&[5, 0, 4, 5, 0, 1], 0, None);
        check(&[10, 0, 4, 4], 1, None);
        check(&[7, 0, 4, 0, 4, 0], 3, None);
        check(&[3, 0, i32::MAX, 4], 1, None);
        check(&[3, 0, -1, 4], 1, None);
        check(&[5, 0, 4, i32::MAX, i32::MAX, 1], 0, None);
        let memory = memory();
        let known = learn(&memory).unwrap();
        // None of that handle is there: the first one behind what is there, one in a block that is not, something else.
        for handle in [
            DIRECT + 1,
            DIRECT + 0x3ff_ffff,
            INDIRECT + 0x1000,
            INDIRECT,
            7,
        ] {
            assert_eq!(known.members(handle), None, "{handle:#x}");
        }
    }

    #[test]
    fn those_in_blocks_and_between_groups_are_found() {
        let mut memory = memory();
        let handle = INDIRECT + 3;
        let tables: (Table<'_>, Table<'_>) = (&[1, 0, 4], &[3, 0, 4, 4]);
        memory.mpich((LATER, 3 * SIZE), (handle, 0x1a0_01a2, 1), tables);
        let spawned = INDIRECT + 4;
        let tables: (Table<'_>, Table<'_>) = (&[1, 1, 2], &[1, 0, 8]);
        memory.mpich((LATER, 4 * SIZE), (spawned, 0, RANK), tables);
        let known = learn(&memory).unwrap();
        let between = Members::Between(vec![4, 5, 6, 7], vec![0, 1, 2, 3]);
        assert_eq!(known.members(handle), Some(between));
        // Either side has another number for it.
        assert_eq!(known.context(handle), None);
        assert_eq!(known.members(spawned), Some(Members::WithOtherJobs));
    }

    #[test]
    fn without_the_two_that_are_known_nothing_is_learned() {
        let mut memory = memory();
        memory.set(OF_ALL, 0x40 + SIZE + NAME, b"MPI_COMM_NULL\0");
        assert!(learn(&memory).is_none());
        let mut memory = super::tests::memory();
        // Another layout: where the second table should be.
        memory.numbers(OF_ALL, 0x40 + TABLE + TABLE_BYTES, &[12]);
        assert!(learn(&memory).is_none());
        assert!(Mpich::learn(&memory, &[]).is_none());
        assert!(Mpich::learn(&memory, &[OF_ALL..u64::MAX, 0..8]).is_none());
    }
}
