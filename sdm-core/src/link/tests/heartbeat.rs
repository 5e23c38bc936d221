//! Tests of pings: quiet peers are pinged, silent peers are reported, and a peer that answers again is alive.

use super::*;

#[test]
fn quiet_peers_are_pinged_and_found_silent() {
    let mut pair = Pair::up();
    let after = PING_AFTER;
    // Answered pings: never silent.
    for _ in 0..10 {
        pair.now = pair.parent.poll_timeout().unwrap();
        pair.parent.handle_timeout(pair.now).unwrap();
        pair.drive().unwrap();
    }
    assert_eq!(events(&mut pair.parent), []);
    assert_eq!(events(&mut pair.child), []);
    // Nothing comes back.
    let start = pair.now;
    let mut pings = 0;
    while events(&mut pair.parent).is_empty() {
        pair.now = pair.parent.poll_timeout().unwrap();
        pair.parent.handle_timeout(pair.now).unwrap();
        pings += u32::from(pair.parent.poll_transmit(&mut Vec::new()));
        assert!(pings < 10);
    }
    assert_eq!(pings, PINGS_UNANSWERED_MAX + 1);
    let took = pair.now - start;
    assert!(took <= after * 3 / 2, "{took:?}");
    assert!(took > after * 149 / 100, "{took:?}");
}

#[test]
fn silent_peer_recovers_when_it_answers() {
    let mut pair = Pair::up();
    let mut wire = Vec::new();
    while !pair.parent.is_silent() {
        pair.now = pair.parent.poll_timeout().unwrap();
        pair.parent.handle_timeout(pair.now).unwrap();
        pair.parent.poll_transmit(&mut wire);
    }
    assert_eq!(events(&mut pair.parent), [LinkEvent::Silent]);
    // The child was stopped; now it reads all the pings, and answers the last.
    pair.child
        .handle_bytes(pair.now, &mut wire.clone())
        .unwrap();
    let mut up = Vec::new();
    pair.child.poll_transmit(&mut up);
    assert!(up.len() < 40, "one pong, {} bytes", up.len());
    pair.parent.handle_bytes(pair.now, &mut up.clone()).unwrap();
    assert_eq!(events(&mut pair.parent), [LinkEvent::Alive]);
}

#[test]
fn resumed_process_pings_peers_before_it_calls_them_silent() {
    let mut pair = Pair::up();
    pair.now += Duration::from_secs(3600);
    pair.parent.handle_timeout(pair.now).unwrap();
    assert_eq!(events(&mut pair.parent), []);
    assert!(!pair.parent.is_silent());
    assert!(pair.parent.poll_timeout() > Some(pair.now));
}
