//! One link between two members: it translates between the bytes of a connection and messages, without I/O.
//!
//! [`Link`] does no I/O and has no clock. Give it an input (`handle_bytes`, `handle_timeout`,
//! `send`, `release`), then drain its outputs: [`Link::poll_event`] until `None`,
//! [`Link::poll_transmit`] into the socket, and [`Link::poll_timeout`] for the time of the next call. `now`
//! never goes backward. After an error drain `poll_transmit` once more, as it may hold the reason for
//! the other end; then close.
//!
//! Two lanes share a link. Control frames are sent at once. Bulk frames follow them, and need
//! credit, which the receiver grants as its owner calls `release`. Neither end ever stops reading.

mod config;
mod credit;
mod error;
mod fuzz;
mod heartbeat;
mod records;
mod single_message;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::frame::{self, Deframer, Frame};
use crate::limits::{
    BULK_CHUNK_BYTES_MAX, BULK_FRAME_BYTES_MAX, LINK_BULK_BYTES_MAX, LINK_CONTROL_BYTES_MAX,
};
use crate::message::{Lane, Message};
use crate::secure::{Handshake, Hello, OpenChannel};
use credit::Credit;
use heartbeat::{Heartbeat, Pulse};
use records::{IDLE_BYTES_MAX, LENGTH_BYTES, Records};

pub use config::LinkConfig;
pub use error::LinkError;
pub use fuzz::fuzz_handshake;

/// An event of a link for its owner.
#[derive(Clone, PartialEq, Debug)]
pub enum LinkEvent {
    /// The other end is authenticated; only now may this link replace another.
    Up(Hello),
    /// A complete message has arrived.
    Message {
        /// The message, decoded.
        message: Message,
        /// Number of bytes for [`Link::release`] once the message is passed on; 0 in the control lane.
        bulk_bytes: u32,
    },
    /// No record has come from the other end for a while. The link is not closed.
    Silent,
    /// A record has come from the silent other end.
    Alive,
}

enum Stage {
    Handshake(Box<Handshake>),
    /// At the responder: the handshake is complete, but its first message may be a replayed one. Once a record can be
    /// decrypted, it was not replayed.
    Unconfirmed(Box<Hello>),
    Up(Box<Hello>),
    Failed(LinkError),
}

/// One end of a link.
///
/// Memory: the queues (bounded by [`LINK_CONTROL_BYTES_MAX`] and [`LINK_BULK_BYTES_MAX`]), one
/// incomplete record and one incomplete frame; an idle link holds no buffer larger than 4 KiB. The
/// control lane needs no credit because the commands open at once bound it; the hard bound only
/// stops a peer that does not read.
pub struct Link {
    stage: Stage,
    records: Option<Records>,
    deframer: Deframer,
    events: VecDeque<LinkEvent>,
    /// Unencrypted bytes of the handshake that are to be sent.
    plain_out: Vec<u8>,
    /// Control frames to send, concatenated, after room for the length of the record that they become; otherwise empty.
    control: Vec<u8>,
    /// Bulk frames to send.
    bulk: VecDeque<Vec<u8>>,
    /// The sum of the lengths in `bulk`, <= `LINK_BULK_BYTES_MAX`.
    bulk_bytes: usize,
    credit: Credit,
    heartbeat: Heartbeat,
    handshake_wait: Duration,
    handshake_until: Instant,
    /// Nonce of the last ping that is still to be answered; `None` if there is none. Of several pings only the last
    /// needs a pong, so that pongs cannot pile up.
    pong_due: Option<u64>,
}

impl Link {
    /// A link at the end that connected; that end begins the handshake.
    #[must_use]
    pub fn initiate(now: Instant, config: &LinkConfig, own: Hello) -> Self {
        let mut out = Vec::new();
        let handshake = Handshake::initiate(config, own, &mut out);
        Self::new(now, config, handshake, out)
    }

