//! One suite for every transport: what a link needs of it, and links over it.
#![allow(missing_docs)]

mod common;

use std::io;
use std::time::{Duration, Instant};

use common::{output, plain_command};
use sdm_core::limits;
use sdm_core::link::{Link, LinkConfig, LinkError, LinkEvent};
use sdm_core::message::{Lane, Message};
use sdm_core::secure::{Hello, Role, SessionKey};
use sdm_core::transport::mem::MemNetwork;
use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent};
use sdm_core::{CommandId, Epoch, ServerId, SessionId};
use sdm_idset::IdSet;

/// How long to wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts of one network.
struct Hosts {
    a: Box<dyn Transport>,
    b: Box<dyn Transport>,
    seen_a: Vec<TransportEvent>,
    seen_b: Vec<TransportEvent>,
    until: Instant,
    /// A free place to listen at.
    place: fn() -> ConnectionString,
}

impl Hosts {
    fn new(
        a: impl Transport + 'static,
        b: impl Transport + 'static,
        place: fn() -> ConnectionString,
    ) -> Self {
        Self {
            place,
            a: Box::new(a),
            b: Box::new(b),
            seen_a: Vec::new(),
            seen_b: Vec::new(),
            until: Instant::now() + PATIENCE,
        }
    }

    /// Waits a moment for either.
    fn step(&mut self) {
        assert!(
            Instant::now() < self.until,
            "{:?} {:?}",
            self.seen_a,
            self.seen_b
        );
        let moment = Some(Duration::from_millis(1));
        self.a.poll(moment, &mut self.seen_a).expect("poll");
        self.b
            .poll(Some(Duration::ZERO), &mut self.seen_b)
            .expect("poll");
    }

    /// Runs until `find` finds something in what A saw.
    fn until_a<T>(&mut self, find: impl Fn(&TransportEvent) -> Option<T>) -> T {
        loop {
            if let Some(at) = self.seen_a.iter().position(|event| find(event).is_some()) {
                return find(&self.seen_a.remove(at)).expect("found above");
            }
            self.step();
        }
    }

    fn until_b<T>(&mut self, find: impl Fn(&TransportEvent) -> Option<T>) -> T {
        loop {
            if let Some(at) = self.seen_b.iter().position(|event| find(event).is_some()) {
                return find(&self.seen_b.remove(at)).expect("found above");
            }
            self.step();
        }
    }

    /// A connects to B: the ids at both.
    fn connect(&mut self) -> (ConnId, ConnId) {
        let at = self.b.listen(&(self.place)(), 1).expect("listen");
        self.connect_to(&at)
    }

    fn connect_to(&mut self, at: &ConnectionString) -> (ConnId, ConnId) {
        let conn = self.a.connect(at);
        self.until_a(|event| is(matches!(event, TransportEvent::Connected(c) if *c == conn)));
        let peer = self.until_b(|event| match event {
            TransportEvent::Accepted { conn, peer } => {
                assert!(!peer.is_empty());
                Some(*conn)
            }
            _ => None,
        });
        (conn, peer)
    }
}

fn is(found: bool) -> Option<()> {
    found.then_some(())
}

fn local() -> ConnectionString {
    ConnectionString::tcp("127.0.0.1", 0).expect("an address")
}

