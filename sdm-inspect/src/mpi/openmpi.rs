//! Ranks of Open MPI's communicators, and the messages of its requests, read from its memory.
//!
//! The structures differ between versions and configurations, and debug information is seldom installed. So the layout
//! is learned from communicators that are fully known. `MPI_COMM_WORLD` has a list of process objects; each object
//! contains the rank of its process, which is its position in the list. With few ranks other memory can look like such
//! a list by chance. Then the library's empty group shows the position of a group's size and rank, and a process is
//! identified by its address. Later reads by that layout are trusted only if they are consistent: processes are of that
//! list, and a message's rank is its process's position in the communicator.

mod files;
#[cfg(test)]
mod tests;
mod unexpected;
mod windows;

pub use files::communicator_of_file;
pub use unexpected::arrived_of_collectives;
use xxhash_rust::xxh3::xxh3_64;

use super::{Communicator, Direction, Members, Message, Piece, WORD, WORLD_NAME, only};
use crate::memory::Memory;

/// Maximum number of bytes of a name that are examined.
const NAME_BYTES: usize = 64;
/// Prefix of communicator names that Open MPI assigns itself.
const NAMED_BY_LIBRARY: &[u8] = b"MPI COMM";
/// Prefix of the class names of non-blocking collective requests.
const COLLECTIVE: &str = "ompi_coll_";
/// Class name of the requests that create communicators, and prefix of those of the data of a copy.
const CREATING: &str = "ompi_comm_request_t";
const OF_COPY: &str = "ompi_comm_idup";
/// Size of the data of a copy, and offset of the communicator that is copied, in bytes.
const COPY_BYTES: usize = 32;
const COPIED: usize = 16;
/// Offset of the size of a class's objects in the class, in bytes.
const CLASS_SIZE: usize = 56;
/// Bytes that are read of a communicator, a group, a process and a request.
const COMMUNICATOR_BYTES: usize = 512;
const GROUP_BYTES: usize = 96;
const PROCESS_BYTES: usize = 128;
const REQUEST_BYTES: usize = 1024;
/// Number of bytes at the start of a request that contain its state.
const STATE_BYTES: usize = 256;
/// Minimum number of ranks with which a matching list is no coincidence.
const RANKS_MIN: usize = 4;
/// The rank in a group of a process that is not its member (`MPI_UNDEFINED`).
const UNDEFINED: i32 = -32766;
const RANKS_MAX: usize = 1 << 20;
/// Number of processes at the start of a list that are examined to learn the layout; the last one is examined too.
const CHECKED: usize = 64;

/// Offsets of the fields in Open MPI's structures, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RankLayout {
    /// Offsets of a communicator's groups: the same group twice in an intracommunicator.
    groups: Vec<usize>,
    count: usize,
    processes: usize,
    told_by: RankSource,
}

/// The means to find a process's rank in its job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RankSource {
    /// Offset of the rank in the process's object; the job's number precedes it.
    Number(usize),
    /// The rank is the position of the process's object in this list of addresses.
    Place(Vec<u64>),
}

/// Addresses of Open MPI's predefined objects in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredefinedObjects {
    /// The address of `MPI_COMM_WORLD`.
    pub world: u64,
    /// The address of `MPI_COMM_SELF`.
    pub alone: u64,
    /// The address of `MPI_GROUP_EMPTY`; `None` if the library has no symbol for it.
    pub empty: Option<u64>,
}

impl PredefinedObjects {
    /// The address of a communicator that a call names; `None` if it is not known.
    #[must_use]
    pub fn address(&self, communicator: Option<Communicator>, is_world: bool) -> Option<u64> {
        match communicator {
            Some(Communicator::At(address)) => Some(address),
            _ => is_world.then_some(self.world),
        }
    }
}

/// Offset of a communicator's name, in bytes: the name itself (Open MPI 4), or a pointer to it (5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameAt {
    Place(usize),
    Pointer(usize),
}

