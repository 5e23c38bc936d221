//! The handshake as a state machine: bytes in, split anywhere, bytes out, and at the end ciphers or an error.

use snow::HandshakeState;

use super::{Ciphers, Hello, NOISE};
use crate::frame::WIRE_VERSION;
use crate::ids::SessionId;
use crate::link::{LinkConfig, LinkError};

const MAGIC: [u8; 4] = *b"SDM\0";
const PREFACE_BYTES: usize = 8;
/// The longest Noise message of a handshake, in bytes. No more is stored for an unauthenticated peer.
const MESSAGE_BYTES_MAX: usize = 256;

/// Codes for the reason of a refusal. They are sent in one byte, unencrypted.
const REFUSED_KEY: u8 = 1;
const REFUSED_IDENTITY: u8 = 2;
const REFUSED_ROLE: u8 = 3;
const REFUSED_HELLO: u8 = 4;

/// Result of a completed handshake.
pub(crate) struct OpenChannel {
    pub(crate) ciphers: Box<Ciphers>,
    pub(crate) peer: Box<Hello>,
}

/// One end of a handshake.
pub(crate) struct Handshake {
    noise: Option<Box<HandshakeState>>,
    initiator: bool,
    own: Hello,
    session: SessionId,
    /// True once the peer's preface has been read and checked.
    greeted: bool,
    /// Bytes received of the present preface or message.
    received: Vec<u8>,
}

impl Handshake {
    /// Begins as the connecting end; bytes to send are appended to `out`.
    pub(crate) fn initiate(config: &LinkConfig, own: Hello, out: &mut Vec<u8>) -> Self {
        let mut handshake = Self::new(config, own, true);
        out.extend_from_slice(&preface(config.session));
        handshake.write_message(out);
        handshake
    }

    /// Begins as the responder; nothing is sent before the caller's first message.
    pub(crate) fn respond(config: &LinkConfig, own: Hello) -> Self {
        Self::new(config, own, false)
    }

    fn new(config: &LinkConfig, own: Hello, initiator: bool) -> Self {
        let mut prologue = Vec::with_capacity(PREFACE_BYTES + 8);
        prologue.extend_from_slice(&preface(config.session));
        prologue.extend_from_slice(&config.session.0);
        let builder = snow::Builder::new(NOISE.parse().expect("a name that snow knows"))
            .psk(0, config.key.bytes())
            .and_then(|builder| builder.prologue(&prologue))
            .expect("each is given once");
        let noise = if initiator {
            builder.build_initiator()
        } else {
            builder.build_responder()
        };
        Self {
            noise: Some(Box::new(noise.expect("NNpsk0 needs no other key"))),
            initiator,
            own,
            session: config.session,
            greeted: false,
            received: Vec::new(),
        }
    }

    pub(crate) fn is_initiator(&self) -> bool {
        self.initiator
    }

