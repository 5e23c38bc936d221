//! Ranks of MPICH's communicators, read from the memory of a process.
//!
//! MPICH's structures differ between versions and have neither symbols nor debug information. But each communicator
//! begins with its handle, and two of them are fully known: `MPI_COMM_WORLD` and `MPI_COMM_SELF`, which are adjacent.
//! The size of a communicator and the position of its ranks are learned from these two. Later reads by that layout are
//! trusted only if they are consistent: the handle is the communicator's own, its ranks are distinct ranks of the job,
//! and the process itself has the stated rank.

mod objects;
mod receives;
mod sends;
#[cfg(test)]
mod tests;
mod windows;

use std::ops::Range;

use objects::{COMMUNICATORS, GROUPS, Objects, is_later};
pub use objects::{HANDLER_BYTES_MAX, pointers};
pub use receives::Receives;

use super::{Members, Piece, WORD, WORLD_NAME, only};
use crate::memory::Memory;

const WORLD: i32 = sdm_mpi::MPICH_WORLD;
const ALONE: i32 = sdm_mpi::MPICH_SELF.cast_signed();
const ALONE_NAME: &[u8; 14] = b"MPI_COMM_SELF\0";
/// Size of the head of an object: the handle, and its reference count.
const HEAD_BYTES: usize = 8;
/// Maximum size of a communicator object, in bytes.
const COMMUNICATOR_BYTES_MAX: usize = 8 << 10;
/// Maximum number of bytes of the library's variables that are read.
const VARIABLES_BYTES_MAX: usize = 16 << 20;
/// Context ids of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
const CONTEXTS: [i32; 2] = [0, 0x0010_0010];
const RANKS_MAX: i32 = 1 << 20;
/// Bytes of a file that contain the handle of its communicator.
const FILE_BYTES: usize = 256;
/// Maximum number of communicators that are searched for processes of other jobs: of the array, and of the first block.
const COMMUNICATORS_MAX: u32 = 256;

/// Size of a table of ranks, and offsets of its fields, in bytes. A table begins with its kind, group and count. A
/// regular mapping has a first rank, a distance and a block size; any other has the address of a list.
const TABLE_BYTES: usize = 40;
const TABLE_GROUP: usize = 4;
const TABLE_COUNT: usize = 8;
const TABLE_FIRST: usize = 12;
const TABLE_DISTANCE: usize = 16;
const TABLE_BLOCK: usize = 20;
const TABLE_LIST: usize = 32;
const NO_TABLE: i32 = 11;
/// Offsets in a group, in bytes: of its size, of the process's rank in it, and of the address of its list of ranks. An
/// entry of the list begins with a rank of the job.
const GROUP_COUNT: usize = 8;
const GROUP_RANK: usize = 12;
const GROUP_LIST: usize = 24;
const GROUP_ENTRY: usize = 16;

/// Layout of the MPICH in a process, and its communicators.
pub struct Mpich<'a> {
    memory: &'a dyn Memory,
    /// The library's variables.
    variables: Vec<Piece>,
    /// Communicators other than the two predefined ones, if there are any.
    communicators: Option<Objects>,
    /// Offset of the size in a communicator. The process's rank follows the size, and the context id precedes it.
    count: usize,
    /// Offset of the table of ranks in a communicator. The table of a remote group follows it.
    table: usize,
    /// The process's rank in the job, and the size of the job.
    rank: u32,
    size: u32,
    tells_contexts: bool,
}