impl NameAt {
    /// Learns the offset from `MPI_COMM_WORLD`, whose name is known; `None` if the name is not found.
    fn learn(memory: &dyn Memory, world: &Piece) -> Option<Self> {
        let mut parts = world.0.windows(WORLD_NAME.len());
        if let Some(at) = parts.position(|part| part == WORLD_NAME) {
            return Some(Self::Place(at));
        }
        let mut words = (0..COMMUNICATOR_BYTES).step_by(WORD);
        let is_name = |at: &usize| {
            let mut name = [0; WORLD_NAME.len()];
            memory.read(world.word(*at), &mut name).is_some() && name == *WORLD_NAME
        };
        words.find(is_name).map(Self::Pointer)
    }
}

/// Layout of the Open MPI in a process.
pub struct OpenMpi<'a> {
    memory: &'a dyn Memory,
    layout: RankLayout,
    name: Option<NameAt>,
    /// Number of ranks in the job.
    size: usize,
    job: u32,
}

impl<'a> OpenMpi<'a> {
    /// Learns the layout from `MPI_COMM_WORLD`, `MPI_COMM_SELF` and, with few ranks, the empty group; `None` if it is
    /// ambiguous.
    pub fn learn(memory: &'a dyn Memory, objects: PredefinedObjects) -> Option<Self> {
        Self::learn_many(memory, objects).or_else(|| Self::learn_few(memory, objects))
    }

    fn learn_many(memory: &'a dyn Memory, objects: PredefinedObjects) -> Option<Self> {
        let head = Piece::read(memory, objects.world, COMMUNICATOR_BYTES)?;
        let of_one = Piece::read(memory, objects.alone, COMMUNICATOR_BYTES)?;
        let mut learned: Option<(RankLayout, usize, u32)> = None;
        for at in (0..COMMUNICATOR_BYTES).step_by(WORD) {
            let group = Piece::read(memory, head.word(at), GROUP_BYTES);
            let one = Piece::read(memory, of_one.word(at), GROUP_BYTES);
            let Some((group, one)) = group.zip(one) else {
                continue;
            };
            let places = places().filter(|(count, _)| one.number(*count) == 1);
            for (count, processes) in places {
                let Some(found) = numbered(memory, &group, (count, processes)) else {
                    continue;
                };
                let (number, size, job) = found;
                let mut layout = RankLayout {
                    groups: vec![at],
                    count,
                    processes,
                    told_by: RankSource::Number(number),
                };
                if let Some((known, ..)) = &learned {
                    layout.groups = [&known.groups[..], &[at]].concat();
                    let is_same = (known.count, known.processes, &known.told_by)
                        == (layout.count, layout.processes, &layout.told_by);
                    if !is_same {
                        return None;
                    }
                }
                learned = Some((layout, size, job));
            }
        }
        let (layout, size, job) = learned?;
        Some(Self {
            memory,
            layout,
            name: NameAt::learn(memory, &head),
            size,
            job,
        })
    }

    fn learn_few(memory: &'a dyn Memory, objects: PredefinedObjects) -> Option<Self> {
        let found = Groups::learn(memory, objects)?;
        let (size, rank) = found.world;
        let [world, alone] = [objects.world, objects.alone].map(|communicator| {
            let head = Piece::read(memory, communicator, COMMUNICATOR_BYTES)?;
            Piece::read(memory, head.word(*found.at.first()?), GROUP_BYTES)
        });
        let (world, alone) = (world?, alone?);
        let mut lists = (found.count + WORD..GROUP_BYTES).step_by(WORD);
        let list = |at: &usize| {
            let list = words(memory, world.word(*at), size)?;
            let one = words(memory, alone.word(*at), 1)?;
            let mut distinct = list.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let is_list = distinct.len() == size && list.iter().all(|it| is_address(*it));
            (is_list && list.get(rank) == one.first()).then_some(list)
        };
        // The list is the first matching pointer. Later ones lead to data that groups share.
        let processes = lists.find(|at| list(at).is_some())?;
        let head = Piece::read(memory, objects.world, COMMUNICATOR_BYTES)?;
        Some(Self {
            memory,
            layout: RankLayout {
                groups: found.at,
                count: found.count,
                processes,
                told_by: RankSource::Place(list(&processes)?),
            },
            name: NameAt::learn(memory, &head),
            size,
            job: 0,
        })
    }

