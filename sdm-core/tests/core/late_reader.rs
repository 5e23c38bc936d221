//! A member that does not run for a while: it reads the arrived messages before it finds a peer to be late.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::driver::MemberDriver;
use sdm_core::link::{Link, LinkConfig, LinkEvent};
use sdm_core::member::Member;
use sdm_core::node::Node;
use sdm_core::secure::{Hello, Role, SessionKey, draw_session_id};
use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnectionString, Transport};
use sdm_core::{Epoch, ServerId};

fn master() -> Hello {
    Hello {
        role: Role::Child,
        id: ServerId::MASTER,
        expect: Some(ServerId::FRONT_END),
        epoch: Epoch(1),
        incarnation: 0,
        build: "late".to_owned(),
        features: 0,
    }
}

/// Runs the front-end until it has sent bytes or has hung up; returns the bytes.
fn answer(front_end: &mut MemberDriver<TcpTransport>, stream: &mut TcpStream) -> Vec<u8> {
    let mut buffer = [0; 4096];
    stream.set_nonblocking(true).expect("a socket");
    loop {
        match stream.read(&mut buffer) {
            Ok(count) => return buffer[..count].to_vec(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        let turn = Instant::now() + Duration::from_millis(1);
        front_end.next(Some(turn)).expect("events");
    }
}

fn send(link: &mut Link, stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    while link.poll_transmit(&mut bytes) {}
    stream.set_nonblocking(false).expect("a socket");
    stream.write_all(&bytes).expect("it is connected");
}

#[test]
fn handshake_waiting_unread_in_the_socket_does_not_time_out() {
    let key = SessionKey::draw().expect("random bytes");
    let config = LinkConfig {
        handshake_wait: Duration::from_secs(1),
        ..LinkConfig::new(key, draw_session_id().expect("random bytes"))
    };
    let mut sockets = TcpTransport::new().expect("an event loop");
    let local = ConnectionString::tcp("127.0.0.1", 0).expect("an address");
    let at = sockets.listen(&local, 1).expect("listen").to_string();
    let node = Node::root(Instant::now(), |_, _| None);
    let member = Member::new(node, Arc::new(config.clone()));
    let mut front_end = MemberDriver::new(member, sockets);
    let at = at.strip_prefix("tcp://").expect("an address");
    let mut stream = TcpStream::connect(at).expect("it listens");
    let mut link = Link::initiate(Instant::now(), &config, master());
    send(&mut link, &mut stream);
    let mut greeting = answer(&mut front_end, &mut stream);
    link.handle_bytes(Instant::now(), &mut greeting)
        .expect("it holds the key");
    assert!(matches!(link.poll_event(), Some(LinkEvent::Up(_))));
    send(&mut link, &mut stream);
    // The front-end has no processor meanwhile.
    let late = front_end.member().poll_timeout().expect("of the handshake");
    std::thread::sleep(late.saturating_duration_since(Instant::now()));
    let mut pong = answer(&mut front_end, &mut stream);
    assert!(!pong.is_empty(), "the front-end has hung up");
    link.handle_bytes(Instant::now(), &mut pong)
        .expect("the link is up");
}