fn is_blocked<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Receives all that is there: the bytes, and whether the stream ended.
fn drain(transport: &mut dyn Transport, conn: ConnId) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    let mut buf = [0; 8192];
    loop {
        match transport.recv(conn, &mut buf) {
            Ok(0) => return (all, true),
            Ok(len) => all.extend_from_slice(&buf[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (all, false),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A link over a transport, as a member drives it.
struct Driven {
    link: Link,
    conn: ConnId,
    unsent: Vec<u8>,
    error: Option<LinkError>,
    closed: bool,
    events: Vec<LinkEvent>,
}

impl Driven {
    fn new(link: Link, conn: ConnId) -> Self {
        Self {
            link,
            conn,
            unsent: Vec::new(),
            error: None,
            closed: false,
            events: Vec::new(),
        }
    }

    fn drive(&mut self, transport: &mut dyn Transport) {
        let mut buf = [0; 65_536];
        while !self.closed && self.error.is_none() {
            match transport.recv(self.conn, &mut buf) {
                Ok(0) => self.closed = true,
                Ok(len) => self.error = self.link.handle_bytes(Instant::now(), &buf[..len]).err(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.closed = true,
            }
            while let Some(event) = self.link.poll_event() {
                self.events.push(event);
            }
        }
        while !self.unsent.is_empty() || self.link.poll_transmit(&mut self.unsent) {
            match transport.send(self.conn, &self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(_) => break,
            }
        }
        if self.error.is_some() && !self.closed {
            self.closed = true;
            transport.close(self.conn);
        }
    }
}

fn hello(role: Role, id: u32, expect: Option<u32>) -> Hello {
    Hello {
        role,
        id: ServerId(id),
        expect: expect.map(ServerId),
        epoch: Epoch(1),
        incarnation: 0,
        build: "suite".to_owned(),
        features: 0,
    }
}

fn config(key: u8) -> LinkConfig {
    LinkConfig {
        // A member grants this to one child; a link begins with less.
        bulk_window_bytes: limits::BULK_WINDOW_BYTES,
        ..LinkConfig::new(SessionKey::from_bytes([key; 32]), SessionId([9; 8]))
    }
}

/// A parent at A and a child at B, over a connection.
fn links(hosts: &mut Hosts, key: u8) -> (Driven, Driven) {
    let (a, b) = hosts.connect();
    let now = Instant::now();
    let parent = Link::initiate(now, &config(key), hello(Role::Parent, 0, Some(1)));
    let child = Link::respond(now, &config(7), hello(Role::Child, 1, None));
    (Driven::new(parent, a), Driven::new(child, b))
}

fn drive_until(
    hosts: &mut Hosts,
    (parent, child): (&mut Driven, &mut Driven),
    mut done: impl FnMut(&mut Driven, &mut Driven) -> bool,
) {
    loop {
        parent.drive(&mut *hosts.a);
        child.drive(&mut *hosts.b);
        if done(parent, child) {
            return;
        }
        hosts.step();
    }
}

fn a_refused_connection_is_an_event(mut hosts: Hosts) {
    let at = hosts.b.listen(&(hosts.place)(), 1).expect("listen");
    hosts.b.stop_listening();
    let conn = hosts.a.connect(&at);
    let kind = hosts.until_a(|event| match event {
        TransportEvent::ConnectFailed { conn: c, error } if *c == conn => Some(error.kind()),
        _ => None,
    });
    assert_eq!(kind, io::ErrorKind::ConnectionRefused);
    assert!(hosts.a.send(conn, b"x").is_err());
}

fn bytes_pass_both_ways_and_then_the_end(mut hosts: Hosts) {
    let (a, b) = hosts.connect();
    let mut buf = [0; 10];
    assert!(is_blocked(&hosts.b.recv(b, &mut buf)));
    assert_eq!(hosts.a.send(a, b"hello").expect("send"), 5);
    hosts.until_b(|event| is(matches!(event, TransportEvent::Readable(c) if *c == b)));
    assert_eq!(drain(&mut *hosts.b, b), (b"hello".to_vec(), false));
    assert_eq!(hosts.b.send(b, b"bye").expect("send"), 3);
    hosts.b.close(b);
    let mut got = Vec::new();
    loop {
        hosts.until_a(|event| is(matches!(event, TransportEvent::Readable(c) if *c == a)));
        let (bytes, ended) = drain(&mut *hosts.a, a);
        got.extend(bytes);
        if ended {
            break;
        }
    }
    assert_eq!(got, b"bye");
    hosts.a.close(a);
    assert!(hosts.a.recv(a, &mut buf).is_err());
    assert!(hosts.a.send(a, b"x").is_err());
}

fn a_full_buffer_blocks_and_room_is_told(mut hosts: Hosts) {
    let (a, b) = hosts.connect();
    hosts.seen_a.clear();
    let chunk = vec![1; 10_000];
    let (mut sent, mut received) = (0, 0);
    for _ in 0..3 {
        loop {
            match hosts.a.send(a, &chunk) {
                Ok(len) => sent += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        // Events of before the block mean nothing.
        hosts.step();
        hosts.seen_a.clear();
        loop {
            received += drain(&mut *hosts.b, b).0.len();
            let writable = |e: &TransportEvent| matches!(e, TransportEvent::Writable(c) if *c == a);
            if hosts.seen_a.iter().any(writable) {
                break;
            }
            hosts.step();
        }
    }
    while received < sent {
        received += drain(&mut *hosts.b, b).0.len();
        hosts.step();
    }
    assert_eq!(received, sent);
}

fn a_taken_port_leads_to_the_next_one(mut hosts: Hosts) {
    let first = hosts.a.listen(&(hosts.place)(), 1).expect("listen");
    let error = hosts.b.listen(&first, 1).expect_err("taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&first.to_string()), "{error}");
    let second = hosts.b.listen(&first, 1000).expect("listen");
    assert_ne!(second, first);
    // And it really is there.
    let conn = hosts.a.connect(&second);
    hosts.until_a(|event| is(matches!(event, TransportEvent::Connected(c) if *c == conn)));
}

fn many_connections_are_accepted(mut hosts: Hosts) {
    let at = hosts.b.listen(&(hosts.place)(), 1).expect("listen");
    let conns: Vec<ConnId> = (0..300).map(|_| hosts.a.connect(&at)).collect();
    let mut accepted = Vec::new();
    for _ in &conns {
        hosts.until_a(|event| is(matches!(event, TransportEvent::Connected(_))));
        accepted.push(hosts.until_b(|event| match event {
            TransportEvent::Accepted { conn, .. } => Some(*conn),
            _ => None,
        }));
    }
    accepted.sort_unstable();
    accepted.dedup();
    assert_eq!(accepted.len(), conns.len());
    for conn in conns {
        hosts.a.send(conn, b"x").expect("send");
    }
    for conn in accepted {
        hosts.until_b(|event| is(matches!(event, TransportEvent::Readable(c) if *c == conn)));
    }
}

fn a_waker_ends_the_waiting(mut hosts: Hosts) {
    let waker = hosts.a.waker();
    let thread = std::thread::spawn({
        let waker = waker.clone();
        move || waker.wake()
    });
    let mut events = Vec::new();
    while events.is_empty() {
        hosts.a.poll(Some(PATIENCE), &mut events).expect("poll");
    }
    assert!(matches!(events[..], [TransportEvent::Woken]), "{events:?}");
    thread.join().expect("the thread ends");
    // Wakes before a poll add up, and a waker may outlive its transport.
    waker.wake();
    waker.wake();
    events.clear();
    hosts.a.poll(Some(PATIENCE), &mut events).expect("poll");
    assert_eq!(events.len(), 1);
    drop(hosts);
    waker.wake();
}

fn a_closed_connection_says_nothing_more(mut hosts: Hosts) {
    let (a, b) = hosts.connect();
    hosts.a.send(a, b"x").expect("send");
    hosts.b.close(b);
    hosts.b.close(b);
    hosts.until_a(|event| is(matches!(event, TransportEvent::Readable(c) if *c == a)));
    hosts.step();
    let of_b = |event: &TransportEvent| matches!(event, TransportEvent::Readable(c) | TransportEvent::Writable(c) if *c == b);
    hosts.seen_b.clear();
    hosts.step();
    assert!(!hosts.seen_b.iter().any(of_b));
}

fn links_talk(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 7);
    let command = plain_command(1, IdSet::all_below(1000), &b"print x"[..]);
    parent.link.send(&command).expect("queued before it is up");
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        parent.link.is_up() && child.events.len() == 2
    });
    assert!(matches!(&child.events[0], LinkEvent::Up(hello) if hello.id == ServerId(0)));
    let message = LinkEvent::Message {
        message: command,
        bulk_bytes: 0,
    };
    assert_eq!(child.events[1], message);
}

fn a_wrong_key_is_said_at_both_ends(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 8);
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        parent.error.is_some() && child.error.is_some()
    });
    assert_eq!(parent.error, Some(LinkError::WrongKey));
    assert_eq!(child.error, Some(LinkError::WrongKey));
    assert!(parent.events.is_empty() && child.events.is_empty());
}

fn ten_megabytes_of_output_under_credit(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 7);
    let chunk: Vec<u8> = (0..32_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let total = 10_000_000 / chunk.len();
    let (mut sent, mut received, mut controls) = (0, 0, 0);
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        // As a server does: it produces no more while much is waiting.
        while sent < total && child.link.bulk_backlog() < 4 * chunk.len() {
            child.link.send(&output(1, chunk.clone())).expect("up");
            sent += 1;
            if sent % 50 == 0 {
                child
                    .link
                    .send(&Message::Cancel(CommandId(sent as u64)))
                    .expect("up");
            }
        }
        for event in parent.events.drain(..) {
            let LinkEvent::Message {
                message,
                bulk_bytes,
            } = event
            else {
                continue;
            };
            match message {
                Message::Event(event) => {
                    assert_eq!(event.blocks[0].payload, chunk);
                    received += 1;
                }
                _ => controls += 1,
            }
            parent.link.release(bulk_bytes);
        }
        received == total
    });
    assert_eq!(controls, total / 50);
}