impl<'a> Mpich<'a> {
    /// Learns the layout from the two predefined communicators in the library's variables; `None` if it is ambiguous.
    pub fn learn(memory: &'a dyn Memory, variables: &[Range<u64>]) -> Option<Self> {
        let variables = blocks(memory, variables);
        let (world, alone) = only(variables.iter().filter_map(predefined))?;
        let size_bytes = world.0.len();
        let tables = (0..size_bytes.checked_sub(2 * TABLE_BYTES)?).step_by(4);
        let table = only(tables.filter(|at| is_table(&world, &alone, *at)))?;
        let size = world.number(table + TABLE_COUNT);
        let rank = own_rank(&alone, table);
        let is_count = |at: &usize| {
            let stands = |one: &Piece| [one.number(*at), one.number(at + 4)];
            stands(&world) == [size, rank] && stands(&alone) == [1, 0]
        };
        let has_contexts = |at: &usize| [&world, &alone].map(|one| one.number(at - 4)) == CONTEXTS;
        let counts = || (HEAD_BYTES..table).step_by(4).filter(is_count);
        let numbered = only(counts().filter(has_contexts));
        Some(Self {
            memory,
            communicators: Objects::find(memory, &variables, (COMMUNICATORS, Some(size_bytes))),
            variables,
            count: numbered.or_else(|| only(counts()))?,
            table,
            rank: u32::try_from(rank).ok()?,
            size: u32::try_from(size).ok()?,
            tells_contexts: numbered.is_some(),
        })
    }

    /// The rank of the process in its job, and the size of the job; `None` before `MPI_Init`.
    pub fn world(memory: &dyn Memory, variables: &[Range<u64>]) -> Option<(u32, u32)> {
        let known = Mpich::learn(memory, variables)?;
        Some((known.rank, known.size))
    }

    /// True for a handle of a communicator that is not predefined.
    pub fn is_later_communicator(handle: u32) -> bool {
        is_later(handle, COMMUNICATORS)
    }

    /// True for handles of communicators other than `MPI_COMM_WORLD`, whose ranks can be read.
    pub fn is_of_some(handle: u32) -> bool {
        handle == ALONE.cast_unsigned() || Self::is_later_communicator(handle)
    }

    /// Number of ranks in the job.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// The members of a communicator; `None` if it is not found.
    pub fn members(&self, handle: u32) -> Option<Members> {
        if handle == ALONE.cast_unsigned() {
            return Some(Members::Of(vec![self.rank]));
        }
        self.members_of(&self.communicator(handle)?)
    }

