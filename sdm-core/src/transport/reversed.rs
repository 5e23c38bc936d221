//! Reversed connections, for firewalls that let connections pass in that direction only: a child connects to
//! its parent.
//!
//! A [`Reversed`] transport passes everything on to the inner one, with two exceptions. At a listener
//! ([`Reversed::listen_for_callers`]) each caller first claims to be a certain server, in a way that only a
//! holder of the session's key can. Connecting to `called://3` takes the connection of server 3, as soon as
//! there is one. A caller ([`Reversed::call`]) keeps one such connection waiting at the listener. One byte from
//! the listener takes it: the caller then treats it as accepted and makes the next one. The handshake
//! inside is the usual one of a link: the parent begins it, and only it authenticates the peer.

mod caller;
mod claim;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, Instant};

pub use claim::fuzz_claim;

use super::{ConnId, ConnectionString, Scheme, Transport, TransportEvent, Waker};
use crate::ids::ServerId;
use crate::link::LinkConfig;
use caller::Caller;
use claim::{CLAIM_BYTES, Claim, TAKEN};

/// Maximum number of connections at a listener whose claim has not arrived.
const UNCLAIMED_MAX: usize = 256;
/// Time limit for the claim of a connection.
const CLAIM_WAIT: Duration = Duration::from_secs(10);
/// Bit that marks the connection ids assigned by [`Reversed`].
const OWN_ID: u64 = 1 << 63;

/// A transport that can reverse the direction in which connections are made; see the module.
pub struct Reversed<T> {
    inner: T,
    listener: Option<ReverseListener>,
    caller: Option<Caller>,
    /// Events that occurred outside of a poll.
    queued: Vec<TransportEvent>,
    raw: Vec<TransportEvent>,
}

/// The end at which callers connect, because nothing can connect to them.
struct ReverseListener {
    config: LinkConfig,
    /// Connections whose claim has not arrived, oldest first.
    unclaimed: Vec<UnclaimedConnection>,
    /// Connections that wait until they are needed: the newest one of each server.
    waiting: BTreeMap<ServerId, ConnId>,
    /// Servers that this member connects to and that have not called, with the id of each pending connection.
    wanted: BTreeMap<ServerId, ConnId>,
    /// Inner ids of connections in use, by the ids that this transport assigned; `own_of` is the inverse.
    inner_of: HashMap<ConnId, ConnId>,
    own_of: HashMap<ConnId, ConnId>,
    next_own: u64,
}

struct UnclaimedConnection {
    conn: ConnId,
    until: Instant,
    received: Vec<u8>,
}

