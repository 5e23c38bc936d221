//! Connections to the session's servers on this node.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use sdm_foreign::wire::{Frames, frame};
use sdm_foreign::{FromHost, ToHost};
use sdm_idset::IdSet;

/// Maximum number of bytes queued for one server. The data of barriers is queued without this check.
const UNSENT_BYTES_MAX: usize = 16 << 20;
/// Buffer size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;

/// A server of the session.
pub(crate) struct Peer {
    /// Identifies the server; unique for the lifetime of this process.
    pub(crate) id: u64,
    stream: UnixStream,
    frames: Frames,
    unsent: Vec<u8>,
    /// Number of bytes of `unsent` that are sent.
    sent: usize,
    /// The server's ranks; `None` until its first message has been accepted.
    pub(crate) ranks: Option<IdSet>,
    /// Task numbers that are reserved for processes that the server starts later.
    pub(crate) spare: IdSet,
}

impl Peer {
    pub(crate) fn new(id: u64, stream: UnixStream) -> Self {
        Self {
            id,
            stream,
            frames: Frames::default(),
            unsent: Vec::new(),
            sent: 0,
            ranks: None,
            spare: IdSet::new(),
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// True if something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.unsent.len()
    }

    /// True if the server's first message has been answered and the server owns one of these ranks.
    pub(crate) fn has_any(&self, ranks: &IdSet) -> bool {
        let own = self.ranks.as_ref();
        own.is_some_and(|own| !own.is_disjoint(ranks))
    }

    /// Reads the server's messages; `None` if it has disconnected or violates the protocol.
    pub(crate) fn hear(&mut self) -> Option<Vec<ToHost>> {
        let mut is_there = self.flush();
        let mut bytes = vec![0; READ_BYTES];
        while is_there {
            match self.stream.read(&mut bytes) {
                Ok(0) => is_there = false,
                Ok(count) => self.frames.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => is_there = false,
            }
        }
        let mut heard = Vec::new();
        loop {
            match self.frames.take::<ToHost>() {
                Ok(None) => return is_there.then_some(heard),
                Ok(Some(message)) => heard.push(message),
                Err(error) => {
                    crate::messages::say(&format!(
                        "an sdm-server of the session sent an invalid message: {error}"
                    ));
                    return None;
                }
            }
        }
    }

    /// Sends a message. Returns false if the server has disconnected, or if more than [`UNSENT_BYTES_MAX`] bytes wait
    /// to be sent to it.
    pub(crate) fn send(&mut self, message: &FromHost) -> bool {
        self.send_all(std::slice::from_ref(message))
            && self.unsent.len() - self.sent <= UNSENT_BYTES_MAX
    }

    /// Queues messages without a limit on unsent bytes, and sends what fits. Omits a message that is too long. Returns
    /// false if the server has disconnected.
    pub(crate) fn send_all(&mut self, messages: &[FromHost]) -> bool {
        for message in messages {
            match frame(message) {
                Ok(bytes) => self.unsent.extend_from_slice(&bytes),
                Err(_) => crate::messages::say(
                    "a message to sdm-server was omitted because it was too long",
                ),
            }
        }
        self.flush()
    }

    /// Sends the waiting bytes as far as possible; false if the server has disconnected.
    fn flush(&mut self) -> bool {
        while self.has_unsent() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.unsent = Vec::new();
        self.sent = 0;
        true
    }
}
