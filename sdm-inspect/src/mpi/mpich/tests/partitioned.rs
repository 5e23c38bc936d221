//! Tests of the receivers of partitioned sends.

use super::*;

#[test]
fn partitioned_send_names_its_receiver() {
    const INT: i32 = 0x4c00_0405;
    let sent = |peer, within| {
        let direction = Some(Direction::Sent);
        let tag = sdm_mpi::ANY_TAG_NUMBER;
        Message {
            peer,
            tag,
            direction,
            within,
        }
    };
    let at = REQUEST_BYTES;
    let check = |to_come, communicator: u64, to, expect| {
        let mut memory = with_request(6, to_come, (0, 0));
        memory.set(REQUESTS_AT, at + 0x28, &communicator.to_ne_bytes());
        memory.set(REQUESTS_AT, at + 0xc8, &50_000_u64.to_ne_bytes());
        memory.numbers(REQUESTS_AT, at + 0xd0, &[INT, to]);
        assert_eq!(
            message_of(&memory, REQUEST),
            expect,
            "{communicator:x} {to}"
        );
    };
    let (world, half) = (OF_ALL + 0x40, FIRST + SIZE as u64);
    check(1, world, 2, Some(sent(2, (0, 2))));
    check(1, half, 2, Some(sent(6, (0x1e0, 2))));
    // A rank that does not exist, a sent message, an unknown communicator.
    check(1, half, 4, None);
    check(0, world, 2, None);
    check(1, LISTS, 2, None);
}
