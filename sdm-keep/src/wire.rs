//! The frames that a terminal and a keeper send each other over a socket in the file system.
//!
//! ```text
//!   0      1         5
//!   +------+---------+------+
//!   | kind | len u32 | body |     little endian; len counts the body, at most BODY_BYTES_MAX
//!   +------+---------+------+
//! ```

use std::io::{self, Read, Write};

/// Maximum size of a frame's body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
const HEADER_BYTES: usize = 5;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// To the keeper: a terminal of this size.
    Open(Size),
    /// To the keeper: keyboard input.
    Input(Vec<u8>),
    /// To the keeper: the terminal has a new size.
    Resized(Size),
    /// To the keeper: the position up to which the program's output was shown.
    Shown(u64),
    /// To the keeper: release the current terminal.
    Detach,
    /// To the keeper: describe yourself.
    Ask,
    /// To the terminal: the number of dropped bytes, and the position of the next byte of the output.
    Begin {
        /// Number of bytes that are lost.
        dropped: u64,
        /// Position counted from the program's first byte.
        at: u64,
    },
    /// To the terminal: output.
    Output(Vec<u8>),
    /// To the terminal: it is released; true if another one has taken its place. Also the answer to `Detach` of a
    /// client without a terminal.
    LetGo(bool),
    /// To the terminal: the program has ended with this exit code.
    Exited(i32),
    /// The answer to `Ask`: a description of the session.
    About {
        /// Seconds since the start.
        age_s: u64,
        /// True if a terminal is connected to the program.
        attached: bool,
        /// The command line of the kept program.
        command: String,
    },
}

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of lines.
    pub rows: u16,
    /// Number of characters per line.
    pub columns: u16,
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Open(_) => 1,
            Self::Input(_) => 2,
            Self::Resized(_) => 3,
            Self::Shown(_) => 4,
            Self::Detach => 5,
            Self::Ask => 6,
            Self::Begin { .. } => 7,
            Self::Output(_) => 8,
            Self::LetGo(_) => 9,
            Self::Exited(_) => 10,
            Self::About { .. } => 11,
        }
    }

    fn body(&self) -> Vec<u8> {
        match self {
            Self::Open(size) | Self::Resized(size) => {
                [size.rows.to_le_bytes(), size.columns.to_le_bytes()].concat()
            }
            Self::Input(bytes) | Self::Output(bytes) => bytes.clone(),
            Self::Shown(at) => at.to_le_bytes().to_vec(),
            Self::Detach | Self::Ask => Vec::new(),
            Self::Begin { dropped, at } => [dropped.to_le_bytes(), at.to_le_bytes()].concat(),
            Self::LetGo(taken) => vec![u8::from(*taken)],
            Self::Exited(code) => code.to_le_bytes().to_vec(),
            Self::About {
                age_s,
                attached,
                command,
            } => {
                let mut body = age_s.to_le_bytes().to_vec();
                body.push(u8::from(*attached));
                body.extend_from_slice(command.as_bytes());
                body
            }
        }
    }

    fn read(kind: u8, body: Vec<u8>) -> Option<Self> {
        Some(match kind {
            1 => Self::Open(size(&body)?),
            2 => Self::Input(body),
            3 => Self::Resized(size(&body)?),
            4 => Self::Shown(number(&body)?),
            5 if body.is_empty() => Self::Detach,
            6 if body.is_empty() => Self::Ask,
            7 => Self::Begin {
                dropped: number(body.get(..8)?)?,
                at: number(body.get(8..)?)?,
            },
            8 => Self::Output(body),
            9 => Self::LetGo(flag(&body)?),
            10 => Self::Exited(i32::from_le_bytes(body.try_into().ok()?)),
            11 => Self::About {
                age_s: number(body.get(..8)?)?,
                attached: flag(body.get(8..9)?)?,
                command: String::from_utf8_lossy(&body[9..]).into_owned(),
            },
            _ => return None,
        })
    }
}

fn number(body: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(body.try_into().ok()?))
}

fn flag(body: &[u8]) -> Option<bool> {
    match body {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

fn size(body: &[u8]) -> Option<Size> {
    let [a, b, c, d] = body.try_into().ok()?;
    Some(Size {
        rows: u16::from_le_bytes([a, b]),
        columns: u16::from_le_bytes([c, d]),
    })
}

/// Sends one frame. The caller must keep its body within 64 KiB.
///
/// # Errors
/// The bytes cannot be written.
pub fn send(mut to: impl Write, frame: &Frame) -> io::Result<()> {
    let body = frame.body();
    debug_assert!(body.len() <= BODY_BYTES_MAX, "callers cut what they send");
    let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut bytes = vec![frame.kind()];
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&body);
    to.write_all(&bytes)
}

/// Receives one frame; `None` at the end of the stream.
pub(crate) fn receive(mut from: impl Read) -> io::Result<Option<Frame>> {
    let mut header = [0; HEADER_BYTES];
    if from.read(&mut header[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut header[1..])?;
    let [kind, length @ ..] = header;
    let length = u32::from_le_bytes(length) as usize;
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if length > BODY_BYTES_MAX {
        return Err(wrong("a message exceeds its size limit"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let frame = Frame::read(kind, body);
    frame
        .ok_or_else(|| wrong("a message is not of the protocol of kept sessions"))
        .map(Some)
}

/// Reads arbitrary bytes as frames. Checks that nothing panics, and that each frame read survives encoding and
/// decoding.
#[doc(hidden)]
pub fn fuzz_frames(mut bytes: &[u8]) {
    while let Ok(Some(frame)) = receive(&mut bytes) {
        let mut written = Vec::new();
        send(&mut written, &frame).expect("memory takes it");
        let again = receive(written.as_slice()).expect("written by us");
        assert_eq!(again, Some(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_decode_unchanged() {
        let size = Size {
            rows: 40,
            columns: 200,
        };
        let frames = [
            Frame::Open(size),
            Frame::Input(b"bt\n".to_vec()),
            Frame::Resized(size),
            Frame::Shown(u64::MAX),
            Frame::Detach,
            Frame::Ask,
            Frame::Begin { dropped: 3, at: 9 },
            Frame::Output(vec![0; BODY_BYTES_MAX]),
            Frame::LetGo(true),
            Frame::Exited(-1),
            Frame::About {
                age_s: 7,
                attached: false,
                command: "sdm run -- ./a".to_owned(),
            },
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|f| send(&mut bytes, f).unwrap());
        let mut from = bytes.as_slice();
        for frame in frames {
            assert_eq!(receive(&mut from).unwrap(), Some(frame));
        }
        assert_eq!(receive(&mut from).unwrap(), None);
    }

    #[test]
    fn malformed_frame_is_refused() {
        let bad: [&[u8]; 6] = [
            &[1, 0],
            &[2, 255, 255, 255, 255],
            &[1, 1, 0, 0, 0, 7],
            &[99, 0, 0, 0, 0],
            &[9, 1, 0, 0, 0, 2],
            &[11, 3, 0, 0, 0, 1, 2, 3],
        ];
        for bytes in bad {
            assert!(receive(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn frame_decoder_never_panics() {
        // A small random number generator, which reaches every length and kind.
        let mut state = 1_u64;
        let mut byte = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56).to_le_bytes()[0]
        };
        for _ in 0..50_000 {
            let len = byte() % 24;
            let mut bytes: Vec<u8> = (0..len).map(|_| byte()).collect();
            if let Some(kind) = bytes.first_mut() {
                *kind %= 13;
            }
            bytes.iter_mut().skip(2).take(3).for_each(|b| *b = 0);
            fuzz_frames(&bytes);
        }
    }
}
