//! Frames: the units of the byte stream of an open link.
//!
//! ```text
//!   0      4     5
//!   +------+-----+------------------+
//!   | len  | kind| body             |     len: u32 little endian, kind and body together,
//!   +------+-----+------------------+          1 <= len <= FRAME_BYTES_MAX
//!   kind 1..=11  a message, as in `codec`
//!   kind 128     ping    nonce (varint)
//!   kind 129     pong    nonce of the ping (varint)
//!   kind 130     credit  bytes of bulk frames that may be sent in addition (varint)
//! ```

use bytes::Bytes;

use crate::codec::{self, DecodeError, EncodeError, Reader, Writer};
use crate::ids::{Attempt, CommandId};
use crate::limits::FRAME_BYTES_MAX;
use crate::message::{Block, Message};

/// The version of everything on the wire; two versions do not talk to each other.
pub const WIRE_VERSION: u8 = 21;
/// The length field in front of a frame, in bytes.
pub const HEADER_BYTES: usize = 4;
/// Maximum number of bytes allocated for a frame before its bytes have arrived.
const AHEAD_BYTES_MAX: usize = 16 << 10;

const PING: u8 = 128;
const PONG: u8 = 129;
const CREDIT: u8 = 130;

/// Contents of one frame.
#[derive(Clone, PartialEq, Debug)]
pub enum Frame {
    /// A message between nodes.
    Message(Message),
    /// Request for a [`Frame::Pong`].
    Ping {
        /// Number that the pong repeats.
        nonce: u64,
    },
    /// The answer to a [`Frame::Ping`].
    Pong {
        /// The nonce of the ping that is answered.
        nonce: u64,
    },
    /// Permission to send more bulk frames.
    Credit {
        /// Number of bulk bytes granted in addition, headers included.
        bytes: u32,
    },
}

/// Appends a frame that carries a message.
///
/// # Errors
/// A message that is above a bound; `out` is unchanged then.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    frame(out, |out| codec::encode_message(message, out))
}

/// Appends a frame.
///
/// # Errors
/// A message that is above a bound; `out` is unchanged then.
pub fn encode(what: &Frame, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (kind, value) = match what {
        Frame::Message(message) => return encode_message(message, out),
        Frame::Ping { nonce } => (PING, *nonce),
        Frame::Pong { nonce } => (PONG, *nonce),
        Frame::Credit { bytes } => (CREDIT, u64::from(*bytes)),
    };
    frame(out, |out| {
        let mut w = Writer::new(out);
        w.u8(kind);
        w.u64(value);
        w.finish()
    })
}

/// Appends a frame that carries an answer of one block, without an age and without missing tasks.
pub(crate) fn encode_answer(
    id: CommandId,
    attempt: Attempt,
    block: &Block,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    frame(out, |out| codec::encode_answer(id, attempt, block, out))
}

/// The body after the length field, if `bytes` is exactly one frame that carries a message; otherwise `None`.
pub(crate) fn lone_message(bytes: &[u8]) -> Option<&[u8]> {
    let (len, body) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let is_whole = u32::from_le_bytes(*len) as usize == body.len() && body.len() <= FRAME_BYTES_MAX;
    let carries_message = body.first().is_some_and(|kind| *kind < PING);
    (is_whole && carries_message).then_some(body)
}

fn frame(
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let written = body(out).and_then(|()| {
        let len = out.len() - start - HEADER_BYTES;
        u32::try_from(len)
            .ok()
            .filter(|_| len <= FRAME_BYTES_MAX)
            .ok_or(EncodeError {
                what: "frame",
                max: FRAME_BYTES_MAX as u64,
            })
    });
    match written {
        Ok(len) => out[start..start + HEADER_BYTES].copy_from_slice(&len.to_le_bytes()),
        Err(_) => out.truncate(start),
    }
    written.map(|_| ())
}

