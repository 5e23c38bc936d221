//! Two transports that can connect to each other, and steps until one of them reports a wanted event.

use std::io;
use std::time::{Duration, Instant};

use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent};

/// Time limit for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts of one network.
pub(crate) struct Hosts {
    pub(crate) a: Box<dyn Transport>,
    pub(crate) b: Box<dyn Transport>,
    pub(crate) seen_a: Vec<TransportEvent>,
    pub(crate) seen_b: Vec<TransportEvent>,
    until: Instant,
    /// A free place to listen at.
    pub(crate) place: fn() -> ConnectionString,
}

impl Hosts {
    pub(crate) fn new(
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

    /// Polls both hosts once, for at most a millisecond.
    pub(crate) fn step(&mut self) {
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

    /// Runs until `find` returns a result for an event of A.
    pub(crate) fn until_a<T>(&mut self, find: impl Fn(&TransportEvent) -> Option<T>) -> T {
        loop {
            if let Some(at) = self.seen_a.iter().position(|event| find(event).is_some()) {
                return find(&self.seen_a.remove(at)).expect("found above");
            }
            self.step();
        }
    }

    pub(crate) fn until_b<T>(&mut self, find: impl Fn(&TransportEvent) -> Option<T>) -> T {
        loop {
            if let Some(at) = self.seen_b.iter().position(|event| find(event).is_some()) {
                return find(&self.seen_b.remove(at)).expect("found above");
            }
            self.step();
        }
    }

    /// A connects to B; returns the connection's id at each of the two.
    pub(crate) fn connect(&mut self) -> (ConnId, ConnId) {
        let at = self.b.listen(&(self.place)(), 1).expect("listen");
        self.connect_to(&at)
    }

    pub(crate) fn connect_to(&mut self, at: &ConnectionString) -> (ConnId, ConnId) {
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

pub(crate) fn is(found: bool) -> Option<()> {
    found.then_some(())
}

pub(crate) fn local() -> ConnectionString {
    ConnectionString::tcp("127.0.0.1", 0).expect("an address")
}

pub(crate) fn is_blocked<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Receives all available bytes. Also returns whether the stream has ended.
pub(crate) fn drain(transport: &mut dyn Transport, conn: ConnId) -> (Vec<u8>, bool) {
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