    /// The rank of the process in its job, and the size of the job, for jobs of any size. `None` before `MPI_Init`, and
    /// if the library has no symbol for its empty group.
    pub fn world(memory: &dyn Memory, objects: PredefinedObjects) -> Option<(u32, u32)> {
        let (size, rank) = Groups::learn(memory, objects)?.world;
        Some((u32::try_from(rank).ok()?, u32::try_from(size).ok()?))
    }

    /// Number of ranks in the job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The members of a communicator; `None` if it is not found.
    pub fn members(&self, communicator: u64) -> Option<Members> {
        let head = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let groups = self.layout.groups.iter().map(|at| head.word(*at));
        let mut groups: Vec<u64> = groups.collect();
        groups.dedup();
        match groups[..] {
            [one] => self.ranks_of_group(one).map(Members::Of),
            [ours, theirs] => {
                let ours = self.ranks_of_group(ours)?;
                let all = self.group(theirs, RANKS_MAX)?;
                let is_told = all.iter().all(|process| is_address(*process));
                match self.ranks_of_group(theirs) {
                    Some(theirs) => Some(Members::Between(ours, theirs)),
                    None => is_told.then_some(Members::WithOtherJobs),
                }
            }
            _ => None,
        }
    }

    /// The ranks in the job of the group at an address; `None` if there is none.
    pub fn ranks_of_group(&self, group: u64) -> Option<Vec<u32>> {
        let processes = self.group(group, RANKS_MAX)?.into_iter();
        processes.map(|process| self.rank(process)).collect()
    }

    /// A number that identifies a communicator at all its ranks: the hash of the name that Open MPI gives it, which
    /// includes the context id. `None` for one that the program has named.
    pub fn context(&self, communicator: u64) -> Option<i64> {
        let block = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let name = match self.name? {
            NameAt::Place(at) => Piece(block.0.get(at..)?.to_vec()),
            NameAt::Pointer(at) => Piece::read(self.memory, block.word(at), NAME_BYTES)?,
        };
        let name = name.0.split(|byte| *byte == 0).next()?;
        name.starts_with(NAMED_BY_LIBRARY)
            .then(|| (xxh3_64(name) >> 1).cast_signed())
    }

    /// The message of a request; `None` unless it names a peer.
    pub fn message(&self, request: u64) -> Option<Message> {
        let block = self.object(request, REQUEST_BYTES)?;
        let words = block.words().take(STATE_BYTES / WORD);
        let communicators = words.filter_map(|word| Some((word, self.processes(word)?)));
        let communicators: Vec<(u64, Vec<u64>)> = communicators.collect();
        let fits = |at: usize| {
            let place = usize::try_from(block.number(at - WORD)).ok()?;
            let process = block.word(at);
            let mut all = communicators.iter();
            let its = all.find(|(_, list)| list.get(place) == Some(&process));
            its.map(|(communicator, _)| (at, (*communicator, place)))
        };
        // A pattern that is found twice may be a coincidence once.
        let (at, within) = only((WORD..block.len()).step_by(WORD).filter_map(fits))?;
        Some(Message {
            peer: self.rank(block.word(at))?,
            tag: block.number(at - WORD + 4),
            direction: self.direction(&block),
            within,
        })
    }

    /// The communicator of a request of a nonblocking collective operation; `None` for other requests.
    pub fn collective(&self, request: u64) -> Option<u64> {
        let block = Piece::read(self.memory, request, STATE_BYTES)?;
        let class = self.class_of(&block)?;
        let mut words = block.words();
        match () {
            () if class.starts_with(COLLECTIVE) => {
                words.find(|word| self.processes(*word).is_some())
            }
            () if class == CREATING => words.find_map(|word| copied(self, word)),
            () => None,
        }
    }