/// Decodes the body after a frame's length; payloads share `bytes`.
///
/// # Errors
/// Bytes that are not a frame.
pub fn decode(bytes: &Bytes) -> Result<Frame, DecodeError> {
    let mut r = Reader::new(bytes);
    let frame = match r.u8("frame kind")? {
        PING => Frame::Ping {
            nonce: r.u64("nonce")?,
        },
        PONG => Frame::Pong {
            nonce: r.u64("nonce")?,
        },
        CREDIT => Frame::Credit {
            bytes: r.u32("credit")?,
        },
        _ => return codec::decode_message(bytes).map(Frame::Message),
    };
    r.finish("frame")?;
    Ok(frame)
}

/// Cuts a stream of bytes into frames. Holds nothing between frames, and never much more memory
/// than it has received of the current one.
#[derive(Debug, Default)]
pub struct Deframer {
    header: [u8; HEADER_BYTES],
    /// 0 <= `header_len` <= 4; at 4 the frame's body is being gathered.
    header_len: usize,
    body: Vec<u8>,
}

impl Deframer {
    /// Consumes bytes from the front of `input` until a frame is complete. Returns the frame's body without the
    /// length. `None` means that the input is used up. Call it until then.
    ///
    /// # Errors
    /// An impossible length; the stream cannot be read further.
    pub fn poll_frame(&mut self, input: &mut &[u8]) -> Result<Option<Bytes>, DecodeError> {
        if self.header_len < HEADER_BYTES {
            let head = take(input, HEADER_BYTES - self.header_len);
            self.header[self.header_len..self.header_len + head.len()].copy_from_slice(head);
            self.header_len += head.len();
            if self.header_len < HEADER_BYTES {
                return Ok(None);
            }
        }
        let len = self.body_len()?;
        if self.body.capacity() == 0 {
            let ahead = input.len().max(AHEAD_BYTES_MAX);
            self.body.reserve_exact(len.min(ahead));
        }
        let part = take(input, len - self.body.len());
        self.body.extend_from_slice(part);
        if self.body.len() < len {
            return Ok(None);
        }
        self.header_len = 0;
        Ok(Some(std::mem::take(&mut self.body).into()))
    }

    /// True if the next byte begins a frame.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.header_len == 0
    }

    /// Number of bytes held for an incomplete frame.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    fn body_len(&self) -> Result<usize, DecodeError> {
        let len = u32::from_le_bytes(self.header) as usize;
        if len > FRAME_BYTES_MAX {
            return Err(DecodeError::TooLarge {
                what: "frame",
                offset: 0,
                max: FRAME_BYTES_MAX as u64,
            });
        }
        if len == 0 {
            return Err(DecodeError::Unexpected {
                what: "empty frame",
                offset: 0,
            });
        }
        Ok(len)
    }
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (front, rest) = input.split_at(len.min(input.len()));
    *input = rest;
    front
}

/// Fuzz entry: any stream of frames, cut anywhere, gives the same frames and the same error.
///
/// # Panics
/// If a law of the codec is broken.
pub fn fuzz_frame(bytes: &[u8]) {
    let run = |step: usize| {
        let mut deframer = Deframer::default();
        let mut frames = Vec::new();
        for mut part in bytes.chunks(step.max(1)) {
            loop {
                match deframer.poll_frame(&mut part) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
            assert!(part.is_empty(), "input is used up where no frame is whole");
        }
        assert!(
            deframer.held_bytes() <= 4 * bytes.len() + AHEAD_BYTES_MAX,
            "memory stays near what was received"
        );
        (frames, None)
    };
    let whole = run(bytes.len());
    for step in [1, 3, 7, 64] {
        assert_eq!(run(step), whole, "a cut changes nothing");
    }
    for frame in &whole.0 {
        fuzz_message(frame);
    }
}

/// Fuzz entry: a frame decoded from the bytes is the same after encoding and decoding again.
///
/// # Panics
/// If a property of the codec does not hold.
pub fn fuzz_message(bytes: &[u8]) {
    let Ok(frame) = decode(&Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let mut out = Vec::new();
    encode(&frame, &mut out).expect("what was read within the bounds can be written");
    let again = decode(&Bytes::from(out.split_off(HEADER_BYTES)));
    assert_eq!(again.as_ref(), Ok(&frame), "a frame survives");
}
