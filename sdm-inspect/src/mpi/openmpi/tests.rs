//! Tests with synthetic memory of jobs with many and with few ranks.

mod mutated;

use sdm_mpi::ArgumentRole;

use super::*;
pub(super) use crate::mpi::pieces::MemoryPieces;

impl MemoryPieces {
    /// Writes a communicator with these ranks.
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

pub(super) const WORLD: u64 = 0x200_0000;
pub(super) const HALF: u64 = 0x300_0000;
const ALONE: u64 = 0x600_0000;
const REQUEST: u64 = 0x400_0000;
const EMPTY: u64 = 0x800_0000;
pub(super) const OBJECTS: PredefinedObjects = PredefinedObjects {
    world: WORLD,
    alone: ALONE,
    empty: Some(EMPTY),
};

pub(super) fn memory() -> MemoryPieces {
    let mut memory = MemoryPieces::default();
    for rank in 0..8 {
        memory.set(process(rank), 40, &77_u32.to_ne_bytes());
        memory.set(process(rank), 44, &rank.to_ne_bytes());
    }
    memory.communicator(WORLD, &[0, 1, 2, 3, 4, 5, 6, 7]);
    memory.communicator(HALF, &[7, 5, 6]);
    memory.communicator(ALONE, &[5]);
    // The process's own rank in the group must not be taken for the group's size.
    memory.set(WORLD + 0x10000, 20, &5_u32.to_ne_bytes());
    memory
}

#[test]
fn communicator_ranks_are_translated_to_job_ranks() {
    let mut memory = memory();
    // An intercommunicator.
    memory.communicator(0x500_0000, &[1, 2]);
    memory.set(0x500_0000, 256, &(HALF + 0x10000).to_ne_bytes());
    let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
    assert_eq!(known.size(), 8);
    assert_eq!(known.members(HALF), Some(Members::Of(vec![7, 5, 6])));
    assert_eq!(known.members(WORLD), Some(Members::Of((0..8).collect())));
    let between = Members::Between(vec![1, 2], vec![7, 5, 6]);
    assert_eq!(known.members(0x500_0000), Some(between));
    assert_eq!(known.members(REQUEST), None);
}

#[test]
fn communicators_of_equal_groups_are_distinguished_by_name() {
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
        let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
        let contexts = [HALF, 0x510_0000, 0x520_0000].map(|one| known.context(one));
        assert!(contexts[0].is_some() && contexts[0] != contexts[1]);
        assert!(contexts[1].is_some());
        assert_eq!(contexts[2], None, "the program may call several so");
    }
}

#[test]
fn process_of_another_job_has_no_rank() {
    let mut memory = memory();
    memory.set(process(20), 40, &78_u32.to_ne_bytes());
    memory.set(process(20), 44, &1_u32.to_ne_bytes());
    memory.communicator(0x500_0000, &[7, 20]);
    // An intercommunicator with spawned processes.
    memory.communicator(0x520_0000, &[20]);
    memory.communicator(0x510_0000, &[0, 1]);
    memory.set(0x510_0000, 256, &(0x520_0000_u64 + 0x10000).to_ne_bytes());
    let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
    assert_eq!(known.members(0x500_0000), None);
    assert_eq!(known.members(0x510_0000), Some(Members::WithOtherJobs));
}

/// A request of a receive from rank 1 of `HALF`, with tag 99.
fn with_request() -> MemoryPieces {
    let mut memory = memory();
    memory.set(REQUEST, 176, &HALF.to_ne_bytes());
    memory.set(REQUEST, 472, &1_i32.to_ne_bytes());
    memory.set(REQUEST, 476, &99_i32.to_ne_bytes());
    memory.set(REQUEST, 480, &process(5).to_ne_bytes());
    // A process pointer that does not fit the number in front of it.
    memory.set(REQUEST, 600, &process(6).to_ne_bytes());
    memory.set(REQUEST, 64, &0x7000_u64.to_ne_bytes());
    // The class tells the direction.
    memory.set(REQUEST, 0, &0x900_0000_u64.to_ne_bytes());
    memory.set(0x900_0000, 0, &0x910_0000_u64.to_ne_bytes());
    memory.set(0x910_0000, 0, b"mca_pml_ob1_recv_request_t\0");
    memory
}

