//! The calling end of reversed connections: it keeps one connection waiting at the listener.

use std::io;
use std::time::{Duration, Instant};

use super::claim::{Claim, TAKEN};
use crate::dialer::{ATTEMPT_WAIT, PAUSE_MAX, PAUSE_MIN};
use crate::ids::ServerId;
use crate::link::LinkConfig;
use crate::transport::{ConnId, ConnectionString, Transport, TransportEvent};

/// Buffer size for bytes that follow directly on the byte [`TAKEN`].
const EARLY_BYTES: usize = 512;

pub(super) struct Caller {
    config: LinkConfig,
    me: ServerId,
    places: Vec<ConnectionString>,
    /// Index of the next address in `places`, < `places.len()`.
    place: usize,
    state: CallState,
    pause: Duration,
    /// Bytes that followed directly on [`TAKEN`], by connection.
    early: Vec<(ConnId, Vec<u8>)>,
}

#[derive(Clone, Copy)]
enum CallState {
    /// The next attempt is made at this time, not before.
    Pause(Instant),
    /// An attempt is under way. If there is no connection by this time, it has failed.
    Connecting(ConnId, Instant),
    /// The connection is established and waits until the listener takes it.
    Waiting(ConnId),
}

impl Caller {
    pub(super) fn new(
        config: LinkConfig,
        me: ServerId,
        places: Vec<ConnectionString>,
        now: Instant,
    ) -> Self {
        Self {
            config,
            me,
            places,
            place: 0,
            state: CallState::Pause(now),
            pause: PAUSE_MIN,
            early: Vec::new(),
        }
    }

    /// The connection that is being made or waits; `None` during a pause. It is not reported to the owner of the
    /// transport.
    pub(super) fn conn(&self) -> Option<ConnId> {
        match self.state {
            CallState::Pause(_) => None,
            CallState::Connecting(conn, _) | CallState::Waiting(conn) => Some(conn),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            CallState::Pause(until) | CallState::Connecting(_, until) => Some(until),
            CallState::Waiting(_) => None,
        }
    }

    /// Begins the next attempt if its time has come.
    pub(super) fn dial(&mut self, inner: &mut impl Transport, now: Instant) {
        if let CallState::Connecting(conn, until) = self.state
            && until <= now
        {
            inner.close(conn);
            self.failed(now);
        }
        if let CallState::Pause(until) = self.state
            && until <= now
            && let Some(place) = self.places.get(self.place)
        {
            let conn = inner.connect(place);
            self.state = CallState::Connecting(conn, now + ATTEMPT_WAIT);
        }
    }

    /// Continues with the next address. After the last one a growing pause follows.
    fn failed(&mut self, now: Instant) {
        self.place += 1;
        let mut until = now;
        if self.place >= self.places.len() {
            self.place = 0;
            until += self.pause;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        self.state = CallState::Pause(until);
    }

    /// Handles an event of the connection that is being made or waits, and returns `None`. Returns any other event
    /// unchanged.
    pub(super) fn take(
        &mut self,
        inner: &mut impl Transport,
        event: TransportEvent,
        events: &mut Vec<TransportEvent>,
    ) -> Option<TransportEvent> {
        if event.conn().is_none() || event.conn() != self.conn() {
            return Some(event);
        }
        let now = Instant::now();
        match event {
            TransportEvent::Connected(conn) => match self.claim(inner, conn) {
                Ok(()) => self.state = CallState::Waiting(conn),
                Err(_) => {
                    inner.close(conn);
                    self.failed(now);
                }
            },
            TransportEvent::ConnectFailed { .. } => self.failed(now),
            TransportEvent::Readable(conn) => self.read(inner, conn, events),
            _ => {}
        }
        None
    }

    /// Sends the claim: the first bytes of a connection, for which its buffer has room.
    fn claim(&self, inner: &mut impl Transport, conn: ConnId) -> io::Result<()> {
        let claim = Claim::of(&self.config).make(self.me);
        let claim = claim.map_err(io::Error::other)?;
        match inner.send(conn, &claim)? {
            count if count == claim.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Reads from the waiting connection. Once the listener takes the connection, it counts as accepted, and the next
    /// one is made.
    fn read(&mut self, inner: &mut impl Transport, conn: ConnId, events: &mut Vec<TransportEvent>) {
        let mut buffer = [0; EARLY_BYTES];
        match inner.recv(conn, &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(count) if count > 0 && buffer[0] == TAKEN => {
                let peer = self.places[self.place].to_string();
                events.push(TransportEvent::Accepted { conn, peer });
                if count > 1 {
                    self.early.push((conn, buffer[1..count].to_vec()));
                    events.push(TransportEvent::Readable(conn));
                }
                self.pause = PAUSE_MIN;
                self.state = CallState::Pause(Instant::now());
            }
            _ => {
                inner.close(conn);
                self.failed(Instant::now());
            }
        }
    }

    /// Reads from the bytes of a connection that followed directly on [`TAKEN`]; `None` if the connection has none.
    pub(super) fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> Option<usize> {
        let at = self.early.iter().position(|(early, _)| *early == conn)?;
        let bytes = &mut self.early[at].1;
        let count = bytes.len().min(buf.len());
        buf[..count].copy_from_slice(&bytes[..count]);
        bytes.drain(..count);
        if bytes.is_empty() {
            self.early.swap_remove(at);
        }
        Some(count)
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        self.early.retain(|(early, _)| *early != conn);
    }
}
