//! Ranks of Open MPI's communicators, and the messages of its requests, read from its memory.
//!
//! Its structures differ from version to version and by how it was configured, and its debug information is seldom
//! installed. So their layout is learned from the communicators of which everything is known: in that of all,
//! a list of processes is found in which each has its own place as its number. What is read by that layout afterwards
//! is believed only where it fits: processes have to be of that list, and a message's rank has to be the place of its
//! process in the message's communicator.

use xxhash_rust::xxh3::xxh3_64;

use super::{Members, Message, Piece, WORD, WORLD_NAME, only};
use crate::python::Memory;

/// The most of a name that is looked at, in bytes.
const NAME_BYTES: usize = 64;
/// What the names begin with that Open MPI gives to others.
const NAMED_BY_LIBRARY: &[u8] = b"MPI COMM";
/// How much of a communicator, a group, a process and a request is looked at, in bytes.
const COMMUNICATOR_BYTES: usize = 512;
const GROUP_BYTES: usize = 96;
const PROCESS_BYTES: usize = 128;
const REQUEST_BYTES: usize = 1024;
/// The part of a request in which its state stands, in bytes.
const STATE_BYTES: usize = 256;
/// Of fewer ranks a list could be one by chance.
const RANKS_MIN: usize = 4;
const RANKS_MAX: usize = 1 << 20;
/// So many processes at the beginning of a list, and the last one, are looked at while the layout is learned.
const CHECKED: usize = 64;

/// Where in its structures what is looked for stands, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RankLayout {
    /// The groups of a communicator: the same twice, where it is no one between two groups.
    groups: Vec<usize>,
    count: usize,
    processes: usize,
    /// The number of a process in its job; the job's number is in front of it.
    number: usize,
}

/// Where in a communicator its name stands, in bytes: itself (Open MPI 4), or where it is (5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameAt {
    Place(usize),
    Pointer(usize),
}

impl NameAt {
    /// By the communicator of all.
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

/// What is known of a process's Open MPI.
pub(crate) struct OpenMpi<'a> {
    memory: &'a dyn Memory,
    layout: RankLayout,
    name: Option<NameAt>,
    /// How many ranks the job has.
    size: usize,
    job: u32,
}