const MESSAGE: Message = Message {
    peer: 5,
    tag: 99,
    direction: Some(Direction::Received),
    within: (HALF, 1),
};

#[test]
fn open_mpi_receive_is_read_only_if_consistent() {
    let mut memory = with_request();
    let message = MESSAGE;
    {
        let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
        assert_eq!(known.message(REQUEST), Some(message));
        assert!(known.is_waited_for(REQUEST, 0x6000..0x8000));
        assert!(!known.is_waited_for(REQUEST, 0x8000..0x9000));
    }
    // Another request with the same peer follows it: the class tells where this one ends.
    memory.set(REQUEST, 768, &1_i32.to_ne_bytes());
    memory.set(REQUEST, 776, &process(5).to_ne_bytes());
    memory.set(0x900_0000, CLASS_SIZE, &640_u64.to_ne_bytes());
    {
        let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
        assert_eq!(known.message(REQUEST), Some(message));
    }
    memory.set(REQUEST, 472, &2_i32.to_ne_bytes());
    let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
    assert_eq!(known.message(REQUEST), None);
}

#[test]
fn layout_is_refused_without_the_process_list() {
    let mut memory = memory();
    memory.set(process(3), 44, &4_u32.to_ne_bytes());
    assert!(OpenMpi::learn(&memory, OBJECTS).is_none());
    // In a job of few ranks nothing is learned without the empty group.
    let memory = few(3, 1);
    let objects = PredefinedObjects {
        empty: None,
        ..OBJECTS
    };
    assert!(OpenMpi::learn(&memory, objects).is_none());
}

/// The memory of rank `own` in a job of `size` ranks, for small jobs.
fn few(size: u32, own: u32) -> MemoryPieces {
    let mut memory = MemoryPieces::default();
    let ranks: Vec<u32> = (0..size).collect();
    memory.communicator(WORLD, &ranks);
    memory.communicator(ALONE, &[own]);
    memory.set(WORLD + 0x10000, 20, &own.to_ne_bytes());
    memory.set(ALONE + 0x10000, 20, &0_u32.to_ne_bytes());
    memory.set(EMPTY, 16, &0_u32.to_ne_bytes());
    memory.set(EMPTY, 20, &UNDEFINED.to_ne_bytes());
    memory
}

#[test]
fn layout_of_a_small_job_is_learned_from_its_processes() {
    for (size, own) in [(1, 0), (2, 0), (2, 1), (3, 2)] {
        let mut memory = few(size, own);
        assert_eq!(OpenMpi::world(&memory, OBJECTS), Some((own, size)));
        // An intercommunicator with spawned processes, and one between two groups of the job.
        memory.communicator(0x520_0000, &[20, 21]);
        memory.communicator(0x510_0000, &[own]);
        memory.set(0x510_0000, 256, &(0x520_0000_u64 + 0x10000).to_ne_bytes());
        let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
        assert_eq!(known.members(0x510_0000), Some(Members::WithOtherJobs));
        assert_eq!(known.members(WORLD), Some(Members::Of((0..size).collect())));
        if size > 1 {
            memory.communicator(0x540_0000, &[1 - own.min(1)]);
            memory.communicator(0x530_0000, &[own]);
            memory.set(0x530_0000, 256, &(0x540_0000_u64 + 0x10000).to_ne_bytes());
            let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
            let between = Members::Between(vec![own], vec![1 - own.min(1)]);
            assert_eq!(known.members(0x530_0000), Some(between));
        }
    }
}

