//! A network in memory: the same addresses, refusals, partial sends and full buffers as a real one,
//! between transports of one process.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{
    ConnId, ConnectionString, Transport, TransportEvent, Waker, listen_upwards, no_such_connection,
};

/// Maximum number of bytes in flight on one connection in one direction.
pub const BUFFER_BYTES_MAX: usize = 64 << 10;
/// The first port that is allocated for port 0.
const PORT_FREE_MIN: u16 = 40_000;

/// A network; clones are the same one.
#[derive(Clone, Default)]
pub struct MemNetwork {
    shared: Arc<SharedNetwork>,
}

#[derive(Default)]
struct SharedNetwork {
    state: Mutex<NetworkState>,
    changed: Condvar,
}

#[derive(Default)]
struct NetworkState {
    next_id: u64,
    listeners: HashMap<ConnectionString, EndpointId>,
    endpoints: HashMap<EndpointId, VecDeque<TransportEvent>>,
    ends: HashMap<ConnId, End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct EndpointId(u64);

/// One end of a connection.
struct End {
    owner: EndpointId,
    /// The other end; `None` once it is closed.
    peer: Option<ConnId>,
    /// Bytes to receive, at most [`BUFFER_BYTES_MAX`].
    inbox: VecDeque<u8>,
    /// True while an event `Readable` waits to be polled.
    readable_queued: bool,
    /// True after a send found no room.
    send_blocked: bool,
}

impl MemNetwork {
    /// A network without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A new host on the network.
    #[must_use]
    pub fn transport(&self) -> MemTransport {
        let mut state = self.lock();
        let endpoint = EndpointId(state.fresh_id());
        state.endpoints.insert(endpoint, VecDeque::new());
        MemTransport {
            network: self.clone(),
            endpoint,
        }
    }

    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        let state = self.shared.state.lock();
        state.expect("nothing panics while it holds the state")
    }
}

impl NetworkState {
    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn tell(&mut self, endpoint: EndpointId, event: TransportEvent) {
        if let Some(events) = self.endpoints.get_mut(&endpoint) {
            events.push_back(event);
        }
    }

    fn tell_readable(&mut self, conn: ConnId) {
        let end = self.ends.get_mut(&conn);
        if let Some(end) = end.filter(|end| !end.readable_queued) {
            end.readable_queued = true;
            let owner = end.owner;
            self.tell(owner, TransportEvent::Readable(conn));
        }
    }

    fn add_end(&mut self, conn: ConnId, owner: EndpointId, peer: ConnId) {
        let end = End {
            owner,
            peer: Some(peer),
            inbox: VecDeque::new(),
            readable_queued: false,
            send_blocked: false,
        };
        self.ends.insert(conn, end);
    }

    fn connect(&mut self, from: EndpointId, to: &ConnectionString) -> ConnId {
        let conn = ConnId(self.fresh_id());
        match self.listeners.get(to).copied() {
            Some(listener) => {
                let peer = ConnId(self.fresh_id());
                self.add_end(conn, from, peer);
                self.add_end(peer, listener, conn);
                self.tell(from, TransportEvent::Connected(conn));
                let accepted = TransportEvent::Accepted {
                    conn: peer,
                    peer: format!("mem:{}", from.0),
                };
                self.tell(listener, accepted);
            }
            None => {
                let error = io::ErrorKind::ConnectionRefused.into();
                self.tell(from, TransportEvent::ConnectFailed { conn, error });
            }
        }
        conn
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        let end = self.ends.get_mut(&conn).ok_or_else(no_such_connection)?;
        let peer = end.peer.ok_or(io::ErrorKind::BrokenPipe)?;
        let inbox = &mut self.ends.get_mut(&peer).expect("both ends know").inbox;
        let len = bytes.len().min(BUFFER_BYTES_MAX - inbox.len());
        inbox.extend(&bytes[..len]);
        if len < bytes.len() {
            self.ends.get_mut(&conn).expect("found above").send_blocked = true;
        }
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.tell_readable(peer);
        Ok(len)
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        let end = self.ends.get_mut(&conn).ok_or_else(no_such_connection)?;
        let peer = end.peer;
        let len = io::Read::read(&mut end.inbox, buf)?;
        if len == 0 && peer.is_some() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let sender = peer.and_then(|peer| Some((peer, self.ends.get_mut(&peer)?)));
        if let Some((peer, sender)) = sender.filter(|(_, sender)| sender.send_blocked) {
            sender.send_blocked = false;
            let owner = sender.owner;
            self.tell(owner, TransportEvent::Writable(peer));
        }
        Ok(len)
    }