fn control_passes_a_link_whose_bulk_is_stuck(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 7);
    for _ in 0..100 {
        child
            .link
            .send(&output(1, vec![0; 32_000]))
            .expect("queued");
    }
    child
        .link
        .send(&Message::Cancel(CommandId(1)))
        .expect("queued");
    let is_control = |event: &LinkEvent| matches!(event, LinkEvent::Message { message, .. } if message.lane() == Lane::Control);
    // The parent never releases anything.
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, _| {
        parent.events.iter().any(is_control)
    });
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, _| {
        parent.events.len() >= 9
    });
    assert!(is_control(&parent.events[1]), "control went first");
    child.link.send(&Message::Cancel(CommandId(2))).expect("up");
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, _| {
        parent
            .events
            .iter()
            .filter(|event| is_control(event))
            .count()
            == 2
    });
    assert!(child.link.bulk_backlog() > 80 * 32_000);
    let bulk = parent.events.len() - 3;
    assert!(bulk <= 9, "a window and one frame: {bulk}");
}

macro_rules! transport_suite {
    ($name:ident, $hosts:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(#[test]
            fn $test() {
                super::$test($hosts);
            })*
        }
    };
}

macro_rules! suite_over {
    ($name:ident, $hosts:expr) => {
        transport_suite!(
            $name,
            $hosts,
            [
                a_refused_connection_is_an_event,
                bytes_pass_both_ways_and_then_the_end,
                a_full_buffer_blocks_and_room_is_told,
                a_taken_port_leads_to_the_next_one,
                many_connections_are_accepted,
                a_waker_ends_the_waiting,
                a_closed_connection_says_nothing_more,
                links_talk,
                a_wrong_key_is_said_at_both_ends,
                ten_megabytes_of_output_under_credit,
                control_passes_a_link_whose_bulk_is_stuck,
            ]
        );
    };
}