#[test]
fn rank_before_mpi_init_is_unknown() {
    let mut memory = few(2, 1);
    memory.set(WORLD, 248, &[0; 16]);
    assert_eq!(OpenMpi::world(&memory, OBJECTS), None);
    // A second pointer that looks like a group makes the result ambiguous.
    let mut memory = few(2, 1);
    let other = ALONE + 0x10000;
    memory.set(WORLD, 400, &other.to_ne_bytes());
    memory.set(ALONE, 400, &other.to_ne_bytes());
    assert_eq!(OpenMpi::world(&memory, OBJECTS), None);
}

#[test]
fn communicator_of_a_nonblocking_collective_is_read() {
    let mut memory = memory();
    memory.set(REQUEST, 0, &0x900_0000_u64.to_ne_bytes());
    memory.set(REQUEST, 176, &HALF.to_ne_bytes());
    let of = |memory: &mut MemoryPieces, class: &[u8]| {
        memory.set(0x900_0000, 0, &0x910_0000_u64.to_ne_bytes());
        memory.set(0x910_0000, 0, class);
        let known = OpenMpi::learn(memory, OBJECTS).unwrap();
        known.collective(REQUEST)
    };
    let class = b"ompi_coll_libnbc_request_t\0";
    assert_eq!(of(&mut memory, class), Some(HALF));
    assert_eq!(of(&mut memory, b"mca_pml_ob1_recv_request_t\0"), None);
    memory.set(REQUEST, 176, &process(3).to_ne_bytes());
    assert_eq!(of(&mut memory, class), None);
    // A request that copies a communicator leads to it by data of its own.
    memory.set(REQUEST, 176, &0xd00_0000_u64.to_ne_bytes());
    memory.object(
        0xd00_0000,
        0,
        (0xd10_0000, b"ompi_comm_idup_with_info_context_t\0"),
    );
    memory.set(0xd00_0000, 16, &HALF.to_ne_bytes());
    assert_eq!(of(&mut memory, b"ompi_comm_request_t\0"), Some(HALF));
}

impl MemoryPieces {
    /// An object of a class whose name is stored at another address.
    fn object(&mut self, address: u64, at: usize, (class, name): (u64, &[u8])) {
        self.set(address, at, &class.to_ne_bytes());
        self.set(class, 0, &(class + 0x100).to_ne_bytes());
        self.set(class, 0x100, name);
    }
}

const OF_RANK: (u64, &[u8]) = (0xb20_0000, b"mca_pml_ob1_comm_proc_t\0");
const OF_RANKS: u64 = 0xa30_0000;
const OF_COMMUNICATOR: u64 = 0xa10_0000;

/// A rank, the offset of its object, and its messages: addresses and tags.
type RankObject<'a> = (usize, usize, &'a [(u64, i32)]);

