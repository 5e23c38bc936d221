//! Tests of the requests of nonblocking and persistent collective operations.

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