    /// Consumes bytes from the front of `input`, as many as the handshake needs. Appends bytes to send to `out`, also
    /// in the case of an error. Returns the channel when the handshake is complete, `None` before.
    pub(crate) fn handle_bytes(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<OpenChannel>, LinkError> {
        if !self.greeted {
            let complete = self.gather(input, PREFACE_BYTES);
            if let Err(error) = self.check_preface() {
                if !self.initiator && error != LinkError::NotSdm {
                    out.extend_from_slice(&preface(self.session));
                }
                return Err(error);
            }
            if !complete {
                return Ok(None);
            }
            self.greeted = true;
            self.received.clear();
        }
        if !self.gather(input, 2) {
            return Ok(None);
        }
        let len = usize::from(u16::from_le_bytes([self.received[0], self.received[1]]));
        if len == 0 && self.initiator {
            return if self.gather(input, 3) {
                Err(refusal(self.received[2]))
            } else {
                Ok(None)
            };
        }
        if len == 0 || len > MESSAGE_BYTES_MAX {
            return Err(LinkError::BadHandshake);
        }
        if !self.gather(input, 2 + len) {
            return Ok(None);
        }
        self.finish(out).map(Some)
    }

    /// Fills `received` up to `len` bytes; true once it has them.
    fn gather(&mut self, input: &mut &[u8], len: usize) -> bool {
        let wanted = len.saturating_sub(self.received.len());
        let (front, rest) = input.split_at(wanted.min(input.len()));
        self.received.extend_from_slice(front);
        *input = rest;
        self.received.len() >= len
    }

    /// Checks the received part of the preface, so that a peer with another protocol is recognised by its first byte.
    fn check_preface(&self) -> Result<(), LinkError> {
        let got = &self.received;
        let magic = got.len().min(MAGIC.len());
        if got[..magic] != MAGIC[..magic] {
            return Err(LinkError::NotSdm);
        }
        if let Some(&theirs) = got.get(4).filter(|&&version| version != WIRE_VERSION) {
            let ours = WIRE_VERSION;
            return Err(LinkError::WireVersion { ours, theirs });
        }
        if let Some(&flags) = got.get(5).filter(|&&flags| flags != 0) {
            return Err(LinkError::UnknownFlags { flags });
        }
        if got.len() == PREFACE_BYTES && got[..] != preface(self.session) {
            return Err(LinkError::WrongSession);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<OpenChannel, LinkError> {
        let mut plain = [0; MESSAGE_BYTES_MAX];
        let noise = self.noise.as_mut().expect("a handshake finishes once");
        let Ok(len) = noise.read_message(&self.received[2..], &mut plain) else {
            self.refuse(REFUSED_KEY, out);
            return Err(LinkError::WrongKey);
        };
        let peer = match Hello::decode(&plain[..len]) {
            Ok(peer) => Box::new(peer),
            Err(error) => {
                self.refuse(REFUSED_HELLO, out);
                return Err(LinkError::Decode(error));
            }
        };
        if peer.role == self.own.role {
            self.refuse(REFUSED_ROLE, out);
            return Err(LinkError::RoleClash { role: peer.role });
        }
        if let Some(expected) = self.own.expect.filter(|&expected| expected != peer.id) {
            self.refuse(REFUSED_IDENTITY, out);
            let reached = peer.id;
            return Err(LinkError::WrongPeer { expected, reached });
        }
        if !self.initiator {
            out.extend_from_slice(&preface(self.session));
            self.write_message(out);
            // The caller notices by itself, for it was told the id of this member.
            if let Some(wanted) = peer.expect.filter(|&wanted| wanted != self.own.id) {
                let (caller, own) = (peer.id, self.own.id);
                return Err(LinkError::Misdirected {
                    caller,
                    wanted,
                    own,
                });
            }
        }
        let noise = self.noise.take().expect("a handshake finishes once");
        Ok(OpenChannel {
            ciphers: Box::new(Ciphers::of(*noise)),
            peer,
        })
    }

    fn refuse(&self, reason: u8, out: &mut Vec<u8>) {
        if !self.initiator {
            out.extend_from_slice(&preface(self.session));
            out.extend_from_slice(&[0, 0, reason]);
        }
    }

    fn write_message(&mut self, out: &mut Vec<u8>) {
        let mut hello = Vec::new();
        self.own.encode(&mut hello);
        let mut message = [0; MESSAGE_BYTES_MAX];
        let noise = self.noise.as_mut().expect("a handshake finishes once");
        let len = noise
            .write_message(&hello, &mut message)
            .expect("a hello and its key fit, and it is our turn");
        let prefix = u16::try_from(len).expect("at most MESSAGE_BYTES_MAX");
        out.extend_from_slice(&prefix.to_le_bytes());
        out.extend_from_slice(&message[..len]);
    }
}

fn preface(session: SessionId) -> [u8; PREFACE_BYTES] {
    let [a, b, c, d, e, f, g, h] = session.0;
    let tag = [a ^ c ^ e ^ g, b ^ d ^ f ^ h];
    let [m0, m1, m2, m3] = MAGIC;
    [m0, m1, m2, m3, WIRE_VERSION, 0, tag[0], tag[1]]
}

fn refusal(reason: u8) -> LinkError {
    LinkError::Refused(match reason {
        REFUSED_KEY => return LinkError::WrongKey,
        REFUSED_IDENTITY => "the peer expected another member",
        REFUSED_ROLE => "both peers claim the same role",
        REFUSED_HELLO => "the peer could not read the first message",
        _ => "the peer gave no reason",
    })
}
