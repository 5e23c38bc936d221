//! Tests with memory laid out as in MPICH 4.0, and with memory that has another layout.

mod collectives;
mod mutated;
mod partitioned;

use collectives::check_worker;

use sdm_mpi::ArgumentRole;

use super::objects::{REQUESTS, WINDOWS};
use super::*;
use crate::mpi::pieces::MemoryPieces;
use crate::mpi::{Direction, GroupEpoch, Message};

const SIZE: usize = 0x368;
const COUNT: usize = 0x44;
const NAME: usize = 0x74;
const TABLE: usize = 0x310;
const LISTS: u64 = 0x10_0000;
const FIRST: u64 = 0x20_0000;
const LATER: u64 = 0x30_0000;
const OF_ALL: u64 = 0x40_0000;
const LIST: u64 = 0x50_0000;
/// First handles of communicators: those in the first array, and those in blocks.
const DIRECT: u32 = 0x8400_0000;
const INDIRECT: u32 = 0xc400_0000;
/// The rank, of 8, that is examined.
const RANK: i32 = 5;

/// The numbers in a communicator's table of ranks.
type Table<'a> = &'a [i32];

impl MemoryPieces {
    fn numbers(&mut self, address: u64, at: usize, numbers: &[i32]) {
        let piece = self.0.entry(address).or_insert_with(|| vec![0; 8 * SIZE]);
        for (number, part) in numbers.iter().zip(piece[at..].chunks_mut(4)) {
            part.copy_from_slice(&number.to_ne_bytes());
        }
    }

    /// Writes a communicator: its handle, its context id, the rank of the process in it, and its tables of ranks.
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

/// The memory of rank 5 in a job of 8 ranks.
fn memory() -> MemoryPieces {
    let mut memory = MemoryPieces::default();
    let all = (WORLD.cast_unsigned(), 0, RANK);
    memory.mpich((OF_ALL, 0x40), all, (&[1, 0, 8], ONE));
    let alone = (ALONE.cast_unsigned(), 0x0010_0010, 0);
    memory.mpich((OF_ALL, 0x40 + SIZE), alone, (&[3, 0, 1, RANK], ONE));
    memory.set(OF_ALL, 0x40 + NAME, WORLD_NAME);
    memory.set(OF_ALL, 0x40 + SIZE + NAME, ALONE_NAME);
    // MPICH's description of its communicators: the address of the blocks, the kind, the size, and the address of the
    // first objects.
    memory.set(LISTS, 16, &(LATER + 0x8000).to_ne_bytes());
    memory.numbers(LISTS, 40, &[1, i32::try_from(SIZE).unwrap()]);
    memory.set(LISTS, 48, &FIRST.to_ne_bytes());
    memory.set(LATER + 0x8000, 0, &LATER.to_ne_bytes());
    memory.numbers(FIRST, 0, &[DIRECT.cast_signed()]);
    memory
}

fn learn(memory: &MemoryPieces) -> Option<Mpich<'_>> {
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
    let alone = known.members(ALONE.cast_unsigned());
    assert_eq!(alone, Some(Members::Of(vec![5])));
}

#[test]
fn rank_tables_of_all_kinds_are_decoded() {
    check(&[1, 0, 8], 5, Some(&[0, 1, 2, 3, 4, 5, 6, 7]));
    check(&[3, 0, 4, 4], 1, Some(&[4, 5, 6, 7]));
    check(&[5, 0, 4, 1, 2, 1], 2, Some(&[1, 3, 5, 7]));
    check(&[7, 0, 4, 0, 4, 2], 3, Some(&[0, 1, 4, 5]));
    check(&[8, 0, 3], 1, Some(&[7, 5, 1]));
}

