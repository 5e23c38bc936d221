//! Sockets over a simulated slower network: bytes of this end's connections are delayed as long as the
//! modelled network would take.
//!
//! The connecting end delays both directions, so the other end needs no knowledge of it. A kernel timer in the
//! same event loop releases the delayed bytes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::shape::{Line, Packet, Shape};
use super::tcp::TcpTransport;
use super::{ConnId, ConnectionString, Scheme, Transport, TransportEvent, Waker};

/// Buffer size of one read from a connection, in bytes.
const READ_BYTES: usize = 64 << 10;

/// TCP and Unix sockets; some of their connections are slowed down to a given latency and bandwidth.
pub struct Shaped {
    inner: TcpTransport,
    /// Shape of connections that are made from now on, and its timer; `None` if they are not slowed down.
    shape: Option<(Shape, TimerFd)>,
    /// Time at which the timer expires; `None` if it is not set.
    armed: Option<Instant>,
    /// The hosts at which this member listens.
    own: Vec<String>,
    shaped: BTreeMap<ConnId, Lines>,
    buffer: Vec<u8>,
}

/// Both directions of a connection.
struct Lines {
    out: Line,
    into: Line,
    /// True if the socket may have more to read.
    unread: bool,
    /// True if the owner was notified that the connection is readable, and has not read to the end.
    told: bool,
    /// True if the owner's last send was refused.
    full: bool,
    /// True once the connection is established.
    connected: bool,
    /// True if the socket's last send was refused.
    stuck: bool,
    /// True if the owner has closed the connection, whose last data is still in flight.
    closed: bool,
}