    /// Reads an object, with the size that its class records, because another object of the class often follows it. If
    /// the recorded size is not below `most` bytes, `most` bytes are read. `None` if the memory is unreadable.
    fn object(&self, address: u64, most: usize) -> Option<Piece> {
        let head = Piece::read(self.memory, address, WORD)?;
        let class = Piece::read(self.memory, head.word(0), CLASS_SIZE + WORD);
        let size = class.and_then(|class| usize::try_from(class.word(CLASS_SIZE)).ok());
        let size = size.filter(|size| (2 * WORD..most).contains(size));
        Piece::read(self.memory, address, size.unwrap_or(most))
    }

    /// The name of an object's class; `None` if it cannot be read. An object begins with a pointer to its class, and a
    /// class with a pointer to its name.
    fn class_of(&self, object: &Piece) -> Option<String> {
        let class = Piece::read(self.memory, object.word(0), WORD)?;
        let mut name = Vec::new();
        for at in 0..NAME_BYTES as u64 {
            let mut byte = [0];
            self.memory
                .read(class.word(0).checked_add(at)?, &mut byte)?;
            if byte[0] == 0 {
                return String::from_utf8(name).ok();
            }
            name.push(byte[0]);
        }
        None
    }

    /// The direction of a request's message; `None` if the request is neither a send nor a receive.
    fn direction(&self, request: &Piece) -> Option<Direction> {
        let class = self.class_of(request)?;
        match () {
            () if class.ends_with("_send_request_t") => Some(Direction::Sent),
            () if class.ends_with("_recv_request_t") => Some(Direction::Received),
            () => None,
        }
    }

    /// True if the state of a request points into this part of a stack: a thread with this stack waits for the
    /// request.
    pub fn is_waited_for(&self, request: u64, stack: std::ops::Range<u64>) -> bool {
        let block = Piece::read(self.memory, request, STATE_BYTES);
        block.is_some_and(|block| block.words().any(|word| stack.contains(&word)))
    }

    fn processes(&self, communicator: u64) -> Option<Vec<u64>> {
        let head = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let group = head.word(*self.layout.groups.first()?);
        if self.layout.groups.iter().any(|at| head.word(*at) != group) {
            return None;
        }
        let list = self.group(group, self.size)?;
        // The first entry shows whether this is a list of processes.
        self.rank(*list.first()?)?;
        Some(list)
    }

    /// The addresses of a group's process objects; `None` if there are more than `most`.
    fn group(&self, address: u64, most: usize) -> Option<Vec<u64>> {
        let group = Piece::read(self.memory, address, GROUP_BYTES)?;
        let count = usize::try_from(group.number(self.layout.count)).ok()?;
        let count = Some(count).filter(|count| (1..=most).contains(count))?;
        words(self.memory, group.word(self.layout.processes), count)
    }

    fn rank(&self, process: u64) -> Option<u32> {
        // An entry in place of a process can be anything.
        let number = match &self.layout.told_by {
            RankSource::Number(number) => *number,
            RankSource::Place(all) => {
                let place = all.iter().position(|it| *it == process)?;
                return u32::try_from(place).ok();
            }
        };
        let name = process.wrapping_add(number as u64 - 4);
        let name = Piece::read(self.memory, name, WORD)?;
        let rank = u32::try_from(name.number(4)).ok()?;
        let is_ours = name.number(0).cast_unsigned() == self.job && (rank as usize) < self.size;
        is_ours.then_some(rank)
    }
}

/// Offsets of the group in a communicator, and of the size in a group, learned from the empty group.
struct Groups {
    /// Offsets of the group in a communicator, in bytes.
    at: Vec<usize>,
    /// Offset of the size in a group, in bytes; the process's own rank follows it.
    count: usize,
    /// Number of ranks in the job, and this process's rank.
    world: (usize, usize),
}