    fn close(&mut self, conn: ConnId) {
        let peer = self.ends.remove(&conn).and_then(|end| end.peer);
        if let Some(end) = peer.and_then(|peer| self.ends.get_mut(&peer)) {
            end.peer = None;
        }
        if let Some(peer) = peer {
            self.tell_readable(peer);
        }
    }

    /// Removes and returns the events of an endpoint, except those of connections that it has closed since.
    fn take_events(&mut self, endpoint: EndpointId, events: &mut Vec<TransportEvent>) {
        let queued = self.endpoints.get_mut(&endpoint).map(std::mem::take);
        for event in queued.into_iter().flatten() {
            let of = match &event {
                TransportEvent::Accepted { conn, .. }
                | TransportEvent::Connected(conn)
                | TransportEvent::Readable(conn)
                | TransportEvent::Writable(conn) => self.ends.get_mut(conn),
                _ => {
                    events.push(event);
                    continue;
                }
            };
            let Some(end) = of else { continue };
            if matches!(event, TransportEvent::Readable(_)) {
                end.readable_queued = false;
            }
            events.push(event);
        }
    }
}

/// One host on a [`MemNetwork`]; its connections and ports end with it.
pub struct MemTransport {
    network: MemNetwork,
    endpoint: EndpointId,
}

impl MemTransport {
    /// Changes the network and wakes the waiting threads.
    fn change<T>(&self, change: impl FnOnce(&mut NetworkState, EndpointId) -> T) -> T {
        let result = change(&mut self.network.lock(), self.endpoint);
        self.network.shared.changed.notify_all();
        result
    }
}

impl Transport for MemTransport {
    fn listen(&mut self, at: &ConnectionString, port_tries: u16) -> io::Result<ConnectionString> {
        let mut state = self.network.lock();
        let first = match at.port() {
            0 => at.with_port(PORT_FREE_MIN),
            _ => at.clone(),
        };
        let tries = if at.port() == 0 { u16::MAX } else { port_tries };
        listen_upwards(&first, tries, |at| {
            if state.listeners.contains_key(at) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            state.listeners.insert(at.clone(), self.endpoint);
            Ok(at.clone())
        })
    }

    fn stop_listening(&mut self) {
        self.change(|state, me| state.listeners.retain(|_, endpoint| *endpoint != me));
    }

    fn connect(&mut self, to: &ConnectionString) -> ConnId {
        self.change(|state, me| state.connect(me, to))
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        self.change(|state, _| state.send(conn, bytes))
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        self.change(|state, _| state.recv(conn, buf))
    }

    fn close(&mut self, conn: ConnId) {
        self.change(|state, _| state.close(conn));
    }

    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let changed = &self.network.shared.changed;
        let mut state = self.network.lock();
        while state.endpoints[&self.endpoint].is_empty() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return Ok(()),
                Some(left) => changed.wait_timeout(state, left).map(|(s, _)| s).ok(),
                None => changed.wait(state).ok(),
            }
            .expect("nothing panics while it holds the state");
        }
        state.take_events(self.endpoint, events);
        Ok(())
    }

    fn waker(&self) -> Waker {
        let (network, endpoint) = (self.network.clone(), self.endpoint);
        Waker::new(move || {
            let mut state = network.lock();
            let events = state.endpoints.get_mut(&endpoint);
            if let Some(events) = events
                && !events.iter().any(|e| matches!(e, TransportEvent::Woken))
            {
                events.push_back(TransportEvent::Woken);
            }
            drop(state);
            network.shared.changed.notify_all();
        })
    }
}

impl Drop for MemTransport {
    fn drop(&mut self) {
        self.stop_listening();
        self.change(|state, me| {
            let ends = state.ends.iter().filter(|(_, end)| end.owner == me);
            let mut mine: Vec<ConnId> = ends.map(|(conn, _)| *conn).collect();
            mine.sort_unstable();
            mine.into_iter().for_each(|conn| state.close(conn));
            state.endpoints.remove(&me);
        });
    }
}