impl Shaped {
    /// Sockets that are not slowed down, until [`Shaped::set_shape`] is called.
    #[must_use]
    pub fn new(inner: TcpTransport) -> Self {
        Self {
            inner,
            shape: None,
            armed: None,
            own: Vec::new(),
            shaped: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    /// The sockets, for watching other descriptors.
    pub fn sockets(&mut self) -> &mut TcpTransport {
        &mut self.inner
    }

    /// Sets the shape of connections that are made from now on.
    ///
    /// # Errors
    /// The system has no timer left.
    pub fn set_shape(&mut self, shape: Shape) -> io::Result<()> {
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        let fd = timer.as_fd().as_raw_fd();
        self.inner.watch(fd, true, false)?;
        self.buffer = vec![0; READ_BYTES];
        self.shape = Some((shape, timer));
        Ok(())
    }

    fn is_shaped(&self, to: &ConnectionString) -> Option<Shape> {
        let (shape, _) = self.shape.as_ref()?;
        let is_unix = matches!(to.scheme(), Scheme::Unix | Scheme::Local);
        let within = is_unix || self.own.iter().any(|own| own == to.host());
        (!shape.between_hosts || !within).then_some(*shape)
    }

    /// Time of the next timer event over all connections; `None` if none is due.
    fn next_at(&self) -> Option<Instant> {
        self.shaped.values().filter_map(Lines::next_at).min()
    }

    /// Sets the timer; false if an event is due already.
    fn arm(&mut self, now: Instant) -> io::Result<bool> {
        let (Some((_, timer)), Some(at)) = (&self.shape, self.next_at()) else {
            return Ok(true);
        };
        let wait = at.saturating_duration_since(now);
        if wait.is_zero() {
            return Ok(false);
        }
        if self.armed != Some(at) {
            let once = Expiration::OneShot(TimeSpec::from_duration(wait));
            timer.set(once, TimerSetTimeFlags::empty())?;
            self.armed = Some(at);
        }
        Ok(true)
    }

    /// Translates an event of the inner transport; `None` if the owner gets it later.
    fn take(&mut self, event: TransportEvent) -> Option<TransportEvent> {
        match event {
            TransportEvent::Ready { fd } if self.is_timer(fd) => {
                self.armed = None;
                None
            }
            TransportEvent::Readable(conn) | TransportEvent::Writable(conn) => {
                let Some(lines) = self.shaped.get_mut(&conn) else {
                    return Some(event);
                };
                match event {
                    TransportEvent::Readable(_) => lines.unread = true,
                    _ => lines.stuck = false,
                }
                None
            }
            TransportEvent::Connected(conn) => {
                if let Some(lines) = self.shaped.get_mut(&conn) {
                    lines.connected = true;
                }
                Some(event)
            }
            TransportEvent::ConnectFailed { conn, .. } => {
                self.shaped.remove(&conn);
                Some(event)
            }
            _ => Some(event),
        }
    }

    fn is_timer(&self, fd: i32) -> bool {
        let timer = self.shape.as_ref();
        timer.is_some_and(|(_, timer)| timer.as_fd().as_raw_fd() == fd)
    }

    /// Passes on the packets that have arrived by now, in both directions.
    fn release(&mut self, events: &mut Vec<TransportEvent>) {
        let now = Instant::now();
        let mut over = Vec::new();
        for (&conn, lines) in &mut self.shaped {
            lines.send(now, conn, &mut self.inner);
            lines.receive(now, conn, &mut self.inner, &mut self.buffer);
            if lines.closed {
                let ended = matches!(lines.into.due(now), Some(Packet::End(_)));
                if lines.out.is_empty() || ended {
                    over.push(conn);
                }
                continue;
            }
            if lines.full && lines.out.room(now) > 0 {
                lines.full = false;
                events.push(TransportEvent::Writable(conn));
            }
            if !lines.told && lines.into.due(now).is_some() {
                lines.told = true;
                events.push(TransportEvent::Readable(conn));
            }
        }
        for conn in over {
            self.shaped.remove(&conn);
            self.inner.close(conn);
        }
    }
}

impl Lines {
    fn new(now: Instant, shape: Shape) -> Self {
        Self {
            out: Line::new(now, shape),
            into: Line::new(now, shape),
            unread: false,
            told: false,
            full: false,
            connected: false,
            stuck: false,
            closed: false,
        }
    }

    fn can_send(&self) -> bool {
        self.connected && !self.stuck
    }

    /// Time of the connection's next timer event; `None` if none is due.
    fn next_at(&self) -> Option<Instant> {
        let sent = self.out.due_at().filter(|_| self.can_send());
        let come = self.into.due_at().filter(|_| !self.told || self.closed);
        let room = self.out.room_at().filter(|_| self.full);
        let more = self.into.room_at().filter(|_| self.unread);
        [sent, come, room, more].into_iter().flatten().min()
    }

    /// Writes to the socket the packets that are due.
    fn send(&mut self, now: Instant, conn: ConnId, inner: &mut TcpTransport) {
        while let (true, Some(Packet::Bytes(bytes))) = (self.can_send(), self.out.due(now)) {
            match inner.send(conn, bytes) {
                Ok(count) => self.out.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stuck = true,
                Err(_) => {
                    // The next read reports the error to the owner.
                    self.out.clear();
                    self.unread = true;
                }
            }
        }
    }

    /// Reads from the socket as much as the line has room for.
    fn receive(&mut self, now: Instant, conn: ConnId, inner: &mut TcpTransport, buffer: &mut [u8]) {
        while self.unread {
            let room = self.into.room(now).min(buffer.len());
            if room == 0 {
                return;
            }
            let ended = match inner.recv(conn, &mut buffer[..room]) {
                Ok(0) => Some(None),
                // The connection is closed: its bytes are discarded.
                Ok(_) if self.closed => None,
                Ok(count) => {
                    self.into.push(now, &buffer[..count]);
                    None
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unread = false;
                    None
                }
                Err(error) => Some(Some(error.kind())),
            };
            if let Some(end) = ended {
                self.into.push_end(now, end);
                self.unread = false;
            }
        }
    }
}

impl Transport for Shaped {
    fn listen(&mut self, at: &ConnectionString, port_tries: u16) -> io::Result<ConnectionString> {
        let bound = self.inner.listen(at, port_tries)?;
        if bound.scheme() == Scheme::Tcp {
            self.own.push(bound.host().to_owned());
        }
        Ok(bound)
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
    }

    fn connect(&mut self, to: &ConnectionString) -> ConnId {
        let conn = self.inner.connect(to);
        if let Some(shape) = self.is_shaped(to) {
            self.shaped.insert(conn, Lines::new(Instant::now(), shape));
        }
        conn
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        let Some(lines) = self.shaped.get_mut(&conn) else {
            return self.inner.send(conn, bytes);
        };
        if lines.closed {
            return Err(super::no_such_connection());
        }
        let now = Instant::now();
        let count = lines.out.room(now).min(bytes.len());
        if count == 0 && !bytes.is_empty() {
            lines.full = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        lines.out.push(now, &bytes[..count]);
        Ok(count)
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        let Some(lines) = self.shaped.get_mut(&conn) else {
            return self.inner.recv(conn, buf);
        };
        if lines.closed {
            return Err(super::no_such_connection());
        }
        let now = Instant::now();
        let mut filled = 0;
        while filled < buf.len() {
            match lines.into.due(now) {
                Some(Packet::Bytes(bytes)) => {
                    let count = bytes.len().min(buf.len() - filled);
                    buf[filled..filled + count].copy_from_slice(&bytes[..count]);
                    filled += count;
                    lines.into.advance(count);
                }
                Some(Packet::End(end)) if filled == 0 => {
                    return end.map_or(Ok(0), |kind| Err(kind.into()));
                }
                _ => break,
            }
        }
        if filled == 0 && !buf.is_empty() {
            lines.told = false;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(filled)
    }

    fn is_cut_off(&self, conn: ConnId) -> bool {
        self.inner.is_cut_off(conn)
    }

    fn is_holding(&self) -> bool {
        self.shaped.values().any(|lines| !lines.out.is_empty())
    }

    fn close(&mut self, conn: ConnId) {
        match self.shaped.get_mut(&conn) {
            Some(lines) if lines.connected && !lines.out.is_empty() => {
                lines.closed = true;
                lines.into.clear();
            }
            _ => {
                self.shaped.remove(&conn);
                self.inner.close(conn);
            }
        }
    }

    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()> {
        if self.shape.is_none() {
            return self.inner.poll(timeout, events);
        }
        let waits = self.arm(Instant::now())?;
        let mut seen = Vec::new();
        let timeout = if waits { timeout } else { Some(Duration::ZERO) };
        self.inner.poll(timeout, &mut seen)?;
        for event in seen {
            events.extend(self.take(event));
        }
        self.release(events);
        Ok(())
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }
}