fn mem_hosts() -> Hosts {
    let network = MemNetwork::new();
    Hosts::new(network.transport(), network.transport(), local)
}

suite_over!(mem, super::mem_hosts());

#[cfg(feature = "net")]
fn hosts_with_sockets(place: fn() -> ConnectionString) -> Hosts {
    use sdm_core::transport::tcp::TcpTransport;
    let transport = || TcpTransport::new().expect("an event loop");
    Hosts::new(transport(), transport(), place)
}

#[cfg(feature = "net")]
suite_over!(tcp, super::hosts_with_sockets(super::local));

/// What connects is slower than it could be, in both directions.
#[cfg(feature = "net")]
fn shaped_hosts() -> Hosts {
    use sdm_core::transport::shaped::Shaped;
    use sdm_core::transport::tcp::TcpTransport;
    let transport = || TcpTransport::new().expect("an event loop");
    let mut shaped = Shaped::new(transport());
    let shape = "latency_us=2000,bandwidth=20000000".parse().expect("one");
    shaped.set_shape(shape).expect("a timer");
    Hosts::new(shaped, transport(), local)
}

// Its room comes by itself, so that what is told of it cannot be told from what was told before.
#[cfg(feature = "net")]
transport_suite!(
    shaped,
    super::shaped_hosts(),
    [
        a_refused_connection_is_an_event,
        bytes_pass_both_ways_and_then_the_end,
        a_taken_port_leads_to_the_next_one,
        many_connections_are_accepted,
        a_waker_ends_the_waiting,
        a_closed_connection_says_nothing_more,
        links_talk,
        a_wrong_key_is_said_at_both_ends,
        ten_megabytes_of_output_under_credit,
        control_passes_a_link_whose_bulk_is_stuck,
    ]
);

