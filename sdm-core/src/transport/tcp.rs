//! Sockets as a transport: one event loop per process, edge-triggered, without any polling interval.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

pub use super::inet::{listener, resolve};
use super::local::LocalNames;
use super::socket::{Listener, Stream};
use crate::link::LinkConfig;

use super::{
    ConnId, ConnectionString, ForeignFd, Transport, TransportEvent, Waker, listen_upwards,
    no_such_connection,
};

/// Maximum number of kernel events per poll.
const EVENTS_MAX: usize = 1024;
/// Maximum number of connections accepted from one listener per poll, so that other connections get their turn.
const ACCEPTS_MAX: usize = 256;
/// Pause in accepting connections after the process ran out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Path of the `ssh` program for tunnels, unless another is set.
const SSH: &str = "/usr/bin/ssh";

/// Kinds of tokens, in the two lowest bits of a token; the other bits are an index.
const WAKER: usize = 0;
const LISTENER: usize = 1;
const CONNECTION: usize = 2;
const FOREIGN: usize = 3;

/// Counts of the system calls and bytes of a transport so far, which benches compare with a baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of waits for events.
    pub polls: u64,
    /// Number of writes to connections.
    pub sends: u64,
    /// Number of reads from connections.
    pub recvs: u64,
    /// Number of bytes written to connections, handshakes included.
    pub sent_bytes: u64,
}

/// Sockets, foreign descriptors and wakers in one event loop.
pub struct TcpTransport {
    poll: Poll,
    waker: Arc<mio::Waker>,
    kernel_events: Events,
    listeners: Vec<Listener>,
    connections: BTreeMap<ConnId, SocketConnection>,
    next_conn: u64,
    /// Events that occurred outside of a poll.
    queued: Vec<TransportEvent>,
    /// Time of the next attempt to accept connections; `None` if none is due. It is due at once after an event of a
    /// listener or while more connections wait, and after a pause if descriptors ran out.
    accept_at: Option<Instant>,
    calls: Calls,
    /// Path of the `ssh` program through which tunnels run.
    ssh: PathBuf,
    /// Names of the sockets between members of this host, made of the session's key; `None` before
    /// [`TcpTransport::set_session`].
    names: Option<LocalNames>,
}

struct SocketConnection {
    stream: Stream,
    /// True until an outgoing connection is established.
    connecting: bool,
    /// True after a short read: no bytes are available until the kernel reports some.
    drained: bool,
    /// The other end has closed or failed: the remaining bytes are read up to the end.
    ending: bool,
    /// A send was refused for want of room.
    full: bool,
}

