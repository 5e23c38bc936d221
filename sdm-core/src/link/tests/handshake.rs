//! Tests of handshakes: accepted and refused peers, the reason given to a refused one, and the cost of strangers.

use super::*;

#[test]
fn both_ends_learn_the_peer_identity() {
    let mut pair = Pair::new();
    pair.drive().unwrap();
    let [LinkEvent::Up(child)] = &events(&mut pair.parent)[..] else {
        panic!("up")
    };
    assert_eq!((child.role, child.id), (Role::Child, ServerId(3)));
    assert_eq!(events(&mut pair.child).len(), 1);
    assert_eq!(pair.child.peer().unwrap().id, ServerId(9));
}

#[test]
fn responder_is_up_only_after_the_first_record() {
    let mut pair = Pair::new();
    let mut first = Vec::new();
    pair.parent.poll_transmit(&mut first);
    pair.child
        .handle_bytes(pair.now, &mut first.clone())
        .unwrap();
    assert!(!pair.child.is_up());
    assert!(pair.child.peer().is_none());
    let mut second = Vec::new();
    pair.child.poll_transmit(&mut second);
    pair.parent
        .handle_bytes(pair.now, &mut second.clone())
        .unwrap();
    assert!(pair.parent.is_up() && !pair.child.is_up());

    // A replayer of the first message has no key for the next one.
    let mut again = Link::respond(pair.now, &config(), hello(Role::Child, 3, None));
    again.handle_bytes(pair.now, &mut first.clone()).unwrap();
    again.poll_transmit(&mut Vec::new());
    let mut record = Vec::new();
    pair.parent.poll_transmit(&mut record);
    assert_eq!(
        again.handle_bytes(pair.now, &mut record.clone()),
        Err(LinkError::BadRecord)
    );
    assert_eq!(events(&mut again), []);

    pair.child
        .handle_bytes(pair.now, &mut record.clone())
        .unwrap();
    assert!(pair.child.is_up());
}

#[test]
fn peer_with_wrong_key_session_or_id_is_refused() {
    #[track_caller]
    fn check(caller: &LinkConfig, from: Hello, to: Hello, expect: (&str, &str)) {
        let mut pair = Pair::of(caller, from, &config(), to);
        let errors = pair.drive_to_errors();
        let text = |error: Option<LinkError>| error.map(|e| e.to_string()).unwrap_or_default();
        assert_eq!((text(errors.0).as_str(), text(errors.1).as_str()), expect);
        assert_eq!(events(&mut pair.child), []);
        assert!(!pair.parent.is_up() && !pair.child.is_up());
    }
    let parent = hello(Role::Parent, 9, Some(3));
    let child = hello(Role::Child, 3, None);

    let mut key = config();
    key.key = SessionKey::from_bytes([8; 32]);
    let both = "the peer does not hold the same session key";
    check(&key, parent.clone(), child.clone(), (both, both));

    let mut session = config();
    session.session = SessionId([1, 2, 3, 4, 5, 6, 7, 8]);
    let both = "the peer belongs to another session";
    check(&session, parent.clone(), child.clone(), (both, both));

    // Another session with the same tag: the prologue distinguishes the two.
    session.session = SessionId([2, 1, 2, 1, 1, 1, 1, 1]);
    let both = "the peer does not hold the same session key";
    check(&session, parent.clone(), child.clone(), (both, both));

    let other = hello(Role::Child, 5, None);
    let expect = (
        "the connection to server 3 reached server 5",
        "server 9 connected to reach server 3, but this is server 5",
    );
    check(&config(), parent.clone(), other, expect);

    let picky = hello(Role::Child, 3, Some(8));
    let expect = (
        "the peer refused the connection: the peer expected another member",
        "the connection to server 8 reached server 9",
    );
    check(&config(), parent.clone(), picky, expect);

    let clash = hello(Role::Parent, 3, None);
    let expect = (
        "the peer refused the connection: both peers claim the same role",
        "this end and the peer both claim to be the parent",
    );
    check(&config(), parent, clash, expect);
}

#[test]
fn non_sdm_connection_is_detected_by_its_first_bytes() {
    #[track_caller]
    fn check(bytes: &[u8], expect: LinkError, answer_bytes: usize) {
        let now = Instant::now();
        let mut link = Link::respond(now, &config(), hello(Role::Child, 3, None));
        assert_eq!(
            link.handle_bytes(now, &mut bytes.to_vec()),
            Err(expect.clone())
        );
        let mut out = Vec::new();
        link.poll_transmit(&mut out);
        assert_eq!(out.len(), answer_bytes);
        assert_eq!(link.handle_bytes(now, &mut b"more".to_vec()), Err(expect));
        assert_eq!(link.poll_timeout(), None);
    }
    check(b"GET / HTTP/1.1\r\n", LinkError::NotSdm, 0);
    check(b"\n", LinkError::NotSdm, 0);
    check(b"SDMx", LinkError::NotSdm, 0);
    let (ours, theirs) = (WIRE_VERSION, WIRE_VERSION + 1);
    check(
        &[b'S', b'D', b'M', 0, theirs],
        LinkError::WireVersion { ours, theirs },
        8,
    );
    check(
        &[b'S', b'D', b'M', 0, ours, 0x80],
        LinkError::UnknownFlags { flags: 0x80 },
        8,
    );
    check(
        &[b'S', b'D', b'M', 0, ours, 0, 0, 0, 0xff, 0xff],
        LinkError::BadHandshake,
        0,
    );
}

#[test]
fn caller_detects_a_peer_that_does_not_speak_sdm() {
    let now = Instant::now();
    let mut link = Link::initiate(now, &config(), hello(Role::Parent, 9, None));
    let error = link
        .handle_bytes(now, &mut b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())
        .unwrap_err();
    assert_eq!(error, LinkError::NotSdm);
    assert!(error.is_someone_else());
}

#[test]
fn handshake_times_out() {
    let mut pair = Pair::new();
    let until = pair.child.poll_timeout().unwrap();
    assert_eq!(until - pair.now, HANDSHAKE_WAIT);
    pair.child
        .handle_timeout(until - Duration::from_millis(1))
        .unwrap();
    let error = pair.child.handle_timeout(until).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the peer did not complete the handshake within 10 s"
    );
}

#[test]
fn handshake_succeeds_at_any_chunk_size() {
    for step in [1, 2, 7] {
        let mut pair = Pair::new();
        pair.parent.send(&control(1)).unwrap();
        for _ in 0..4 {
            let (mut down, mut up) = (Vec::new(), Vec::new());
            pair.parent.poll_transmit(&mut down);
            for part in down.chunks(step) {
                pair.child
                    .handle_bytes(pair.now, &mut part.to_vec())
                    .unwrap();
            }
            pair.child.poll_transmit(&mut up);
            for part in up.chunks(step) {
                pair.parent
                    .handle_bytes(pair.now, &mut part.to_vec())
                    .unwrap();
            }
        }
        let got = events(&mut pair.child);
        assert!(matches!(got[0], LinkEvent::Up(_)));
        assert_eq!(got.len(), 2);
    }
}