#[test]
fn inconsistent_rank_table_is_refused() {
    // The process's own rank does not fit the table.
    check(&[3, 0, 4, 4], 2, None);
    // Ranks beyond the job, a duplicate rank, an unknown kind of mapping, a block of size 0.
    check(&[3, 0, 4, 5], 0, None);
    check(&[5, 0, 4, 5, 0, 1], 0, None);
    check(&[10, 0, 4, 4], 1, None);
    check(&[7, 0, 4, 0, 4, 0], 3, None);
    check(&[3, 0, i32::MAX, 4], 1, None);
    check(&[3, 0, -1, 4], 1, None);
    check(&[5, 0, 4, i32::MAX, i32::MAX, 1], 0, None);
    let memory = memory();
    let known = learn(&memory).unwrap();
    // Handles without an object: one beyond the first objects, one in a missing block, and handles of other kinds.
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
fn ranks_of_indirect_and_intercommunicators_are_read() {
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
    // Each side has its own context id for an intercommunicator.
    assert_eq!(known.context(handle), None);
    assert_eq!(known.members(spawned), Some(Members::WithOtherJobs));
}

#[test]
fn layout_is_refused_without_world_and_self() {
    let mut memory = memory();
    memory.set(OF_ALL, 0x40 + SIZE + NAME, b"MPI_COMM_NULL\0");
    assert!(learn(&memory).is_none());
    let mut memory = self::memory();
    // Another layout: an invalid value in place of the second table.
    memory.numbers(OF_ALL, 0x40 + TABLE + TABLE_BYTES, &[12]);
    assert!(learn(&memory).is_none());
    assert!(Mpich::learn(&memory, &[]).is_none());
    assert!(Mpich::learn(&memory, &[OF_ALL..u64::MAX, 0..8]).is_none());
}

const REQUESTS_AT: u64 = 0x60_0000;
const REQUEST_BYTES: usize = 0x110;
/// Address of MPICH's part of a receive; UCX's part precedes it.
const OF_UCX: u64 = 0x70_0000;
const REQUEST: u32 = 0xac00_0001;
const OF_ANY_RANK: u64 = 0xffff_0000_9fff_ffff;
const OF_ANY_TAG: u64 = 0xffff_ffff_9000_0000;
const OF_ONE: u64 = 0xffff_ffff_9fff_ffff;

/// The memory of rank 5 with one request, of this kind. `to_come` is the request's completion counter; `wanted` and
/// `mask` are UCX's tag and its mask.
fn with_request(kind: i32, to_come: i32, (wanted, mask): (u64, u64)) -> MemoryPieces {
    let mut memory = memory();
    let size = i32::try_from(REQUEST_BYTES).unwrap();
    memory.numbers(LISTS, 0x100 + 36, &[REQUESTS.cast_signed(), size]);
    memory.set(LISTS, 0x100 + 48, &REQUESTS_AT.to_ne_bytes());
    memory.numbers(REQUESTS_AT, 0, &[(REQUEST - 1).cast_signed()]);
    let head = [REQUEST.cast_signed(), 2, kind];
    memory.numbers(REQUESTS_AT, REQUEST_BYTES, &head);
    let address = REQUESTS_AT + REQUEST_BYTES as u64;
    memory.set(
        REQUESTS_AT,
        REQUEST_BYTES + 16,
        &(address + 24).to_ne_bytes(),
    );
    memory.numbers(REQUESTS_AT, REQUEST_BYTES + 24, &[to_come]);
    memory.set(
        REQUESTS_AT,
        REQUEST_BYTES + 0xb0,
        &(OF_UCX + 0x200).to_ne_bytes(),
    );
    memory.set(OF_UCX, 0x100, &address.to_ne_bytes());
    // Numbers that look like a mask.
    memory.set(OF_UCX, 0x120, &u64::MAX.to_ne_bytes());
    memory.set(OF_UCX, 0x1b0, &wanted.to_ne_bytes());
    memory.set(OF_UCX, 0x1b8, &mask.to_ne_bytes());
    let half = (DIRECT + 1, 0x1e0_01e0, 1);
    memory.mpich((FIRST, SIZE), half, (&[3, 0, 4, 4], ONE));
    // A freed communicator with the context id of a present one.
    memory.mpich((FIRST, 0), (DIRECT, 0x1e0_01e0, 1), (&[1, 0, 8], ONE));
    memory.numbers(FIRST, 4, &[0]);
    memory
}

fn received(peer: u32, tag: i32, within: (u64, usize)) -> Message {
    let direction = Some(Direction::Received);
    Message {
        peer,
        tag,
        direction,
        within,
    }
}

fn message_of(memory: &MemoryPieces, request: u32) -> Option<Message> {
    learn(memory)?.receives()?.message(request)
}

#[test]
fn receive_request_names_its_source_rank() {
    let message = |peer, tag, within| Some(received(peer, tag, within));
    for (request, expect) in [
        (
            (2, 1, (0x0000_0003_0000_0063, OF_ONE)),
            message(3, 99, (0, 3)),
        ),
        (
            (2, 1, (0x01e0_0002_0000_0001, OF_ONE)),
            message(6, 1, (0x1e0, 2)),
        ),
        (
            (2, 1, (0x01e0_0002_0000_0000, OF_ANY_TAG)),
            message(6, -1, (0x1e0, 2)),
        ),
        // From any rank, from a rank that does not exist, in an unknown communicator, a completed receive, a send.
        ((2, 1, (0x01e0_0000_0000_0001, OF_ANY_RANK)), None),
        ((2, 1, (0x01e0_0004_0000_0001, OF_ONE)), None),
        ((2, 1, (0x0000_0008_0000_0001, OF_ONE)), None),
        ((2, 1, (0x01e2_0002_0000_0001, OF_ONE)), None),
        ((2, 0, (0x01e0_0002_0000_0001, OF_ONE)), None),
        ((1, 1, (0x01e0_0002_0000_0001, OF_ONE)), None),
    ] {
        let (kind, to_come, has) = request;
        let memory = with_request(kind, to_come, has);
        assert_eq!(message_of(&memory, REQUEST), expect, "{request:x?}");
        assert_eq!(message_of(&memory, REQUEST + 1), None);
        assert_eq!(message_of(&memory, DIRECT + 1), None);
    }
}

#[test]
fn unexpected_messages_are_found_with_their_tags() {
    const WORKER: u64 = 0xa0_0000;
    const LINKS: [u64; 3] = [0xb0_0020, 0xb1_0020, 0xb2_0020];
    let mut memory = with_request(2, 1, (0x01e0_0002_0000_0001, OF_ONE));
    memory.set(OF_UCX, 0x150, &WORKER.to_ne_bytes());
    memory.0.insert(WORKER, vec![0; 4096]);
    let head = WORKER + 0x3a0;
    // An empty list, and a list of other objects.
    memory.set(WORKER, 0x100, &(WORKER + 0x100).to_ne_bytes());
    memory.set(WORKER, 0x200, &LINKS[1].to_ne_bytes());
    let of = |from: u64, tag: u64| 0x01e0_0000_0000_0000 | from << 32 | tag;
    let numbers = [of(2, 81), of(3, 9), of(2, 7)];
    memory.set(WORKER, 0x3a0, &LINKS[0].to_ne_bytes());
    let around = [head, LINKS[0], LINKS[1], LINKS[2], head];
    for (at, number) in numbers.into_iter().enumerate() {
        let link = LINKS[at] - 0x20;
        memory.set(link, 0x20, &around[at + 2].to_ne_bytes());
        memory.set(link, 0x28, &around[at].to_ne_bytes());
        memory.numbers(link, 0x30, &[12, 8]);
        memory.set(link, 0x40, &number.to_ne_bytes());
    }
    let unexpected = |memory: &MemoryPieces, context, source| {
        let known = learn(memory).unwrap();
        known.receives().unwrap().unexpected(context, source)
    };
    assert_eq!(unexpected(&memory, 0x1e0, 2), [81, 7]);
    assert_eq!(unexpected(&memory, 0x1e0, 3), [9]);
    let arrived = learn(&memory).unwrap().receives().unwrap().arrived();
    let peers: Vec<u32> = arrived.iter().map(|message| message.peer).collect();
    assert_eq!(peers, [6, 7, 6]);
    check_worker(MemoryPieces(memory.0.clone()), WORKER);
    for other in [(0x1e0, 1), (0, 2), (-1, 2), (1 << 40, 2)] {
        assert_eq!(unexpected(&memory, other.0, other.1), [0_i32; 0]);
    }
    // A message shorter than its header does not count.
    memory.numbers(LINKS[0] - 0x20, 0x30, &[7, 8]);
    assert_eq!(unexpected(&memory, 0x1e0, 2), [7]);
    // Neither does a list whose links do not lead back.
    memory.set(LINKS[0] - 0x20, 0x28, &LINKS[2].to_ne_bytes());
    assert_eq!(unexpected(&memory, 0x1e0, 2), [0_i32; 0]);
}

#[test]
fn persistent_receive_has_the_message_of_its_last_start() {
    let mut memory = with_request(2, 1, (0x0000_0003_0000_0063, OF_ONE));
    let started = REQUESTS_AT + REQUEST_BYTES as u64;
    let head = [(REQUEST + 1).cast_signed(), 1, 4];
    memory.numbers(REQUESTS_AT, 2 * REQUEST_BYTES, &head);
    let message = received(3, 99, (0, 3));
    assert_eq!(message_of(&memory, REQUEST + 1), None);
    memory.set(REQUESTS_AT, 2 * REQUEST_BYTES + 80, &started.to_ne_bytes());
    assert_eq!(message_of(&memory, REQUEST + 1), Some(message));
}

#[test]
fn receive_unknown_to_ucx_names_no_source() {
    let has = (0x0000_0003_0000_0063, OF_ONE);
    let mut memory = with_request(2, 1, has);
    memory.set(OF_UCX, 0x100, &0x1234_u64.to_ne_bytes());
    assert_eq!(message_of(&memory, REQUEST), None);
    // The pattern of a receive, found twice.
    let mut memory = with_request(2, 1, has);
    memory.set(OF_UCX, 0x140, &OF_ONE.to_ne_bytes());
    assert_eq!(message_of(&memory, REQUEST), None);
}

#[test]
fn requests_are_read_without_user_communicators() {
    let has = (0x0000_0003_0000_0063, OF_ONE);
    let mut memory = with_request(2, 1, has);
    memory.numbers(FIRST, 0, &[0]);
    let message = received(3, 99, (0, 3));
    assert_eq!(message_of(&memory, REQUEST), Some(message));
    // Context ids other than those given to UCX.
    memory.numbers(OF_ALL, 0x40 + SIZE + COUNT - 4, &[2]);
    assert_eq!(message_of(&memory, REQUEST), None);
}

#[test]
fn truncated_source_rank_is_not_reported() {
    let mut memory = with_request(2, 1, (0x0000_0003_0000_0063, OF_ONE));
    let many = 100_000;
    memory.numbers(OF_ALL, 0x40 + COUNT, &[many, RANK]);
    memory.numbers(OF_ALL, 0x40 + TABLE, &[1, 0, many]);
    assert_eq!(learn(&memory).unwrap().size(), 100_000);
    assert_eq!(message_of(&memory, REQUEST), None);
}

/// The first of two ranks: `MPI_COMM_WORLD` has as many references as there are ranks.
#[test]
fn reference_count_is_not_the_communicator_size() {
    let mut memory = memory();
    let all = (WORLD.cast_unsigned(), 0, 0);
    memory.mpich((OF_ALL, 0x40), all, (&[1, 0, 2], ONE));
    memory.numbers(OF_ALL, 0x44, &[2, 0]);
    let alone = (ALONE.cast_unsigned(), 0x0010_0010, 0);
    memory.mpich((OF_ALL, 0x40 + SIZE), alone, (&[3, 0, 1, 0], ONE));
    let both = (DIRECT + 1, 0x1e0_01e0, 0);
    memory.mpich((FIRST, SIZE), both, (&[1, 0, 2], ONE));
    let known = learn(&memory).unwrap();
    assert_eq!(known.members(DIRECT + 1), Some(Members::Of(vec![0, 1])));
    assert_eq!(known.context(DIRECT + 1), Some(0x1e0));
    // A freed communicator keeps its handle.
    memory.numbers(FIRST, SIZE + 4, &[0]);
    assert_eq!(learn(&memory).unwrap().members(DIRECT + 1), None);
}

const WINDOW: u32 = 0xa000_0001;
const WINDOWS_AT: u64 = 0x80_0000;
const WINDOW_BYTES: usize = 0x200;
const TARGETS: [u64; 2] = [0x90_0000, 0x91_0000];

/// The memory with a window of ranks 4 to 7, two of whose targets were used. Each of `parts` describes such a target:
/// its rank, the kind of epoch, and the lock state.
fn with_window(parts: [[i32; 3]; 2]) -> MemoryPieces {
    let mut memory = memory();
    let size = i32::try_from(WINDOW_BYTES).unwrap();
    memory.numbers(LISTS, 0x200 + 36, &[WINDOWS.cast_signed(), size]);
    memory.set(LISTS, 0x200 + 48, &WINDOWS_AT.to_ne_bytes());
    memory.numbers(WINDOWS_AT, 0, &[(WINDOW - 1).cast_signed()]);
    memory.numbers(WINDOWS_AT, WINDOW_BYTES, &[WINDOW.cast_signed(), 0]);
    let half = (DIRECT + 1, 0x1e0_01e0, 1);
    memory.mpich((FIRST, SIZE), half, (&[3, 0, 4, 4], ONE));
    let half = (FIRST + SIZE as u64).to_ne_bytes();
    memory.set(WINDOWS_AT, WINDOW_BYTES + 0x48, &half);
    memory.set(WINDOWS_AT, WINDOW_BYTES + 0x120, &TARGETS[0].to_ne_bytes());
    for (address, [rank, epoch, locked]) in TARGETS.into_iter().zip(parts) {
        memory.numbers(address, 12, &[epoch, locked, 0, rank]);
        memory.set(address, 32 + 40, &(address + 24).to_ne_bytes());
        memory.numbers(address, 32 + 48, &[4]);
    }
    memory.set(TARGETS[0], 32 + 16, &TARGETS[1].to_ne_bytes());
    memory
}

#[test]
fn window_locks_are_found_in_mpich_windows() {
    for (parts, expect) in [
        ([[1, 1, 1], [3, 1, 1]], &[5, 7][..]),
        // A lock not granted yet, an epoch without a lock, a rank that does not exist.
        ([[1, 1, 0], [3, 1, 1]], &[7]),
        ([[1, 2, 1], [3, 1, 0]], &[]),
        ([[4, 1, 1], [-1, 1, 1]], &[]),
    ] {
        let memory = with_window(parts);
        let known = learn(&memory).unwrap();
        let members = Members::Of(vec![4, 5, 6, 7]);
        assert_eq!(known.window(WINDOW), Some((0x1e0, members)));
        let locks = known.window_locks();
        assert!(locks.iter().all(|lock| lock.window == 0x1e0));
        let targets: Vec<u32> = locks.iter().filter_map(|lock| lock.target).collect();
        assert_eq!(targets, expect, "{parts:?}");
    }
    // A lock of all ranks, which not all of them have granted.
    for (given, expect) in [(3, 0), (4, 1)] {
        let mut memory = with_window([[1, 1, 0], [3, 1, 0]]);
        memory.numbers(WINDOWS_AT, WINDOW_BYTES + 0x140, &[6, 0]);
        memory.numbers(WINDOWS_AT, WINDOW_BYTES + 0x160, &[given]);
        let locks = learn(&memory).unwrap().window_locks();
        assert_eq!(locks.len(), expect);
        assert!(locks.iter().all(|lock| lock.target.is_none()));
    }
    // A freed target, and a hash entry without a valid key.
    let mut memory = with_window([[1, 1, 1], [3, 1, 1]]);
    memory.numbers(TARGETS[0], 32 + 48, &[8]);
    assert_eq!(learn(&memory).unwrap().window_locks(), []);
    let mut memory = with_window([[1, 1, 1], [3, 1, 1]]);
    memory.numbers(FIRST, SIZE + 4, &[0]);
    assert_eq!(learn(&memory).unwrap().window_locks(), []);
}

/// With any memory contents the ranks are those of the job.
#[test]
fn ranks_read_from_corrupt_memory_are_ranks_of_the_job() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..2000 {
        let mut memory = with_request(2, 1, (0x01e0_0002_0000_0001, OF_ONE));
        for _ in 0..=round % 5 {
            let index = usize::try_from(random() % 8).unwrap();
            let Some(piece) = memory.0.values_mut().nth(index) else {
                continue;
            };
            let at = usize::try_from(random()).unwrap() % (piece.len() / 4) * 4;
            let values = [0, 1, 11, u32::MAX, 0x7fff_ffff, 8, DIRECT, 0x8000_0000];
            let value = values[usize::try_from(random() % 8).unwrap()];
            piece[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let Some(known) = learn(&memory) else {
            continue;
        };
        for handle in [DIRECT, DIRECT + 1, INDIRECT, INDIRECT + 3] {
            if let Some(Members::Of(ranks)) = known.members(handle) {
                assert!(ranks.iter().all(|rank| (*rank as usize) < known.size()));
            }
            let _ = known.context(handle);
        }
        if let Some(message) = message_of(&memory, REQUEST) {
            assert!((message.peer as usize) < known.size(), "{message:?}");
        }
    }
}

#[test]
fn open_epochs_of_groups_are_found_in_mpich_windows() {
    const GROUPS_AT: u64 = 0xa0_0000;
    let mut memory = with_window([[1, 1, 0], [3, 1, 0]]);
    memory.numbers(LISTS, 0x300 + 36, &[GROUPS.cast_signed(), 0x40]);
    memory.set(LISTS, 0x300 + 48, &GROUPS_AT.to_ne_bytes());
    let first = 0x8800_0000_u32.cast_signed();
    memory.numbers(GROUPS_AT, 0, &[first, 1, 2, -32766]);
    memory.set(GROUPS_AT, GROUP_LIST, &(GROUPS_AT + 0x80).to_ne_bytes());
    memory.numbers(GROUPS_AT, 0x80, &[2, 0, -1, 0, 7, 0, -1, 0]);
    // The kinds of the window's epochs, and the group of either.
    let kinds = WINDOW_BYTES + 0x140;
    for (group, own, role) in [
        (16, [2, 0], ArgumentRole::Access),
        (16, [0, 0], ArgumentRole::Access),
        (40, [0, 3], ArgumentRole::Exposure),
    ] {
        let mut memory = MemoryPieces(memory.0.clone());
        memory.numbers(WINDOWS_AT, kinds, &own);
        memory.set(WINDOWS_AT, kinds + group, &GROUPS_AT.to_ne_bytes());
        let partners = vec![2, 7];
        let expect = GroupEpoch {
            role,
            window: 0x1e0,
            partners,
        };
        assert_eq!(learn(&memory).unwrap().group_epochs(), [expect]);
    }
}