/// Gives the communicator `HALF` the objects of some of its ranks, all in one piece. Each has an empty list of receives
/// and the list of its messages.
fn with_messages(memory: &mut MemoryPieces, ranks: &[RankObject<'_>]) {
    const RANKS: u64 = 0xa20_0000;
    memory.set(HALF, 312, &OF_COMMUNICATOR.to_ne_bytes());
    memory.object(OF_COMMUNICATOR, 0, (0xb10_0000, b"mca_pml_ob1_comm_t\0"));
    memory.set(OF_COMMUNICATOR, 200, &RANKS.to_ne_bytes());
    memory.set(OF_COMMUNICATOR, 208, &3_u64.to_ne_bytes());
    for &(rank, place, messages) in ranks {
        memory.set(RANKS, rank * WORD, &(OF_RANKS + place as u64).to_ne_bytes());
        memory.object(OF_RANKS, place, OF_RANK);
        for (list, items) in [(place + 40, &[][..]), (place + 104, messages)] {
            memory.object(OF_RANKS, list, (0xb30_0000, b"opal_list_t\0"));
            let end = OF_RANKS + list as u64 + 16;
            let next = |item: usize| items.get(item).map_or(end, |it| it.0).to_ne_bytes();
            memory.set(OF_RANKS, list + 32, &next(0));
            for (item, (at, tag)) in items.iter().enumerate() {
                memory.set(*at, 16, &next(item + 1));
                memory.set(*at, 60, &i32::try_from(rank).unwrap().to_ne_bytes());
                memory.set(*at, 64, &tag.to_ne_bytes());
            }
        }
    }
}

#[test]
fn unexpected_messages_are_found_with_their_tags() {
    let mut memory = memory();
    let messages = [(0xa40_0000, 81), (0xa50_0000, 7), (0xa60_0000, -17)];
    with_messages(&mut memory, &[(2, 0, &messages)]);
    let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
    assert_eq!(known.unexpected(HALF, 2), [81, 7]);
    assert_eq!(known.unexpected(HALF, 1), Vec::<i32>::new());
    assert_eq!(known.unexpected(HALF, 9), Vec::<i32>::new());
    assert_eq!(known.unexpected(WORLD, 2), Vec::<i32>::new());
    assert_eq!(arrived_of_collectives(&known, HALF), Some([-17].into()));
    assert_eq!(arrived_of_collectives(&known, WORLD), None);
    let arrived = known.arrived(HALF).into_iter();
    let arrived: Vec<_> = arrived.map(|it| (it.peer, it.tag, it.within)).collect();
    assert_eq!(arrived, [(6, 81, (HALF, 2)), (6, 7, (HALF, 2))]);
}

#[test]
fn posted_receive_is_found_with_its_source() {
    let mut memory = with_request();
    with_messages(&mut memory, &[(1, 0, &[(0xa40_0000, 81)])]);
    let posted = |memory: &MemoryPieces, communicator| {
        let known = OpenMpi::learn(memory, OBJECTS).unwrap();
        known.posted(communicator)
    };
    assert_eq!(posted(&memory, HALF), Some(Vec::new()));
    memory.set(OF_RANKS, 40 + 32, &REQUEST.to_ne_bytes());
    memory.set(REQUEST, 16, &(OF_RANKS + 40 + 16).to_ne_bytes());
    assert_eq!(posted(&memory, HALF), Some(vec![(REQUEST, MESSAGE)]));
    assert_eq!(posted(&memory, WORLD), None);
    // A receive from any rank waits, too.
    memory.object(OF_COMMUNICATOR, 304, (0xb30_0000, b"opal_list_t\0"));
    memory.set(OF_COMMUNICATOR, 304 + 32, &0xa60_0000_u64.to_ne_bytes());
    assert_eq!(posted(&memory, HALF), None);
}

/// The heap often has the object of another rank right behind.
#[test]
fn messages_of_adjacent_rank_objects_are_distinguished() {
    const SIZE: usize = 168;
    let mut memory = memory();
    let ranks: [RankObject<'_>; 2] = [(2, 0, &[(0xa40_0000, 81)]), (1, SIZE + 8, &[])];
    with_messages(&mut memory, &ranks);
    memory.set(OF_RANK.0, CLASS_SIZE, &SIZE.to_ne_bytes());
    let known = OpenMpi::learn(&memory, OBJECTS).unwrap();
    assert_eq!(known.unexpected(HALF, 2), [81]);
    assert_eq!(known.unexpected(HALF, 1), Vec::<i32>::new());
}

const WINDOWS: u64 = 0xc00_0000;
const LIST: u64 = 0xc10_0000;
const WINDOW: u64 = 0xc20_0000;
const MODULE: u64 = 0xc30_0000;
const LOCK: u64 = 0xc40_0000;
const OF_WINDOW: (u64, &[u8]) = (0xc50_0000, b"ompi_win_t\0");

/// The memory with a window of ranks 7, 5 and 6, whose module has a communicator of its own.
fn with_window() -> MemoryPieces {
    let mut memory = memory();
    memory.set(WORLD, 80, WORLD_NAME);
    memory.set(HALF, 80, b"MPI COMMUNICATOR 3 DUP FROM 0\0");
    memory.set(WINDOWS, 120, &LIST.to_ne_bytes());
    // The first entry stands for `MPI_WIN_NULL`.
    memory.set(LIST, 0, &(WINDOW + 0x1000).to_ne_bytes());
    memory.set(LIST, 16, &WINDOW.to_ne_bytes());
    memory.object(WINDOW, 0, OF_WINDOW);
    memory.object(WINDOW + 0x1000, 0, OF_WINDOW);
    memory.set(WINDOW, 400, &MODULE.to_ne_bytes());
    memory.0.insert(MODULE, vec![0; 8192]);
    memory.set(MODULE, 304, &HALF.to_ne_bytes());
    for function in 0..30 {
        let address = 0x7f00_0000_0000_u64 + 0x40 * function;
        memory.set(
            MODULE,
            8 * usize::try_from(function).unwrap(),
            &address.to_ne_bytes(),
        );
    }
    // A pointer beside the module.
    memory.set(WINDOW, 24, &(MODULE + 256).to_ne_bytes());
    memory
}

fn held(memory: &MemoryPieces) -> Vec<Option<u32>> {
    let known = OpenMpi::learn(memory, OBJECTS).unwrap();
    let members = Members::Of(vec![7, 5, 6]);
    let context = known.context(HALF).unwrap();
    assert_eq!(known.window(WINDOW), Some((context, members)));
    let locks = known.window_locks(WINDOWS).into_iter();
    locks
        .map(|lock| {
            assert_eq!(lock.window, context);
            lock.target
        })
        .collect()
}

#[test]
fn window_locks_are_found_in_hash_tables_and_lists() {
    let of_pt2pt = (0xc60_0000_u64, &b"ompi_osc_pt2pt_sync_t\0"[..]);
    let of_rdma = (0xc60_0000_u64, &b"ompi_osc_rdma_sync_t\0"[..]);
    let lock = |memory: &mut MemoryPieces, at: u64, class, numbers: [i32; 2]| {
        memory.object(at, 0, class);
        memory.set(at, 64, &MODULE.to_ne_bytes());
        memory.set(at, 72, &numbers[0].to_ne_bytes());
        memory.set(at, 80, &numbers[1].to_ne_bytes());
        memory.set(at, 64 + 48, &[1]);
    };
    // In a hash table, as in `pt2pt`.
    let with_table = || {
        let mut memory = with_window();
        memory.object(MODULE, 512, (0xc70_0000, b"opal_hash_table_t\0"));
        memory.set(MODULE, 512 + 16, &(LIST + 0x1000).to_ne_bytes());
        memory.set(MODULE, 512 + 24, &4_u64.to_ne_bytes());
        memory.set(LIST + 0x1000, 32 + 24, &LOCK.to_ne_bytes());
        memory
    };
    let mut memory = with_table();
    lock(&mut memory, LOCK, of_pt2pt, [1, 2]);
    assert_eq!(held(&memory), [Some(6)]);
    // An outstanding acknowledgement, an inactive lock, an epoch without a lock, a rank that does not exist.
    memory.set(LOCK, 64 + 44, &1_i32.to_ne_bytes());
    assert_eq!(held(&memory), []);
    memory.set(LOCK, 64 + 44, &[0; 5]);
    assert_eq!(held(&memory), []);
    let mut memory = with_table();
    lock(&mut memory, LOCK, of_pt2pt, [2, 2]);
    assert_eq!(held(&memory), []);
    lock(&mut memory, LOCK, of_pt2pt, [1, 9]);
    assert_eq!(held(&memory), []);
    // A lock of all ranks is in the module itself. `rdma` has a list of locks.
    let mut memory = with_window();
    memory.set(MODULE, 600, &of_rdma.0.to_ne_bytes());
    lock(&mut memory, LOCK, of_rdma, [1, 1]);
    memory.set(MODULE, 1000, &(LIST + 0x1000).to_ne_bytes());
    memory.set(LIST + 0x1000, WORD, &LOCK.to_ne_bytes());
    assert_eq!(held(&memory), [Some(5)]);
    let mut memory = with_window();
    memory.object(MODULE, 1200, of_pt2pt);
    memory.set(MODULE, 1200 + 64, &MODULE.to_ne_bytes());
    memory.set(MODULE, 1200 + 72, &1_i32.to_ne_bytes());
    memory.set(MODULE, 1200 + 80, &(-1_i32).to_ne_bytes());
    memory.set(MODULE, 1200 + 64 + 48, &[1]);
    assert_eq!(held(&memory), [None]);
}

#[test]
fn window_locks_are_found_in_shared_memory_windows() {
    const SHARED: u64 = 0xc80_0000;
    let mut memory = with_window();
    memory.object(MODULE, 800, (0xc70_0000, b"opal_mutex_t\0"));
    for (before, address) in [
        (40, LIST + 0x1000),
        (32, SHARED),
        (24, SHARED + 168),
        (16, SHARED + 128),
    ] {
        memory.set(MODULE, 800 - before, &address.to_ne_bytes());
    }
    for (at, state) in [(0, 2_i32), (4, 1), (8, 3)] {
        memory.set(LIST + 0x1000, at, &state.to_ne_bytes());
    }
    assert_eq!(held(&memory), [Some(6), Some(7)]);
    // States that are not those of locks, and the mutex of another object.
    memory.set(LIST + 0x1000, 4, &4_i32.to_ne_bytes());
    assert_eq!(held(&memory), []);
    memory.set(LIST + 0x1000, 4, &0_i32.to_ne_bytes());
    memory.set(MODULE, 800 - 16, &LOCK.to_ne_bytes());
    assert_eq!(held(&memory), []);
}

#[test]
fn open_epochs_of_groups_are_found_in_windows() {
    const OTHERS: u64 = 0xc90_0000;
    let found = |memory: &MemoryPieces| {
        let known = OpenMpi::learn(memory, OBJECTS).unwrap();
        let epochs = known.group_epochs(WINDOWS).into_iter();
        let told = epochs.map(|it| (it.role == ArgumentRole::Access, it.partners));
        told.collect::<Vec<_>>()
    };
    // The groups of two communicators stand for those of epochs.
    let groups = || {
        let mut memory = with_window();
        memory.communicator(OTHERS, &[2, 4]);
        let class = (0xca0_0000, &b"ompi_group_t\0"[..]);
        memory.object(OTHERS + 0x10000, 0, class);
        memory.object(HALF + 0x10000, 0, class);
        memory
    };
    let [others, half] = [OTHERS, HALF].map(|it| (it + 0x10000).to_ne_bytes());
    // In the module of `pt2pt`, in front of an object with the group of the access epoch.
    let mut memory = groups();
    memory.set(MODULE, 600, &half);
    memory.set(MODULE, 1200 + 64, &MODULE.to_ne_bytes());
    memory.set(MODULE, 1200 + 72, &3_i32.to_ne_bytes());
    memory.set(MODULE, 1200 + 80, &others);
    let both = [(false, vec![7, 5, 6]), (true, vec![2, 4])];
    assert_eq!(found(&memory), both);
    // A complete access epoch.
    memory.set(MODULE, 1200 + 72, &0_i32.to_ne_bytes());
    assert_eq!(found(&memory), both[..1]);
    // In front of the locks of `sm`.
    let mut memory = groups();
    memory.object(MODULE, 800, (0xc70_0000, b"opal_mutex_t\0"));
    for (before, address) in [(32, LOCK), (24, LOCK + 168), (16, LOCK + 128)] {
        memory.set(MODULE, 800 - before, &address.to_ne_bytes());
    }
    memory.set(MODULE, 800 - 48, &half);
    assert_eq!(found(&memory), both[..1]);
    memory.set(MODULE, 800 - 56, &others);
    assert_eq!(found(&memory), [both[1].clone(), both[0].clone()]);
}