impl TcpTransport {
    /// An event loop without anything in it.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), Token(WAKER))?);
        Ok(Self {
            poll,
            waker,
            kernel_events: Events::with_capacity(EVENTS_MAX),
            listeners: Vec::new(),
            connections: BTreeMap::new(),
            next_conn: 0,
            queued: Vec::new(),
            accept_at: None,
            calls: Calls::default(),
            ssh: SSH.into(),
            names: None,
        })
    }

    /// Sets the session in which addresses of this host (`local://3`) are looked up.
    pub fn set_session(&mut self, config: &LinkConfig) {
        self.names = Some(LocalNames::of(config));
    }

    /// Sets the `ssh` program for tunnels, in place of `/usr/bin/ssh`.
    pub fn set_ssh(&mut self, program: PathBuf) {
        self.ssh = program;
    }

    /// System calls made so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.calls
    }

    /// Watches a foreign descriptor, or changes its directions: reports
    /// [`TransportEvent::Ready`] once each time it becomes readable or writable, or its other end
    /// closes. The owner reads or writes until `WouldBlock`, and forgets it before closing it.
    ///
    /// # Errors
    /// The system cannot watch the descriptor (for example a regular file), or neither direction was requested.
    pub fn watch(&mut self, fd: ForeignFd, readable: bool, writable: bool) -> io::Result<()> {
        let interest = match (readable, writable) {
            (true, true) => Interest::READABLE | Interest::WRITABLE,
            (true, false) => Interest::READABLE,
            (false, true) => Interest::WRITABLE,
            (false, false) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let number = usize::try_from(fd).map_err(|_| io::ErrorKind::InvalidInput)?;
        let token = token(number, FOREIGN);
        let registry = self.poll.registry();
        match registry.register(&mut SourceFd(&fd), token, interest) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                registry.reregister(&mut SourceFd(&fd), token, interest)
            }
            result => result,
        }
    }

    /// Ends the watching of a descriptor; one that is not watched is no error.
    pub fn forget(&mut self, fd: ForeignFd) {
        // Deregistering fails only for a descriptor that is not registered.
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
    }

    /// Accepts from a socket that listens already.
    ///
    /// # Errors
    /// The system cannot watch the socket.
    pub fn listen_on(&mut self, socket: std::net::TcpListener) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        self.add_listener(Listener::Tcp(mio::net::TcpListener::from_std(socket)))
    }

    fn add_listener(&mut self, mut listener: Listener) -> io::Result<()> {
        let token = token(self.listeners.len(), LISTENER);
        let registry = self.poll.registry();
        registry.register(&mut listener, token, Interest::READABLE)?;
        self.listeners.push(listener);
        Ok(())
    }

    fn begin_connect(&mut self, conn: ConnId, to: &ConnectionString) -> io::Result<()> {
        let stream = Stream::connect(to, &self.ssh, self.names.as_ref())?;
        let stands = stream.is_unix();
        self.add(conn, stream, !stands)?;
        if stands {
            self.queued.push(TransportEvent::Connected(conn));
        }
        Ok(())
    }

    fn add(&mut self, conn: ConnId, mut stream: Stream, connecting: bool) -> io::Result<()> {
        let interest = match stream.is_unix() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let registry = self.poll.registry();
        registry.register(&mut stream, token(index(conn), CONNECTION), interest)?;
        let connection = SocketConnection {
            stream,
            connecting,
            drained: false,
            ending: false,
            full: false,
        };
        self.connections.insert(conn, connection);
        Ok(())
    }

    fn fresh_conn(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId(self.next_conn)
    }

    fn accept_all(&mut self, events: &mut Vec<TransportEvent>) {
        self.accept_at = None;
        for index in 0..self.listeners.len() {
            for accepted in 0.. {
                if accepted == ACCEPTS_MAX {
                    self.accept_at = Some(Instant::now());
                    break;
                }
                match self.listeners[index].accept() {
                    Ok((stream, peer)) => self.accepted(stream, peer, events),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_of_the_caller(&error) => {}
                    // Out of descriptors or memory: the callers wait in the kernel meanwhile.
                    Err(_) => {
                        self.accept_at = Some(Instant::now() + ACCEPT_PAUSE);
                        break;
                    }
                }
            }
        }
    }

    fn accepted(&mut self, stream: Stream, peer: String, events: &mut Vec<TransportEvent>) {
        let conn = self.fresh_conn();
        // A caller that has already disconnected is ignored.
        if self.add(conn, stream, false).is_ok() {
            events.push(TransportEvent::Accepted { conn, peer });
        }
    }

    fn take_kernel_event(&mut self, event: &Event, events: &mut Vec<TransportEvent>) {
        let number = event.token().0 >> 2;
        match event.token().0 & 3 {
            WAKER => events.push(TransportEvent::Woken),
            LISTENER => self.accept_at = Some(Instant::now()),
            FOREIGN => {
                let fd = ForeignFd::try_from(number).expect("made from one");
                events.push(TransportEvent::Ready { fd });
            }
            _ => self.take_connection_event(ConnId(number as u64), event, events),
        }
    }

    fn take_connection_event(
        &mut self,
        conn: ConnId,
        event: &Event,
        events: &mut Vec<TransportEvent>,
    ) {
        let Some(connection) = self.connections.get_mut(&conn) else {
            return;
        };
        if connection.connecting {
            match connection.stream.outcome() {
                Ok(false) => return,
                Ok(true) => {
                    connection.connecting = false;
                    events.push(TransportEvent::Connected(conn));
                }
                Err(error) => {
                    self.close(conn);
                    events.push(TransportEvent::ConnectFailed { conn, error });
                    return;
                }
            }
        } else if event.is_writable() && std::mem::take(&mut connection.full) {
            // This fails only where the connection has failed, which the next read reports.
            let _ = connection.watch_room(conn, &self.poll, false);
            events.push(TransportEvent::Writable(conn));
        }
        connection.ending |= event.is_read_closed() || event.is_error();
        if event.is_readable() || connection.ending {
            connection.drained = false;
            events.push(TransportEvent::Readable(conn));
        }
    }
}