impl<'a> OpenMpi<'a> {
    /// Learns the layout from the communicator of all and from that of each rank alone, which are at these addresses;
    /// nothing where it is not told apart from other layouts.
    pub(crate) fn learn(memory: &'a dyn Memory, world: u64, alone: u64) -> Option<Self> {
        let head = Piece::read(memory, world, COMMUNICATOR_BYTES)?;
        let of_one = Piece::read(memory, alone, COMMUNICATOR_BYTES)?;
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
                    number,
                };
                if let Some((known, ..)) = &learned {
                    layout.groups = [&known.groups[..], &[at]].concat();
                    let is_same = (known.count, known.processes, known.number)
                        == (layout.count, layout.processes, layout.number);
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

    /// How many ranks the job has.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The ranks of a communicator as ranks of the job, in its order.
    pub(crate) fn members(&self, communicator: u64) -> Option<Members> {
        let head = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let groups = self.layout.groups.iter().map(|at| head.word(*at));
        let mut groups: Vec<u64> = groups.collect();
        groups.dedup();
        let ranks = |group: &u64| -> Option<Vec<u32>> {
            let processes = self.group(*group, RANKS_MAX)?.into_iter();
            processes.map(|process| self.rank(process)).collect()
        };
        match groups[..] {
            [one] => ranks(&one).map(Members::Of),
            [ours, theirs] => {
                let ours = ranks(&ours)?;
                self.group(theirs, RANKS_MAX)?;
                Some(match ranks(&theirs) {
                    Some(theirs) => Members::Between(ours, theirs),
                    None => Members::WithOtherJobs,
                })
            }
            _ => None,
        }
    }

    /// What tells a communicator from others at all its ranks: Open MPI's own name of it, which has its number in it, as a number. Nothing of
    /// one that the program has named.
    pub(crate) fn context(&self, communicator: u64) -> Option<i64> {
        let block = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let name = match self.name? {
            NameAt::Place(at) => Piece(block.0.get(at..)?.to_vec()),
            NameAt::Pointer(at) => Piece::read(self.memory, block.word(at), NAME_BYTES)?,
        };
        let name = name.0.split(|byte| *byte == 0).next()?;
        name.starts_with(NAMED_BY_LIBRARY)
            .then(|| (xxh3_64(name) >> 1).cast_signed())
    }

    /// The message of a request.
    pub(crate) fn message(&self, request: u64) -> Option<Message> {
        let block = Piece::read(self.memory, request, REQUEST_BYTES)?;
        let communicators = block.words().take(STATE_BYTES / WORD);
        let mut lists: Vec<Vec<u64>> = Vec::new();
        for list in communicators.filter_map(|it| self.processes(it)) {
            if !lists.contains(&list) {
                lists.push(list);
            }
        }
        let fits = |at: &usize| {
            let place = usize::try_from(block.number(at - WORD)).ok();
            let process = |list: &Vec<u64>| place.and_then(|place| list.get(place).copied());
            lists
                .iter()
                .any(|list| process(list) == Some(block.word(*at)))
        };
        // What is found twice may be something else once.
        let at = only((WORD..REQUEST_BYTES).step_by(WORD).filter(fits))?;
        Some(Message {
            peer: self.rank(block.word(at))?,
            tag: block.number(at - WORD + 4),
        })
    }

    /// True where the state of a request leads to this part of the stack: to where a thread waits for it.
    pub(crate) fn is_waited_for(&self, request: u64, stack: std::ops::Range<u64>) -> bool {
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
        // The first one tells what is no list at all.
        self.rank(*list.first()?)?;
        Some(list)
    }

    /// The processes of a group, which are no more than so many.
    fn group(&self, address: u64, most: usize) -> Option<Vec<u64>> {
        let group = Piece::read(self.memory, address, GROUP_BYTES)?;
        let count = usize::try_from(group.number(self.layout.count)).ok()?;
        let count = Some(count).filter(|count| (1..=most).contains(count))?;
        words(self.memory, group.word(self.layout.processes), count)
    }

    fn rank(&self, process: u64) -> Option<u32> {
        // What stands where a process is expected may be anything.
        let name = process.wrapping_add(self.layout.number as u64 - 4);
        let name = Piece::read(self.memory, name, WORD)?;
        let rank = u32::try_from(name.number(4)).ok()?;
        let is_ours = name.number(0).cast_unsigned() == self.job && (rank as usize) < self.size;
        is_ours.then_some(rank)
    }
}

/// Where in a group the count of its processes and their list can be.
fn places() -> impl Iterator<Item = (usize, usize)> {
    let counts = (0..GROUP_BYTES).step_by(4);
    counts.flat_map(|count| {
        (0..GROUP_BYTES)
            .step_by(WORD)
            .map(move |list| (count, list))
    })
}

/// Where the processes of a group have their places as numbers, how many they are, and the number of their job.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::pieces::Pieces;

    impl Pieces {
        /// A communicator with these ranks.
        fn communicator(&mut self, address: u64, ranks: &[u32]) {
            let group = address + 0x10000;
            let list = address + 0x20000;
            self.set(address, 248, &group.to_ne_bytes());
            self.set(address, 256, &group.to_ne_bytes());
            let count = u32::try_from(ranks.len()).unwrap();
            self.set(group, 16, &count.to_ne_bytes());
            self.set(group, 32, &list.to_ne_bytes());
            for (at, rank) in ranks.iter().enumerate() {
                self.set(list, at * WORD, &process(*rank).to_ne_bytes());
            }
        }
    }

    fn process(rank: u32) -> u64 {
        0x100_0000 + u64::from(rank) * 0x1000
    }

    const WORLD: u64 = 0x200_0000;
    const HALF: u64 = 0x300_0000;
    const ALONE: u64 = 0x600_0000;
    const REQUEST: u64 = 0x400_0000;

    fn memory() -> Pieces {
        let mut memory = Pieces::default();
        for rank in 0..8 {
            memory.set(process(rank), 40, &77_u32.to_ne_bytes());
            memory.set(process(rank), 44, &rank.to_ne_bytes());
        }
        memory.communicator(WORLD, &[0, 1, 2, 3, 4, 5, 6, 7]);
        memory.communicator(HALF, &[7, 5, 6]);
        memory.communicator(ALONE, &[5]);
        // The rank's own number in the group is no count of it.
        memory.set(WORLD + 0x10000, 20, &5_u32.to_ne_bytes());
        memory
    }