#[cfg(feature = "net")]
fn local_v6() -> ConnectionString {
    ConnectionString::tcp("::1", 0).expect("an address")
}

#[cfg(feature = "net")]
suite_over!(tcp_v6, super::hosts_with_sockets(super::local_v6));

/// B calls at A's desk.
#[cfg(feature = "net")]
fn hosts_the_other_way_round() -> Hosts {
    use sdm_core::transport::reversed::Reversed;
    use sdm_core::transport::tcp::TcpTransport;
    let transport = || Reversed::new(TcpTransport::new().expect("an event loop"));
    let (mut a, mut b) = (transport(), transport());
    let desk = a.listen(&local(), 1).expect("listen");
    a.open_desk(config(1));
    b.call(config(1), ServerId(3), vec![nobody(), desk]);
    Hosts::new(a, b, || ConnectionString::called(ServerId(3)))
}

/// A place where nobody listens.
#[cfg(feature = "net")]
fn nobody() -> ConnectionString {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("bound").into()
}

#[cfg(feature = "net")]
transport_suite!(
    reversed,
    super::hosts_the_other_way_round(),
    [
        bytes_pass_both_ways_and_then_the_end,
        a_full_buffer_blocks_and_room_is_told,
        a_waker_ends_the_waiting,
        a_closed_connection_says_nothing_more,
        links_talk,
        a_wrong_key_is_said_at_both_ends,
        ten_megabytes_of_output_under_credit,
        control_passes_a_link_whose_bulk_is_stuck,
    ]
);

/// Strangers at a desk are heard for a while, and make room for those who come after them.
#[cfg(feature = "net")]
#[test]
fn strangers_at_a_desk_change_nothing() {
    use std::io::Write;
    use std::net::TcpStream;
    let mut hosts = hosts_the_other_way_round();
    let desk = hosts.a.listen(&local(), 1).expect("listen");
    let at = desk.socket_addr().expect("tcp");
    let strangers: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(at).expect("it listens");
            let said = if number % 2 == 0 {
                &[b'S'; 56][..]
            } else {
                b"SDMC"
            };
            stream.write_all(said).expect("it has room");
            // The kernel holds only so many.
            hosts.step();
            stream
        })
        .collect();
    let (mut parent, mut child) = links(&mut hosts, 7);
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        parent.link.is_up() && child.link.is_up()
    });
    drop(strangers);
}

/// A path that no test of this or another process uses.
#[cfg(feature = "net")]
fn fresh_path() -> ConnectionString {
    use std::sync::atomic::{AtomicU32, Ordering};
    static USED: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "sdm-transport-{}-{}",
        std::process::id(),
        USED.fetch_add(1, Ordering::Relaxed)
    );
    ConnectionString::try_from(std::env::temp_dir().join(name)).expect("a path")
}

#[cfg(feature = "net")]
suite_over!(unix, super::hosts_with_sockets(super::fresh_path));