impl SocketConnection {
    /// Starts or stops watching for room on a Unix socket, for which the kernel would report it at every read of
    /// the other end.
    fn watch_room(&mut self, conn: ConnId, poll: &Poll, wanted: bool) -> io::Result<()> {
        if !self.stream.is_unix() {
            return Ok(());
        }
        let interest = match wanted {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        let token = token(index(conn), CONNECTION);
        poll.registry()
            .reregister(&mut self.stream, token, interest)
    }
}

impl Transport for TcpTransport {
    fn listen(&mut self, at: &ConnectionString, port_tries: u16) -> io::Result<ConnectionString> {
        let names = self.names.as_ref();
        let listener = listen_upwards(at, port_tries, |at| Listener::bind(at, names))?;
        let bound = listener.bound(at)?;
        self.add_listener(listener)?;
        Ok(bound)
    }

    fn stop_listening(&mut self) {
        for listener in &mut self.listeners {
            // Deregistering fails only for a listener that is not registered.
            let _ = self.poll.registry().deregister(listener);
        }
        self.listeners.clear();
        self.accept_at = None;
    }

    fn connect(&mut self, to: &ConnectionString) -> ConnId {
        let conn = self.fresh_conn();
        if let Err(error) = self.begin_connect(conn, to) {
            let failed = TransportEvent::ConnectFailed { conn, error };
            self.queued.push(failed);
        }
        conn
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        self.calls.sends += 1;
        let connection = self.connections.get_mut(&conn);
        let connection = connection.ok_or_else(no_such_connection)?;
        let sent = retry(|| connection.stream.send(bytes));
        if would_block(&sent) && !std::mem::replace(&mut connection.full, true) {
            connection.watch_room(conn, &self.poll, true)?;
        }
        self.calls.sent_bytes += sent.as_ref().map_or(0, |count| *count as u64);
        sent
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        let connection = self.connections.get_mut(&conn);
        let connection = connection.ok_or_else(no_such_connection)?;
        if connection.drained {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.calls.recvs += 1;
        let received = retry(|| connection.stream.recv(buf));
        // After a short read, later bytes cause a new event, so no further read is needed now.
        let less = received.as_ref().is_ok_and(|count| *count < buf.len());
        connection.drained = (less || would_block(&received)) && !connection.ending;
        received
    }

    fn is_cut_off(&self, conn: ConnId) -> bool {
        let connection = self.connections.get(&conn);
        connection.is_some_and(|connection| connection.stream.is_cut_off())
    }

    fn close(&mut self, conn: ConnId) {
        if let Some(mut connection) = self.connections.remove(&conn) {
            // Dropping it would do too; this keeps mio's own books right.
            let _ = self.poll.registry().deregister(&mut connection.stream);
            // A descriptor is free again, so accepting continues.
            self.accept_at = self.accept_at.map(|_| Instant::now());
        }
        self.queued.retain(|event| event.conn() != Some(conn));
    }

    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()> {
        let pause = self
            .accept_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = if self.queued.is_empty() {
            [timeout, pause].into_iter().flatten().min()
        } else {
            Some(Duration::ZERO)
        };
        events.append(&mut self.queued);
        self.calls.polls += 1;
        match self.poll.poll(&mut self.kernel_events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        let kernel_events = std::mem::replace(&mut self.kernel_events, Events::with_capacity(0));
        for event in &kernel_events {
            self.take_kernel_event(event, events);
        }
        self.kernel_events = kernel_events;
        if self.accept_at.is_some_and(|at| at <= Instant::now()) {
            self.accept_all(events);
        }
        Ok(())
    }

    fn waker(&self) -> Waker {
        let waker = Arc::clone(&self.waker);
        // It fails only when the kernel is out of memory; the loop goes on at its next event.
        Waker::new(move || drop(waker.wake()))
    }
}

/// True for an error of the one incoming connection; false if accepting itself has failed.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::TimedOut
    )
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn token(number: usize, kind: usize) -> Token {
    Token(number << 2 | kind)
}

fn index(conn: ConnId) -> usize {
    usize::try_from(conn.0).expect("connections are counted in memory")
}