impl<T: Transport> Reversed<T> {
    /// A transport that reverses no connection yet.
    #[must_use]
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            listener: None,
            caller: None,
            queued: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// The inner transport.
    pub fn inner(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Makes each further incoming connection claim to be a server of this session.
    pub fn listen_for_callers(&mut self, config: LinkConfig) {
        self.listener = Some(ReverseListener {
            config,
            unclaimed: Vec::new(),
            waiting: BTreeMap::new(),
            wanted: BTreeMap::new(),
            inner_of: HashMap::new(),
            own_of: HashMap::new(),
            next_own: OWN_ID,
        });
    }

    /// Makes this member call as server `me`: it keeps a connection waiting at the first of `places` that it reaches.
    pub fn call(&mut self, config: LinkConfig, me: ServerId, places: Vec<ConnectionString>) {
        self.caller = Some(Caller::new(config, me, places, Instant::now()));
    }

    /// Ends the calling, and closes the connection that waits at the listener. Accepted connections stay.
    pub fn stop_calling(&mut self) {
        if let Some(conn) = self.caller.take().and_then(|caller| caller.conn()) {
            self.inner.close(conn);
        }
    }

    fn inner_of(&self, conn: ConnId) -> ConnId {
        let listener = self.listener.as_ref();
        let found = listener.and_then(|listener| listener.inner_of.get(&conn));
        found.copied().unwrap_or(conn)
    }

    /// Handles an event of the inner transport: queues it with its own ids, or deals with a claim or a waiting
    /// connection.
    fn take(&mut self, event: TransportEvent) {
        if let Some(caller) = &mut self.caller {
            let taken = caller.take(&mut self.inner, event, &mut self.queued);
            let Some(event) = taken else { return };
            return self.queued.push(event);
        }
        let Some(listener) = &mut self.listener else {
            return self.queued.push(event);
        };
        match event {
            TransportEvent::Accepted { conn, .. } => {
                listener.receive(&mut self.inner, conn);
                listener.hear(&mut self.inner, conn, &mut self.queued);
            }
            TransportEvent::Readable(conn) if listener.is_unclaimed(conn) => {
                listener.hear(&mut self.inner, conn, &mut self.queued);
            }
            TransportEvent::Readable(conn) => match listener.own_of.get(&conn) {
                Some(own) => self.queued.push(TransportEvent::Readable(*own)),
                None if listener.waiting.values().any(|waiting| *waiting == conn) => {
                    listener.look_at_waiting(&mut self.inner, conn);
                }
                None => self.queued.push(event),
            },
            TransportEvent::Writable(conn) => {
                let own = listener.own_of.get(&conn).copied().unwrap_or(conn);
                self.queued.push(TransportEvent::Writable(own));
            }
            event => self.queued.push(event),
        }
    }
}

impl ReverseListener {
    fn is_unclaimed(&self, conn: ConnId) -> bool {
        self.unclaimed.iter().any(|it| it.conn == conn)
    }

    /// Adds a new connection. If too many are unclaimed, the oldest one is closed.
    fn receive(&mut self, inner: &mut impl Transport, conn: ConnId) {
        if self.unclaimed.len() == UNCLAIMED_MAX {
            inner.close(self.unclaimed.remove(0).conn);
        }
        self.unclaimed.push(UnclaimedConnection {
            conn,
            until: Instant::now() + CLAIM_WAIT,
            received: Vec::with_capacity(CLAIM_BYTES),
        });
    }

    /// Reads the claim of a connection, and accepts or closes the connection when the claim is complete.
    fn hear(&mut self, inner: &mut impl Transport, conn: ConnId, events: &mut Vec<TransportEvent>) {
        let Some(at) = self.unclaimed.iter().position(|it| it.conn == conn) else {
            return;
        };
        let it = &mut self.unclaimed[at];
        while it.received.len() < CLAIM_BYTES {
            let mut buffer = [0; CLAIM_BYTES];
            let room = CLAIM_BYTES - it.received.len();
            match inner.recv(conn, &mut buffer[..room]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(count) if count > 0 => it.received.extend_from_slice(&buffer[..count]),
                _ => {
                    self.unclaimed.remove(at);
                    return inner.close(conn);
                }
            }
        }
        let it = self.unclaimed.remove(at);
        match Claim::of(&self.config).check(&it.received) {
            Some(server) => self.admit(inner, server, conn, events),
            None => inner.close(conn),
        }
    }

    /// Accepts a server's call. Only the newest connection of a server is kept.
    fn admit(
        &mut self,
        inner: &mut impl Transport,
        server: ServerId,
        conn: ConnId,
        events: &mut Vec<TransportEvent>,
    ) {
        match self.wanted.remove(&server) {
            Some(own) => self.join(inner, own, conn, events),
            None => {
                if let Some(older) = self.waiting.insert(server, conn) {
                    inner.close(older);
                }
            }
        }
    }

    fn join(
        &mut self,
        inner: &mut impl Transport,
        own: ConnId,
        conn: ConnId,
        events: &mut Vec<TransportEvent>,
    ) {
        // The first byte in this direction: there is room for it, or the connection is broken.
        if let Err(error) = inner.send(conn, &[TAKEN]) {
            inner.close(conn);
            return events.push(TransportEvent::ConnectFailed { conn: own, error });
        }
        self.inner_of.insert(own, conn);
        self.own_of.insert(conn, own);
        events.push(TransportEvent::Connected(own));
    }

