//! Connections with a simulated latency and bandwidth: bytes arrive in order and never earlier than these allow.
//! Traffic within a host is not delayed.

use std::io;
use std::time::{Duration, Instant};

use sdm_core::transport::shaped_socket::Shaped;
use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent};

const PATIENCE: Duration = Duration::from_secs(60);

fn transport(shape: &str) -> Shaped {
    let mut shaped = Shaped::new(TcpTransport::new().expect("an event loop"));
    if !shape.is_empty() {
        shaped
            .set_shape(shape.parse().expect(shape))
            .expect("a timer");
    }
    shaped
}

/// Polls both until one of them has the wanted event.
fn until(a: &mut Shaped, b: &mut Shaped, wanted: impl Fn(bool, &TransportEvent) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut found = false;
    while !found {
        assert!(Instant::now() < deadline, "it never came");
        for (is_a, side) in [(true, &mut *a), (false, &mut *b)] {
            let mut seen = Vec::new();
            side.poll(Some(Duration::from_millis(1)), &mut seen)
                .expect("poll");
            found |= seen.iter().any(|event| wanted(is_a, event));
        }
    }
}

fn connect(a: &mut Shaped, b: &mut Shaped, place: &str) -> (ConnId, ConnId) {
    let place: ConnectionString = place.parse().expect("an address");
    let at = b.listen(&place, 1).expect("listen");
    let conn = a.connect(&at);
    let peer = std::cell::Cell::new(None);
    until(a, b, |_, event| {
        if let TransportEvent::Accepted { conn, .. } = event {
            peer.set(Some(*conn));
        }
        peer.get().is_some()
    });
    (conn, peer.get().expect("accepted"))
}

/// Receives `count` bytes at `side`, whose other end is `other`.
fn receive(side: &mut Shaped, other: &mut Shaped, conn: ConnId, count: usize) -> Vec<u8> {
    let deadline = Instant::now() + PATIENCE;
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    while got.len() < count {
        assert!(Instant::now() < deadline, "{} of {count}", got.len());
        match side.recv(conn, &mut buffer) {
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                for side in [&mut *side, &mut *other] {
                    side.poll(Some(Duration::from_millis(1)), &mut Vec::new())
                        .expect("poll");
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    got
}

#[test]
fn shaped_connection_delays_both_ways_and_loses_no_byte() {
    let (mut a, mut b) = (transport("latency_us=30000"), transport(""));
    let (conn, peer) = connect(&mut a, &mut b, "tcp://127.0.0.1:0");
    let latency = Duration::from_millis(30);
    let began = Instant::now();
    assert_eq!(a.send(conn, b"question").expect("room"), 8);
    assert!(a.is_holding());
    assert_eq!(receive(&mut b, &mut a, peer, 8), b"question");
    assert!(began.elapsed() >= latency && !a.is_holding());
    let began = Instant::now();
    b.send(peer, b"answer").expect("room");
    assert_eq!(receive(&mut a, &mut b, conn, 6), b"answer");
    assert!(began.elapsed() >= latency);
    a.send(conn, b"last").expect("room");
    a.close(conn);
    assert!(a.send(conn, b"more").is_err());
    assert_eq!(receive(&mut b, &mut a, peer, 4), b"last");
    let deadline = Instant::now() + PATIENCE;
    while !matches!(b.recv(peer, &mut [0; 8]), Ok(0)) {
        assert!(Instant::now() < deadline, "the end never came");
        a.poll(Some(Duration::from_millis(1)), &mut Vec::new())
            .expect("poll");
        b.poll(Some(Duration::ZERO), &mut Vec::new()).expect("poll");
    }
}

#[test]
fn bytes_arrive_in_order_within_the_bandwidth() {
    let shape = "latency_us=1000,bandwidth=1000000";
    for towards_a in [false, true] {
        let (mut a, mut b) = (transport(shape), transport(""));
        let (conn, peer) = connect(&mut a, &mut b, "tcp://127.0.0.1:0");
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let began = Instant::now();
        // The number of bytes that a shaped line accepts at once, and that a socket does.
        let sent = match towards_a {
            false => a.send(conn, &bytes),
            true => b.send(peer, &bytes),
        };
        assert_eq!(sent.expect("room"), bytes.len());
        let got = match towards_a {
            false => receive(&mut b, &mut a, peer, bytes.len()),
            true => receive(&mut a, &mut b, conn, bytes.len()),
        };
        assert!(got == bytes, "not what was sent");
        assert!(began.elapsed() >= Duration::from_millis(100));
        if !towards_a {
            assert!(a.send(conn, &[0; 200_000]).expect("some") <= 101_500);
            while a.send(conn, &[0; 10_000]).is_ok() {}
            let is_room = |event: &_| matches!(event, TransportEvent::Writable(at) if *at == conn);
            until(&mut a, &mut b, |is_a, event| is_a && is_room(event));
            assert!(a.send(conn, b"x").is_ok());
        }
    }
}

#[test]
fn traffic_within_a_host_is_not_delayed() {
    let shape = "latency_us=10000,between_hosts";
    for (place, holds) in [("tcp://127.0.0.1:0", false), ("tcp://127.0.0.2:0", true)] {
        let (mut a, mut b) = (transport(shape), transport(""));
        a.listen(&"tcp://127.0.0.1:0".parse().expect("one"), 1)
            .expect("listen");
        let (conn, peer) = connect(&mut a, &mut b, place);
        a.send(conn, b"x").expect("room");
        assert_eq!(a.is_holding(), holds, "{place}");
        assert_eq!(receive(&mut b, &mut a, peer, 1), b"x");
    }
}