    fn members_of(&self, one: &Piece) -> Option<Members> {
        let own = usize::try_from(one.number(self.count + 4)).ok()?;
        let is_own = |ranks: &Vec<u32>| ranks.get(own) == Some(&self.rank);
        let named = self.table;
        let ours = named + TABLE_BYTES;
        let is_of_one_group = one.number(ours) == NO_TABLE;
        let theirs = match one.number(named + TABLE_GROUP) {
            0 => self.ranks(one, named),
            // The processes of a spawned or connected job form a group of their own.
            1.. if !is_of_one_group => {
                return self
                    .ranks(one, ours)
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
        let ours = self.ranks(one, ours).filter(is_own)?;
        Some(Members::Between(ours, theirs))
    }

    /// The members of a group, as ranks of the job; `None` if it is not found.
    pub fn group(&self, handle: u32) -> Option<Members> {
        let (_, group) = self.groups()?.object(self.memory, handle)?;
        self.ranks_of_group(&group).map(Members::Of)
    }

    /// The ranks of the group at an address; `None` if there is none.
    fn group_at(&self, address: u64) -> Option<Vec<u32>> {
        let handle = Piece::read(self.memory, address, 4)?.number(0);
        let found = self.groups()?.object(self.memory, handle.cast_unsigned());
        let (_, group) = found.filter(|(at, _)| *at == address)?;
        self.ranks_of_group(&group)
    }

    /// The communicator of the file at an address; `None` if it is not found. The file has its handle.
    pub fn of_file(&self, file: u64) -> Option<u32> {
        let file = Piece::read_some(self.memory, file, FILE_BYTES)?;
        let numbers = (0..file.len() / 4).map(|at| file.number(4 * at).cast_unsigned());
        let mut handles = numbers.filter(|handle| Self::is_later_communicator(*handle));
        handles.find(|handle| self.members(*handle).is_some())
    }

    fn groups(&self) -> Option<Objects> {
        Objects::find(self.memory, &self.variables, (GROUPS, None))
    }

    fn ranks_of_group(&self, group: &Piece) -> Option<Vec<u32>> {
        let count = group.number(GROUP_COUNT);
        let count = usize::try_from(count)
            .ok()
            .filter(|it| (1..=self.size()).contains(it))?;
        let list = Piece::read(self.memory, group.word(GROUP_LIST), count * GROUP_ENTRY)?;
        let entries = (0..count).map(|at| list.word(at * GROUP_ENTRY));
        let ranks: Option<Vec<u32>> = entries
            .map(|rank| u32::try_from(rank).ok().filter(|rank| *rank < self.size))
            .collect();
        let ranks = ranks.filter(|ranks| are_distinct(ranks))?;
        let own = usize::try_from(group.number(GROUP_RANK));
        let is_own = match own {
            Ok(own) => ranks.get(own) == Some(&self.rank),
            Err(_) => !ranks.contains(&self.rank),
        };
        is_own.then_some(ranks)
    }

    /// True if a communicator has processes of other jobs.
    pub fn has_other_jobs(&self) -> bool {
        let mut all = self
            .communicators
            .iter()
            .flat_map(|all| all.all(self.memory, COMMUNICATORS_MAX));
        all.any(|one| matches!(self.members_of(&one), Some(Members::WithOtherJobs)))
    }

    /// The context id of an intracommunicator, equal at all its ranks; `None` if the communicator or its id is not
    /// found.
    pub fn context(&self, handle: u32) -> Option<i64> {
        self.context_of(&self.communicator(handle)?).map(i64::from)
    }

    fn communicator(&self, handle: u32) -> Option<Piece> {
        let all = self.communicators.as_ref()?;
        Some(all.object(self.memory, handle)?.1)
    }

    fn context_of(&self, one: &Piece) -> Option<u16> {
        let number = one.number(self.count.checked_sub(4)?).cast_unsigned();
        // The context id is stored twice: for sends and for receives.
        let halves = [number & 0xffff, number >> 16];
        let context = u16::try_from(halves[0]).ok();
        context.filter(|_| self.tells_contexts && halves[0] == halves[1])
    }

    /// The ranks of the job in a table; `None` if they are not distinct ranks of the job.
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
        ranks.filter(|ranks| are_distinct(ranks))
    }
}

fn are_distinct(ranks: &[u32]) -> bool {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// The library's variables, within the limit.
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

/// The predefined communicators in a block of variables: of equal size, adjacent, each with its name at the same
/// offset. `None` if the block does not have them.
fn predefined(block: &Piece) -> Option<(Piece, Piece)> {
    let places = |handle, area: Range<usize>| {
        let places = area.step_by(WORD);
        places.filter(move |at| block.number(*at) == handle)
    };
    let end = block.0.len();
    places(WORLD, 0..end).find_map(|world| {
        let near = world + WORD..end.min(world + COMMUNICATOR_BYTES_MAX);
        let alone = places(ALONE, near).next()?;
        let bytes = alone - world;
        let (of_all, of_one) = (
            block.0.get(world..alone)?,
            block.0.get(alone..alone + bytes)?,
        );
        let mut names = of_all.windows(WORLD_NAME.len());
        let name = names.position(|part| part == WORLD_NAME)?;
        let is_named = of_one.get(name..)?.starts_with(ALONE_NAME);
        is_named.then(|| (Piece(of_all.to_vec()), Piece(of_one.to_vec())))
    })
}

/// True if offset `at` is plausible for the table of ranks, in both `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
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

/// The rank of the process in its job, from the table of ranks of `MPI_COMM_SELF`.
fn own_rank(alone: &Piece, table: usize) -> i32 {
    match alone.number(table) {
        0 | 1 => 0,
        _ => alone.number(table + TABLE_FIRST),
    }
}