    /// A link at the end that accepted the connection. `own.expect` may be `None`: any holder of the key is then
    /// accepted.
    #[must_use]
    pub fn respond(now: Instant, config: &LinkConfig, own: Hello) -> Self {
        Self::new(now, config, Handshake::respond(config, own), Vec::new())
    }

    fn new(now: Instant, config: &LinkConfig, handshake: Handshake, plain_out: Vec<u8>) -> Self {
        Self {
            stage: Stage::Handshake(Box::new(handshake)),
            records: None,
            deframer: Deframer::default(),
            events: VecDeque::new(),
            plain_out,
            control: Vec::new(),
            bulk: VecDeque::new(),
            bulk_bytes: 0,
            credit: Credit::new(config.bulk_window_bytes),
            heartbeat: Heartbeat::new(now, config.ping_after, config.pings_unanswered_max),
            handshake_wait: config.handshake_wait,
            handshake_until: now + config.handshake_wait,
            pong_due: None,
        }
    }

    /// True from [`LinkEvent::Up`] on, until an error.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Up(_))
    }

    /// True if the peer has sent a handshake that only a holder of the key can make,
    /// possibly a replayed one.
    #[must_use]
    pub fn has_shown_key(&self) -> bool {
        matches!(self.stage, Stage::Unconfirmed(_) | Stage::Up(_))
    }

    /// The authenticated peer; `None` before the handshake is over, and after an error.
    #[must_use]
    pub fn peer(&self) -> Option<&Hello> {
        match &self.stage {
            Stage::Up(peer) => Some(peer),
            _ => None,
        }
    }

    /// Bytes of the bulk lane that wait for credit or for the next flush: above a window's worth
    /// the owner should stop producing more.
    #[must_use]
    pub fn bulk_backlog(&self) -> usize {
        self.bulk_bytes
    }

    /// Bytes of the control lane that wait for the next flush.
    #[must_use]
    pub(crate) fn control_backlog(&self) -> usize {
        self.control.len()
    }

    /// True if messages of this lane wait for the next flush.
    #[must_use]
    pub(crate) fn has_queued(&self, lane: Lane) -> bool {
        match lane {
            Lane::Control => self.control.len() > LENGTH_BYTES,
            Lane::Bulk => !self.bulk.is_empty(),
        }
    }

    /// Sets the limits of links from the session's configuration, except for the window. The owner sets the
    /// window, as it depends on the number of links.
    pub fn apply(&mut self, config: &Config) {
        self.heartbeat
            .set_limits(config.ping_after, config.pings_unanswered_max);
    }

    /// Sets the maximum number of unreleased bytes of bulk data at this end. A smaller window does not revoke
    /// granted credit. A member with many links gives each a small window.
    pub fn set_bulk_window(&mut self, bytes: u32) {
        self.credit.set_window(bytes);
    }

    /// Informs the link that the owner has passed on this number of bytes of the link's bulk data.
    pub fn release(&mut self, bytes: u32) {
        self.credit.release(bytes);
    }

    /// Queues a message in its lane; it may be called before the link is up.
    ///
    /// # Errors
    /// [`LinkError::Encode`] if the message exceeds a bound; the link stays as it was. Any other error ends the link:
    /// its queue exceeds a bound, or the link had ended before.
    pub fn send(&mut self, message: &Message) -> Result<(), LinkError> {
        if let Stage::Failed(error) = &self.stage {
            return Err(error.clone());
        }
        match message.lane() {
            Lane::Control => self.send_control(message),
            Lane::Bulk => self.send_bulk(message),
        }
    }

    fn send_control(&mut self, message: &Message) -> Result<(), LinkError> {
        begin_record(&mut self.control);
        frame::encode_message(message, &mut self.control)?;
        self.check_control()
    }

    fn check_control(&mut self) -> Result<(), LinkError> {
        if self.control.len() > LINK_CONTROL_BYTES_MAX {
            return Err(self.limit("control lane", LINK_CONTROL_BYTES_MAX));
        }
        Ok(())
    }

    fn send_bulk(&mut self, message: &Message) -> Result<(), LinkError> {
        let mut frame = Vec::new();
        frame::encode_message(message, &mut frame)?;
        if frame.len() > BULK_FRAME_BYTES_MAX {
            let (what, max) = ("bulk frame", BULK_FRAME_BYTES_MAX as u64);
            return Err(crate::codec::EncodeError { what, max }.into());
        }
        if self.bulk_bytes + frame.len() > LINK_BULK_BYTES_MAX {
            return Err(self.limit("bulk lane", LINK_BULK_BYTES_MAX));
        }
        self.bulk_bytes += frame.len();
        self.bulk.push_back(frame);
        Ok(())
    }

    /// Handles received bytes, split anywhere. Records are opened in place, so that `input` is useless
    /// afterwards.
    ///
    /// # Errors
    /// The error that ended the link. Events from before are still available.
    pub fn handle_bytes(&mut self, now: Instant, input: &mut [u8]) -> Result<(), LinkError> {
        if let Stage::Failed(error) = &self.stage {
            return Err(error.clone());
        }
        if input.is_empty() {
            return Ok(());
        }
        self.heartbeat.fed();
        let result = self.take_bytes(now, input);
        result.map_err(|error| self.fail(error))
    }

    fn take_bytes(&mut self, now: Instant, mut input: &mut [u8]) -> Result<(), LinkError> {
        if let Stage::Handshake(handshake) = &mut self.stage {
            let initiator = handshake.is_initiator();
            let mut rest = &*input;
            let Some(opened) = handshake.handle_bytes(&mut rest, &mut self.plain_out)? else {
                return Ok(());
            };
            let taken = input.len() - rest.len();
            input = &mut input[taken..];
            self.open(now, initiator, opened);
        }
        let mut records = self.records.take().expect("made when the handshake ended");
        let mut result = Ok(());
        while result.is_ok() {
            result = match records.open(&mut input) {
                Ok(Some(contents)) => {
                    if self.heartbeat.heard(now) {
                        self.events.push_back(LinkEvent::Alive);
                    }
                    self.take_contents(contents)
                }
                Ok(None) => break,
                Err(error) => Err(error),
            };
            records.rest();
        }
        self.records = Some(records);
        result
    }

    fn open(&mut self, now: Instant, initiator: bool, opened: OpenChannel) {
        self.records = Some(Records::new(opened.ciphers));
        self.heartbeat.heard(now);
        if initiator {
            // The first record proves to the responder that this was no replayed handshake.
            self.heartbeat.ping_now(now);
            self.go_up(opened.peer);
        } else {
            self.stage = Stage::Unconfirmed(opened.peer);
        }
    }

    fn go_up(&mut self, peer: Box<Hello>) {
        self.events.push_back(LinkEvent::Up((*peer).clone()));
        self.stage = Stage::Up(peer);
    }

    fn take_contents(&mut self, mut contents: &[u8]) -> Result<(), LinkError> {
        if let Stage::Unconfirmed(peer) = &self.stage {
            let peer = peer.clone();
            self.go_up(peer);
        }
        while let Some(bytes) = self.deframer.poll_frame(&mut contents)? {
            let frame_bytes = bytes.len() + frame::HEADER_BYTES;
            match frame::decode(&bytes)? {
                Frame::Message(message) => self.take_message(message, frame_bytes)?,
                Frame::Ping { nonce } => self.pong_due = Some(nonce),
                Frame::Pong { .. } => {}
                Frame::Credit { bytes } => self.credit.granted(bytes),
            }
        }
        Ok(())
    }

    fn take_message(&mut self, message: Message, frame_bytes: usize) -> Result<(), LinkError> {
        let mut bulk_bytes = 0;
        if message.lane() == Lane::Bulk {
            if frame_bytes > BULK_FRAME_BYTES_MAX {
                return Err(LinkError::Limit {
                    name: "bulk frame",
                    max: BULK_FRAME_BYTES_MAX as u64,
                });
            }
            bulk_bytes = u32::try_from(frame_bytes).expect("at most BULK_FRAME_BYTES_MAX");
            if !self.credit.received(bulk_bytes) {
                return Err(LinkError::CreditExceeded);
            }
        }
        self.events.push_back(LinkEvent::Message {
            message,
            bulk_bytes,
        });
        Ok(())
    }

    /// Returns the next event for the owner; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        let event = self.events.pop_front();
        if event.is_none() && self.events.capacity() > 16 {
            self.events = VecDeque::new();
        }
        event
    }

    /// Appends to `out` the bytes that may be sent now; true if there were some.
    ///
    /// One call is one flush: all of the control lane, then about one chunk of bulk. The owner writes it
    /// before the next call, and calls only while the socket has room: then a control message
    /// waits behind one flush at most, however much bulk is queued. To be called until false.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        if !self.plain_out.is_empty() {
            out.extend_from_slice(&std::mem::take(&mut self.plain_out));
        }
        if self.is_up() {
            self.flush(out);
        }
        out.len() > before
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let mut plain = std::mem::take(&mut self.control);
        let due = [
            self.pong_due.take().map(|nonce| Frame::Pong { nonce }),
            self.heartbeat
                .take_ping()
                .map(|nonce| Frame::Ping { nonce }),
            self.credit.take_due().map(|bytes| Frame::Credit { bytes }),
        ];
        for frame in due.iter().flatten() {
            begin_record(&mut plain);
            frame::encode(frame, &mut plain).expect("frames of a link are small");
        }
        let mut bulk_bytes = 0;
        while bulk_bytes < BULK_CHUNK_BYTES_MAX
            && self.credit.may_send()
            && let Some(frame) = self.bulk.pop_front()
        {
            self.credit.sent(frame.len());
            self.bulk_bytes -= frame.len();
            bulk_bytes += frame.len();
            begin_record(&mut plain);
            plain.extend_from_slice(&frame);
        }
        if self.bulk.is_empty() && self.bulk.capacity() > 64 {
            self.bulk = VecDeque::new();
        }
        let records = self.records.as_mut().expect("a link that is up has them");
        records.seal(&mut plain, out);
        if plain.capacity() <= IDLE_BYTES_MAX {
            self.control = plain;
        }
    }

    /// Carries out what is due at `now`; an early call has no effect.
    ///
    /// # Errors
    /// The handshake was not finished in time, or a record does not end.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), LinkError> {
        match &self.stage {
            Stage::Failed(error) => return Err(error.clone()),
            Stage::Handshake(_) | Stage::Unconfirmed(_) => {
                if now >= self.handshake_until {
                    let error = LinkError::HandshakeTimeout(self.handshake_wait);
                    return Err(self.fail(error));
                }
            }
            Stage::Up(_) => match self.heartbeat.handle_timeout(now) {
                Pulse::Same => {}
                Pulse::Lost => self.events.push_back(LinkEvent::Silent),
                Pulse::Stuck => return Err(self.fail(LinkError::EndlessRecord)),
            },
        }
        Ok(())
    }

    /// Time of the next call of [`Link::handle_timeout`]; `None` if no call is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Failed(_) => None,
            Stage::Handshake(_) | Stage::Unconfirmed(_) => Some(self.handshake_until),
            Stage::Up(_) => Some(self.heartbeat.next()),
        }
    }

    /// True if no record has come from the other end for so long that it counts as silent.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.heartbeat.is_silent()
    }

    fn limit(&mut self, name: &'static str, max: usize) -> LinkError {
        let max = max as u64;
        self.fail(LinkError::Limit { name, max })
    }

    fn fail(&mut self, error: LinkError) -> LinkError {
        self.stage = Stage::Failed(error.clone());
        self.records = None;
        self.deframer = Deframer::default();
        self.control = Vec::new();
        self.bulk = VecDeque::new();
        self.bulk_bytes = 0;
        error
    }
}

/// Makes room in front of the first frame for the length of the record that the frames become.
fn begin_record(plain: &mut Vec<u8>) {
    if plain.is_empty() {
        plain.extend_from_slice(&[0; LENGTH_BYTES]);
    }
}

#[cfg(test)]
mod tests;
