//! Property tests of a link: any bytes, any corruption and any order.

use proptest::prelude::*;

use super::*;

proptest! {
    // A handshake takes milliseconds in a debug build.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_only_end_the_link(
        bytes in proptest::collection::vec(any::<u8>(), 1..300),
        begun: bool,
    ) {
        let now = Instant::now();
        let mut link = Link::respond(now, &config(), hello(Role::Child, 3, None));
        if begun {
            let mut out = Vec::new();
            Link::initiate(now, &config(), hello(Role::Parent, 9, Some(3))).poll_transmit(&mut out);
            link.handle_bytes(now, &mut out.clone()).unwrap();
        }
        let _ = link.handle_bytes(now, &mut bytes.clone());
        prop_assert!(!link.is_up());
        prop_assert_eq!(link.poll_event(), None);
    }

    #[test]
    fn changed_byte_is_detected(at: prop::sample::Index, flip in 1..=255_u8) {
        let mut pair = Pair::up();
        pair.parent.send(&output(500)).unwrap();
        let mut out = Vec::new();
        pair.parent.poll_transmit(&mut out);
        let at = at.index(out.len());
        out[at] ^= flip;
        let result = pair.child.handle_bytes(pair.now, &mut out.clone());
        // A longer length makes the record wait for more; nothing wrong ever comes out.
        prop_assert!(result == Err(LinkError::BadRecord) || (at < 2 && result.is_ok()));
        prop_assert_eq!(pair.child.poll_event(), None);
    }

    #[test]
    fn changed_handshake_never_establishes_the_link(at: prop::sample::Index, flip in 1..=255_u8, first: bool) {
        let mut pair = Pair::new();
        let mut wire = Vec::new();
        pair.parent.poll_transmit(&mut wire);
        if first {
            let at = at.index(wire.len());
            wire[at] ^= flip;
        }
        let _ = pair.child.handle_bytes(pair.now, &mut wire.clone());
        wire.clear();
        pair.child.poll_transmit(&mut wire);
        if !first {
            let at = at.index(wire.len());
            wire[at] ^= flip;
        }
        let _ = pair.parent.handle_bytes(pair.now, &mut wire.clone());
        prop_assert!(!pair.parent.is_up() && !pair.child.is_up());
    }

    #[test]
    fn messages_keep_their_order_within_a_lane(
        sends in proptest::collection::vec((any::<bool>(), any::<bool>(), 0..5000_usize), 1..60),
        step in 1..3000_usize,
    ) {
        let mut pair = Pair::up();
        let (mut expect, mut got) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        let mut wire = Vec::new();
        for (index, (bulk, flush, bytes)) in sends.into_iter().enumerate() {
            let message = if bulk { output(bytes) } else { control(index as u64) };
            pair.parent.send(&message).unwrap();
            expect[usize::from(bulk)].push(message);
            if flush {
                pair.parent.poll_transmit(&mut wire);
            }
        }
        while pair.parent.poll_transmit(&mut wire) {}
        for part in wire.chunks(step) {
            pair.child.handle_bytes(pair.now, &mut part.to_vec()).unwrap();
            for message in messages(&mut pair.child) {
                got[message.lane() as usize].push(message);
            }
        }
        let sent = 60 * 5100 <= BULK_START_BYTES as usize || pair.parent.bulk_backlog() == 0;
        if sent {
            prop_assert_eq!(got, expect);
        } else {
            prop_assert_eq!(&got[0], &expect[0]);
            prop_assert!(expect[1].starts_with(&got[1]));
        }
    }
}
