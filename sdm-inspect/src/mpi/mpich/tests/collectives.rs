//! Tests of collective operations and files, and of sends.

use super::*;

const COLLECTIVE: i32 = 10;

#[test]
fn communicator_of_a_nonblocking_collective_is_read() {
    let of = |kind, to_come, communicator: u64| {
        let mut memory = with_request(kind, to_come, (0, 0));
        memory.set(0x70_0000, 0, &0x4400_0000_u32.to_ne_bytes());
        memory.set(0x70_0000, 4, &2_u32.to_ne_bytes());
        let at = REQUEST_BYTES + 0x60;
        memory.set(REQUESTS_AT, at, &communicator.to_ne_bytes());
        let known = learn(&memory).unwrap();
        known.receives().unwrap().collective(REQUEST)
    };
    let half = FIRST + SIZE as u64;
    assert_eq!(of(COLLECTIVE, 1, 0x70_0000), Some(0x4400_0000));
    assert_eq!(of(COLLECTIVE, 1, half), Some(0x8400_0001));
    assert_eq!(of(COLLECTIVE, 1, half + 8), None);
    // A completed request, and a request of another kind.
    assert_eq!(of(COLLECTIVE, 0, half), None);
    assert_eq!(of(2, 1, half), None);
}

/// Each start of a persistent operation uses another request.
#[test]
fn communicator_of_a_persistent_collective_is_read() {
    const STARTED: u64 = REQUESTS_AT + 2 * REQUEST_BYTES as u64;
    let of = |started: bool| {
        let mut memory = with_request(5, 0, (0, 0));
        let at = 2 * REQUEST_BYTES;
        let head = [(REQUEST + 1).cast_signed(), 2, COLLECTIVE];
        memory.numbers(REQUESTS_AT, at, &head);
        memory.set(REQUESTS_AT, at + 16, &(STARTED + 24).to_ne_bytes());
        memory.numbers(REQUESTS_AT, at + 24, &[1]);
        let half = FIRST + SIZE as u64;
        memory.set(REQUESTS_AT, at + 0x60, &half.to_ne_bytes());
        if started {
            let at = REQUEST_BYTES + 0x70;
            memory.set(REQUESTS_AT, at, &STARTED.to_ne_bytes());
        }
        let known = learn(&memory).unwrap();
        known.receives().unwrap().collective(REQUEST)
    };
    assert_eq!(of(true), Some(0x8400_0001));
    assert_eq!(of(false), None);
}

/// Checks that the messages are found without a receive, by MPICH's reference to the worker.
pub(super) fn check_worker(mut memory: MemoryPieces, worker: u64) {
    const CONTEXT: u64 = 0xd0_0000;
    let arrived = |memory: &MemoryPieces| {
        let known = learn(memory).unwrap();
        known.receives().unwrap().arrived().len()
    };
    memory.set(OF_UCX, 0x150, &0_u64.to_ne_bytes());
    for (at, word) in [CONTEXT, worker, CONTEXT + 0x1000, 215]
        .into_iter()
        .enumerate()
    {
        memory.set(LISTS, 0x380 + 8 * at, &word.to_ne_bytes());
    }
    assert_eq!(arrived(&memory), 0);
    memory.set(worker, 104, &CONTEXT.to_ne_bytes());
    assert_eq!(arrived(&memory), 3);
}

/// MPICH broadcasts within a host in a communicator of its own, whose context id differs in two bits.
#[test]
fn collective_in_a_part_of_its_communicator_is_read() {
    let mut memory = with_request(2, 1, (0x01e3_0002_0000_0002, OF_ONE));
    let posted = |memory: &MemoryPieces| {
        let known = learn(memory).unwrap();
        let posted = known.receives().unwrap().posted_of_collectives(0x1e0);
        posted.map(|all| all.iter().map(|one| one.peer).collect::<Vec<_>>())
    };
    assert_eq!(posted(&memory), None);
    let part = (DIRECT + 2, 0x1e2_01e2, 1);
    memory.mpich((FIRST, 2 * SIZE), part, (&[3, 0, 4, 4], ONE));
    assert_eq!(posted(&memory), Some(vec![6]));
}

#[test]
fn communicator_of_a_file_is_read() {
    const FILE: u64 = 0xe0_0000;
    let mut memory = with_request(2, 1, (0, 0));
    memory.numbers(FILE, 80, &[(DIRECT + 7).cast_signed()]);
    assert_eq!(learn(&memory).unwrap().of_file(FILE), None);
    memory.numbers(FILE, 92, &[(DIRECT + 1).cast_signed()]);
    assert_eq!(learn(&memory).unwrap().of_file(FILE), Some(DIRECT + 1));
}

#[test]
fn send_request_names_its_destination_rank() {
    const PART: u64 = OF_UCX + 0x200;
    const TABLE: u64 = 0xf0_0000;
    const CONNECTIONS: u64 = 0xf8_0000;
    let of = |kind, number: u64| {
        let mut memory = with_request(kind, 1, (0, 0));
        let address = REQUESTS_AT + REQUEST_BYTES as u64;
        memory.set(PART, 24, &address.to_ne_bytes());
        let connection = |rank: u64| CONNECTIONS + 0x58 * rank;
        memory.set(TABLE, 8, &8_u64.to_ne_bytes());
        for rank in 0..8 {
            let at = usize::try_from(16 + 16 * rank).unwrap();
            memory.set(TABLE, at, &connection(rank).to_ne_bytes());
            memory.set(TABLE, at + 8, &1_u64.to_ne_bytes());
        }
        memory.set(LISTS, 0x3a0, &TABLE.to_ne_bytes());
        memory.set(OF_UCX, 0xc8 + 0x40, &connection(6).to_ne_bytes());
        memory.set(OF_UCX, 0xc8 + 0x40 + 152, &number.to_ne_bytes());
        message_of(&memory, REQUEST)
    };
    let sent = |tag, within| {
        let direction = Some(Direction::Sent);
        let message = received(6, tag, within);
        Some(Message {
            direction,
            ..message
        })
    };
    assert_eq!(of(1, 0x0000_0005_0000_0007), sent(7, (0, 6)));
    assert_eq!(of(1, 0x01e0_0001_0000_0007), sent(7, (0x1e0, 2)));
    // A number with the rank of another sender, and a receive.
    assert_eq!(of(1, 0x01e0_0002_0000_0007), None);
    assert_eq!(of(2, 0x01e0_0001_0000_0007), None);
}
