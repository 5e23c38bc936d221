//! A member over a transport: the event loop of the master, of every server and of the front-end.

mod front_end;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::member::{Member, Output};
use crate::node::{LinkId, LocalTasks};
pub use front_end::Unreached;

use crate::transport::{ConnId, ConnectionString, Transport, TransportEvent, Waker};

/// An event for the owner of a [`MemberDriver`].
#[derive(Debug)]
pub enum DriverEvent {
    /// Output of the member for the owner: never [`Output::Dial`], [`Output::Write`] or [`Output::Close`].
    Output(Output),
    /// A descriptor watched through [`MemberDriver::transport`] is ready.
    Ready(RawFd),
    /// Another thread woke the loop.
    Woken,
}

/// Buffer size of one read from a connection, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Maximum number of reads in a row from one connection, so that other connections get their turn.
const READS_MAX: usize = 16;
/// Time limit for sending the last bytes at the end.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

struct LinkConnection {
    link: LinkId,
    /// Bytes that did not fit into the socket's buffer.
    unsent: Vec<u8>,
    sent: usize,
    connected: bool,
    /// True if the connection is closed once all bytes are sent.
    closing: bool,
    /// True while the connection is in the driver's `flush` list.
    flushing: bool,
}

/// A member with its connections.
pub struct MemberDriver<T: Transport> {
    member: Member,
    transport: T,
    connections: BTreeMap<ConnId, LinkConnection>,
    by_link: BTreeMap<LinkId, ConnId>,
    /// Connections with bytes left to read after their turn.
    unread: VecDeque<ConnId>,
    events: VecDeque<DriverEvent>,
    /// Connections with something to write, in the order in which it came up.
    flush: VecDeque<ConnId>,
    ready: Vec<TransportEvent>,
    buffer: Vec<u8>,
    /// Time of the last clock reading, which is used until the next event.
    now: Instant,
    /// The time up to which everything that had arrived was read.
    read_until: Instant,
}

impl<T: Transport> MemberDriver<T> {
    /// A driver that runs this member over this transport.
    pub fn new(member: Member, transport: T) -> Self {
        let now = Instant::now();
        Self {
            member,
            transport,
            connections: BTreeMap::new(),
            by_link: BTreeMap::new(),
            unread: VecDeque::new(),
            events: VecDeque::new(),
            flush: VecDeque::new(),
            ready: Vec::new(),
            buffer: vec![0; READ_BYTES],
            now,
            read_until: now,
        }
    }

    /// The transport, for listening and watching.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// A handle that wakes [`MemberDriver::next`] from another thread.
    pub fn waker(&self) -> Waker {
        self.transport.waker()
    }

    /// The member inside.
    #[must_use]
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Calls `act` on the member, then carries out the member's outputs.
    pub fn with_member<R>(&mut self, act: impl FnOnce(&mut Member, Instant) -> R) -> R {
        let now = self.tick();
        let result = act(&mut self.member, now);
        self.drain();
        result
    }

    /// Begins to connect to the front-end, in one attempt. A failure is reported later, as the member's end. See
    /// [`MemberDriver::reach_front_end`] for several attempts.
    pub fn connect_front_end(&mut self, address: &ConnectionString) {
        self.begin_front_end(address);
    }

    /// Waits for the next event, until `deadline` or without a limit. Returns `None` at the deadline.
    ///
    /// # Errors
    /// The transport cannot wait for events: the driver cannot continue.
    pub fn next(&mut self, deadline: Option<Instant>) -> io::Result<Option<DriverEvent>> {
        self.next_with(deadline, None)
    }