impl Groups {
    fn learn(memory: &dyn Memory, objects: PredefinedObjects) -> Option<Self> {
        let empty = Piece::read(memory, objects.empty?, GROUP_BYTES)?;
        let places = (0..GROUP_BYTES - 4).step_by(4);
        let is_none = |at: &usize| [empty.number(*at), empty.number(at + 4)] == [0, UNDEFINED];
        let count = only(places.filter(is_none))?;
        let head = Piece::read(memory, objects.world, COMMUNICATOR_BYTES)?;
        let of_one = Piece::read(memory, objects.alone, COMMUNICATOR_BYTES)?;
        let told = |head: &Piece, at: usize| {
            let group = Piece::read(memory, head.word(at), GROUP_BYTES)?;
            let size = usize::try_from(group.number(count)).ok()?;
            let rank = usize::try_from(group.number(count + 4)).ok()?;
            (rank < size && size <= RANKS_MAX).then_some((size, rank))
        };
        let mut found: Option<Self> = None;
        for at in (0..COMMUNICATOR_BYTES).step_by(WORD) {
            let world = told(&head, at).filter(|_| told(&of_one, at) == Some((1, 0)));
            let Some(world) = world else {
                continue;
            };
            match &mut found {
                Some(known) if known.world == world => known.at.push(at),
                Some(_) => return None,
                None => {
                    found = Some(Self {
                        at: vec![at],
                        count,
                        world,
                    })
                }
            }
        }
        // An intracommunicator has its group twice.
        found
            .filter(|known| known.at.len() >= 2 && head.word(known.at[0]) == head.word(known.at[1]))
    }
}

/// The communicator that is copied, by the data of the copy at this address; `None` for other addresses.
fn copied(known: &OpenMpi<'_>, address: u64) -> Option<u64> {
    let data = Piece::read(known.memory, address, COPY_BYTES)?;
    let is_copy = known.class_of(&data)?.starts_with(OF_COPY);
    let communicator = data.word(COPIED);
    (is_copy && known.processes(communicator).is_some()).then_some(communicator)
}

/// False for the placeholder of a process that was never sent anything.
fn is_address(process: u64) -> bool {
    process != 0 && process.is_multiple_of(WORD as u64)
}

/// Possible offsets in a group of its process count and its process list.
fn places() -> impl Iterator<Item = (usize, usize)> {
    let counts = (0..GROUP_BYTES).step_by(4);
    counts.flat_map(|count| {
        (0..GROUP_BYTES)
            .step_by(WORD)
            .map(move |list| (count, list))
    })
}

/// Offset in the processes of a group of the number that equals each one's position, the count of processes, and the
/// number of their job. `None` if there is no such offset, or more than one.
fn numbered(
    memory: &dyn Memory,
    group: &Piece,
    (count, processes): (usize, usize),
) -> Option<(usize, usize, u32)> {
    let count = usize::try_from(group.number(count)).ok()?;
    let count = Some(count).filter(|count| (RANKS_MIN..=RANKS_MAX).contains(count))?;
    let list = words(memory, group.word(processes), count)?;
    let checked = (0..count.min(CHECKED)).chain([count - 1]);
    let blocks: Option<Vec<(usize, Piece)>> = checked
        .map(|place| Some((place, Piece::read(memory, list[place], PROCESS_BYTES)?)))
        .collect();
    let blocks = blocks?;
    let job = |at: usize, block: &Piece| block.number(at - 4);
    let first = &blocks[0].1;
    let is_number = |at: &usize| {
        let mut all = blocks.iter();
        all.all(|(place, block)| {
            usize::try_from(block.number(*at)) == Ok(*place) && job(*at, block) == job(*at, first)
        })
    };
    let number = only((4..PROCESS_BYTES).step_by(4).filter(is_number))?;
    Some((number, count, job(number, first).cast_unsigned()))
}

fn words(memory: &dyn Memory, address: u64, count: usize) -> Option<Vec<u64>> {
    let block = Piece::read(memory, address, count * WORD)?;
    Some(block.words().collect())
}