    #[test]
    fn the_ranks_of_a_communicator_are_those_of_the_job() {
        let mut memory = memory();
        // One between two groups.
        memory.communicator(0x500_0000, &[1, 2]);
        memory.set(0x500_0000, 256, &(HALF + 0x10000).to_ne_bytes());
        let known = OpenMpi::learn(&memory, WORLD, ALONE).unwrap();
        assert_eq!(known.size(), 8);
        assert_eq!(known.members(HALF), Some(Members::Of(vec![7, 5, 6])));
        assert_eq!(known.members(WORLD), Some(Members::Of((0..8).collect())));
        let between = Members::Between(vec![1, 2], vec![7, 5, 6]);
        assert_eq!(known.members(0x500_0000), Some(between));
        assert_eq!(known.members(REQUEST), None);
    }

    #[test]
    fn communicators_of_the_same_ranks_are_told_apart_by_the_librarys_names() {
        const NAME: usize = 80;
        const NAMES: u64 = 0x700_0000;
        for is_pointer in [false, true] {
            let mut memory = memory();
            let mut name = |address: u64, at: u64, name: &[u8]| match is_pointer {
                true => {
                    memory.set(address, NAME, &(NAMES + at).to_ne_bytes());
                    memory.set(NAMES + at, 0, name);
                }
                false => memory.set(address, NAME, name),
            };
            name(WORLD, 0, WORLD_NAME);
            name(HALF, 0x1000, b"MPI COMMUNICATOR 3 DUP FROM 0\0");
            name(0x510_0000, 0x2000, b"MPI COMMUNICATOR 4 DUP FROM 0\0");
            name(0x520_0000, 0x3000, b"rows\0");
            let known = OpenMpi::learn(&memory, WORLD, ALONE).unwrap();
            let contexts = [HALF, 0x510_0000, 0x520_0000].map(|one| known.context(one));
            assert!(contexts[0].is_some() && contexts[0] != contexts[1]);
            assert!(contexts[1].is_some());
            assert_eq!(contexts[2], None, "the program may call several so");
        }
    }

    #[test]
    fn processes_of_another_job_have_no_rank_in_this_one() {
        let mut memory = memory();
        memory.set(process(20), 40, &78_u32.to_ne_bytes());
        memory.set(process(20), 44, &1_u32.to_ne_bytes());
        memory.communicator(0x500_0000, &[7, 20]);
        // What ranks of this job have spawned.
        memory.communicator(0x520_0000, &[20]);
        memory.communicator(0x510_0000, &[0, 1]);
        memory.set(0x510_0000, 256, &(0x520_0000_u64 + 0x10000).to_ne_bytes());
        let known = OpenMpi::learn(&memory, WORLD, ALONE).unwrap();
        assert_eq!(known.members(0x500_0000), None);
        assert_eq!(known.members(0x510_0000), Some(Members::WithOtherJobs));
    }

    #[test]
    fn a_message_is_believed_where_all_of_it_fits() {
        let mut memory = memory();
        memory.set(REQUEST, 176, &HALF.to_ne_bytes());
        memory.set(REQUEST, 472, &1_i32.to_ne_bytes());
        memory.set(REQUEST, 476, &99_i32.to_ne_bytes());
        memory.set(REQUEST, 480, &process(5).to_ne_bytes());
        // A process with another number in front of it is something else.
        memory.set(REQUEST, 600, &process(6).to_ne_bytes());
        memory.set(REQUEST, 64, &0x7000_u64.to_ne_bytes());
        let message = Message { peer: 5, tag: 99 };
        {
            let known = OpenMpi::learn(&memory, WORLD, ALONE).unwrap();
            assert_eq!(known.message(REQUEST), Some(message));
            assert!(known.is_waited_for(REQUEST, 0x6000..0x8000));
            assert!(!known.is_waited_for(REQUEST, 0x8000..0x9000));
        }
        memory.set(REQUEST, 472, &2_i32.to_ne_bytes());
        let known = OpenMpi::learn(&memory, WORLD, ALONE).unwrap();
        assert_eq!(known.message(REQUEST), None);
    }

    #[test]
    fn without_a_list_of_all_nothing_is_learned() {
        let mut memory = memory();
        memory.set(process(3), 44, &4_u32.to_ne_bytes());
        assert!(OpenMpi::learn(&memory, WORLD, ALONE).is_none());
        let few = [0, 1, 2];
        let mut memory = Pieces::default();
        for rank in few {
            memory.set(process(rank), 44, &rank.to_ne_bytes());
        }
        memory.communicator(WORLD, &few);
        memory.communicator(ALONE, &[1]);
        assert!(OpenMpi::learn(&memory, WORLD, ALONE).is_none());
    }
}