    /// Like [`MemberDriver::next`], for an owner with tasks. A command for the tasks is passed to `tasks` as soon as it
    /// arrives. If they answer it at once, no event follows; see [`Member::handle_bytes`].
    ///
    /// # Errors
    /// As [`MemberDriver::next`].
    pub fn next_with(
        &mut self,
        deadline: Option<Instant>,
        mut tasks: Option<&mut dyn LocalTasks>,
    ) -> io::Result<Option<DriverEvent>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let now = self.tick();
            let due = self.member.poll_timeout();
            if self.is_due(due, now) {
                self.member.handle_timeout(now);
                self.drain();
                self.drop_cut_off(now);
                continue;
            }
            let until = [deadline, due].into_iter().flatten().min();
            let mut wait = until.map(|until| until.saturating_duration_since(now));
            if !self.unread.is_empty() {
                wait = Some(Duration::ZERO);
            }
            self.turn(wait, lent(&mut tasks))?;
            if self.events.is_empty() && deadline.is_some_and(|at| at <= Instant::now()) {
                return Ok(None);
            }
        }
    }

    /// The descriptor of the next pending event if that event is [`DriverEvent::Ready`]; otherwise `None`. It does not
    /// wait. So the owner can handle together all descriptors that became ready together.
    pub fn next_ready(&mut self) -> Option<RawFd> {
        match self.events.front() {
            Some(DriverEvent::Ready(fd)) => {
                let fd = *fd;
                self.events.pop_front();
                Some(fd)
            }
            _ => None,
        }
    }

    /// True if a time limit of the member has passed, and what had arrived by then was read. A process that was
    /// stopped, or that had no processor, first reads: a peer whose bytes wait in a socket is not late.
    fn is_due(&self, due: Option<Instant>, now: Instant) -> bool {
        due.is_some_and(|at| at <= now && at <= self.read_until)
    }

    /// Reads the clock; the time holds until the next call.
    fn tick(&mut self) -> Instant {
        self.now = Instant::now();
        self.now
    }

    /// Waits for the transport once and handles what is ready.
    fn turn(
        &mut self,
        wait: Option<Duration>,
        mut tasks: Option<&mut (dyn LocalTasks + '_)>,
    ) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        // A signal may end the wait early, so that only what arrived before it is read for certain.
        self.read_until = self.tick();
        self.transport.poll(wait, &mut ready)?;
        self.tick();
        for conn in std::mem::take(&mut self.unread) {
            self.read(conn, lent(&mut tasks));
        }
        for event in ready.drain(..) {
            self.handle(event, lent(&mut tasks));
        }
        self.ready = ready;
        self.drain();
        Ok(())
    }

    fn handle(&mut self, event: TransportEvent, tasks: Option<&mut dyn LocalTasks>) {
        match event {
            TransportEvent::Accepted { conn, .. } => match self.member.accept(self.now) {
                Some(link) => {
                    self.add(conn, link, true);
                    self.read(conn, tasks);
                }
                None => self.transport.close(conn),
            },
            TransportEvent::Connected(conn) => {
                let Some(connection) = self.connections.get_mut(&conn) else {
                    return;
                };
                connection.connected = true;
                let link = connection.link;
                self.member.handle_connected(self.now, link);
                self.drain();
                self.write(conn);
            }
            TransportEvent::ConnectFailed { conn, error } => {
                if let Some(connection) = self.remove(conn) {
                    let now = self.now;
                    self.member
                        .handle_connect_failed(now, connection.link, &error);
                    self.member
                        .handle_closed(now, connection.link, &error.to_string());
                }
            }
            TransportEvent::Readable(conn) => self.read(conn, tasks),
            TransportEvent::Writable(conn) => self.write(conn),
            TransportEvent::Ready { fd } => self.events.push_back(DriverEvent::Ready(fd)),
            TransportEvent::Woken => self.events.push_back(DriverEvent::Woken),
        }
    }

    fn add(&mut self, conn: ConnId, link: LinkId, connected: bool) {
        let connection = LinkConnection {
            link,
            unsent: Vec::new(),
            sent: 0,
            connected,
            closing: false,
            flushing: false,
        };
        self.connections.insert(conn, connection);
        self.by_link.insert(link, conn);
    }

    fn remove(&mut self, conn: ConnId) -> Option<LinkConnection> {
        let connection = self.connections.remove(&conn)?;
        self.by_link.remove(&connection.link);
        Some(connection)
    }

    /// Reads the available bytes of a connection, at most as many reads as its turn allows.
    fn read(&mut self, conn: ConnId, mut tasks: Option<&mut dyn LocalTasks>) {
        for _ in 0..READS_MAX {
            let Some(connection) = self.connections.get(&conn) else {
                return;
            };
            let link = connection.link;
            let why = match self.transport.recv(conn, &mut self.buffer) {
                Ok(0) => "closed by the peer".to_owned(),
                Ok(count) => {
                    // Events that the owner has not received yet come first.
                    let tasks = lent(&mut tasks).filter(|_| self.events.is_empty());
                    let bytes = &mut self.buffer[..count];
                    self.member.handle_bytes(self.now, link, bytes, tasks);
                    self.drain();
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error.to_string(),
            };
            self.transport.close(conn);
            self.remove(conn);
            self.member.handle_closed(self.now, link, &why);
            self.drain();
            return;
        }
        self.unread.push_back(conn);
    }

    /// Writes until the socket's buffer is full or no bytes are left.
    fn write(&mut self, conn: ConnId) {
        let now = self.now;
        loop {
            let Some(connection) = self.connections.get_mut(&conn) else {
                return;
            };
            if !connection.connected {
                return;
            }
            if connection.sent == connection.unsent.len() {
                connection.unsent.clear();
                connection.sent = 0;
                if connection.unsent.capacity() > 2 * READ_BYTES {
                    connection.unsent = Vec::new();
                }
                let link = connection.link;
                let some = !connection.closing
                    && self.member.poll_transmit(now, link, &mut connection.unsent);
                if !some || connection.unsent.is_empty() {
                    if connection.closing {
                        self.transport.close(conn);
                        self.remove(conn);
                    }
                    return;
                }
            }
            match self
                .transport
                .send(conn, &connection.unsent[connection.sent..])
            {
                Ok(count) => connection.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let link = connection.link;
                    self.transport.close(conn);
                    self.remove(conn);
                    self.member.handle_closed(now, link, &error.to_string());
                    return;
                }
            }
        }
    }

    /// Closes connections to hosts that are cut off. Pings continue on a silent link, so there is always data to
    /// acknowledge.
    fn drop_cut_off(&mut self, now: Instant) {
        let silent = self.member.silent_links();
        let conns = silent.filter_map(|link| Some((link, *self.by_link.get(&link)?)));
        let gone: Vec<_> = conns
            .filter(|(_, conn)| self.transport.is_cut_off(*conn))
            .collect();
        for (link, conn) in gone {
            self.transport.close(conn);
            self.remove(conn);
            let why = "the peer's host does not acknowledge any data";
            self.member.handle_closed(now, link, why);
            self.drain();
        }
    }

    /// Carries out the member's outputs. Writes come last, one flush per connection, in the order in which
    /// the member had data for them.
    fn drain(&mut self) {
        loop {
            while let Some(output) = self.member.poll_output() {
                match output {
                    Output::Write(link) => self.flush_later(link),
                    Output::Close { link, last_bytes } => self.close(link, &last_bytes),
                    Output::Dial { link, address } => self.dial(link, &address),
                    output => self.events.push_back(DriverEvent::Output(output)),
                }
            }
            let Some(conn) = self.flush.pop_front() else {
                return;
            };
            if let Some(connection) = self.connections.get_mut(&conn) {
                connection.flushing = false;
                self.write(conn);
            }
        }
    }

    fn flush_later(&mut self, link: LinkId) {
        if let Some(&conn) = self.by_link.get(&link)
            && let Some(connection) = self.connections.get_mut(&conn)
            && !std::mem::replace(&mut connection.flushing, true)
        {
            self.flush.push_back(conn);
        }
    }

    fn dial(&mut self, link: LinkId, address: &ConnectionString) {
        let conn = self.transport.connect(address);
        self.add(conn, link, false);
    }

    /// Closes a connection once its last bytes are written. A connection that is not established yet is closed at once.
    fn close(&mut self, link: LinkId, last_bytes: &[u8]) {
        if let Some(&conn) = self.by_link.get(&link)
            && let Some(connection) = self.connections.get_mut(&conn)
        {
            connection.unsent.extend_from_slice(last_bytes);
            connection.closing = true;
            if connection.connected {
                self.write(conn);
            } else {
                self.transport.close(conn);
                self.remove(conn);
            }
        }
    }

    /// Sends all remaining bytes, within a time limit; for the very end.
    pub fn flush(&mut self) {
        let deadline = Instant::now() + FLUSH_WAIT;
        loop {
            let conns: Vec<ConnId> = self.connections.keys().copied().collect();
            conns.into_iter().for_each(|conn| self.write(conn));
            let busy = self.transport.is_holding()
                || self
                    .connections
                    .values()
                    .any(|c| c.connected && c.sent < c.unsent.len());
            let left = deadline.saturating_duration_since(Instant::now());
            if !busy || left.is_zero() || self.turn(Some(left.min(FLUSH_WAIT / 8)), None).is_err() {
                return;
            }
        }
    }
}

/// Reborrows the own tasks for one call.
fn lent<'a>(
    tasks: &'a mut Option<&mut (dyn LocalTasks + '_)>,
) -> Option<&'a mut (dyn LocalTasks + 'a)> {
    match tasks {
        Some(tasks) => Some(&mut **tasks),
        None => None,
    }
}