    /// Closes a waiting connection that was readable: it sent bytes too early, or ended.
    fn look_at_waiting(&mut self, inner: &mut impl Transport, conn: ConnId) {
        let mut byte = [0];
        let said = inner.recv(conn, &mut byte);
        if !matches!(&said, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.waiting.retain(|_, waiting| *waiting != conn);
            inner.close(conn);
        }
    }

    fn want(
        &mut self,
        inner: &mut impl Transport,
        server: ServerId,
        events: &mut Vec<TransportEvent>,
    ) -> ConnId {
        self.next_own += 1;
        let own = ConnId(self.next_own);
        match self.waiting.remove(&server) {
            Some(conn) => self.join(inner, own, conn, events),
            None => drop(self.wanted.insert(server, own)),
        }
        own
    }

    /// Closes connections whose claim is late.
    fn expire(&mut self, inner: &mut impl Transport, now: Instant) {
        let late = |it: &mut UnclaimedConnection| it.until <= now;
        for it in self.unclaimed.extract_if(.., late) {
            inner.close(it.conn);
        }
    }
}

impl<T: Transport> Transport for Reversed<T> {
    fn listen(&mut self, at: &ConnectionString, port_tries: u16) -> io::Result<ConnectionString> {
        match at.scheme() {
            // It calls.
            Scheme::Called => Ok(at.clone()),
            _ => self.inner.listen(at, port_tries),
        }
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
    }

    fn connect(&mut self, to: &ConnectionString) -> ConnId {
        match (&mut self.listener, to.caller()) {
            (Some(listener), Some(server)) if to.scheme() == Scheme::Called => {
                listener.want(&mut self.inner, server, &mut self.queued)
            }
            _ => self.inner.connect(to),
        }
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        let conn = self.inner_of(conn);
        self.inner.send(conn, bytes)
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(count) = self.caller.as_mut().and_then(|it| it.recv(conn, buf)) {
            return Ok(count);
        }
        let conn = self.inner_of(conn);
        self.inner.recv(conn, buf)
    }

    fn is_cut_off(&self, conn: ConnId) -> bool {
        self.inner.is_cut_off(self.inner_of(conn))
    }

    fn is_holding(&self) -> bool {
        self.inner.is_holding()
    }

    fn close(&mut self, conn: ConnId) {
        if let Some(caller) = &mut self.caller {
            caller.forget(conn);
        }
        let inner = self.inner_of(conn);
        if let Some(listener) = &mut self.listener {
            listener.wanted.retain(|_, wanted| *wanted != conn);
            listener.inner_of.remove(&conn);
            listener.own_of.remove(&inner);
        }
        if inner.0 < OWN_ID {
            self.inner.close(inner);
        }
        self.queued.retain(|event| event.conn() != Some(conn));
    }

    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()> {
        let now = Instant::now();
        if let Some(caller) = &mut self.caller {
            caller.dial(&mut self.inner, now);
        }
        if let Some(listener) = &mut self.listener {
            listener.expire(&mut self.inner, now);
        }
        let due = self.caller.as_ref().and_then(Caller::poll_timeout);
        let unclaimed = self
            .listener
            .iter()
            .flat_map(|listener| &listener.unclaimed);
        let due = unclaimed.map(|it| it.until).chain(due).min();
        let due = due.map(|at| at.saturating_duration_since(now));
        let timeout = match self.queued.is_empty() {
            true => [timeout, due].into_iter().flatten().min(),
            false => Some(Duration::ZERO),
        };
        let mut raw = std::mem::take(&mut self.raw);
        let polled = self.inner.poll(timeout, &mut raw);
        raw.drain(..).for_each(|event| self.take(event));
        self.raw = raw;
        events.append(&mut self.queued);
        polled
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }
}
