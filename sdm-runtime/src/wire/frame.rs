//! Encoding and decoding of messages as bytes ("Message Format", "String Format", "Commands").

/// Maximum length of a message, in bytes, its length field excluded.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
const HEADER: usize = 23;
const STRING_MIN: usize = 10;

/// A command or an event as transmitted and not yet interpreted: a header and strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the command or event.
    pub id: u16,
    /// The transaction.
    pub tid: u32,
    /// The arguments of the command or event.
    pub args: Vec<String>,
}

/// Fault of a byte stream; nothing after it can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("received an invalid message at byte {at}: {fault}")]
pub struct FrameError {
    /// Offset in the stream, in bytes from 0.
    pub at: u64,
    /// The fault of the stream.
    pub fault: FrameFault,
}

/// The kinds of [`FrameError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// A hexadecimal number was expected.
    #[error("expected a hexadecimal number")]
    NoHex,
    /// The stream begins as PTP's clients after September 2010 begin it.
    #[error("the client speaks PTP's later binary protocol: this program speaks its text protocol")]
    Binary,
    /// A space or colon was expected.
    #[error("expected a space or a colon")]
    NoSeparator,
    /// The message is longer than [`MESSAGE_BYTES_MAX`] or shorter than a header.
    #[error("the message has {0} bytes: expected {HEADER} to {MESSAGE_BYTES_MAX}")]
    Length(usize),
    /// The strings do not fill the message, or need more than it has.
    #[error("the strings of the message do not add up to its length")]
    Strings,
}

/// Reads messages from pieces of a stream.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    taken: u64,
    broken: Option<FrameError>,
}

impl Decoder {
    /// Appends bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Number of bytes that wait for [`poll`](Self::poll).
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The next message; `None` until one is whole.
    ///
    /// # Errors
    /// The bytes do not form a message; every later call returns the same error.
    pub fn poll(&mut self) -> Result<Option<Message>, FrameError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let bytes = &self.buffer[self.start..];
        match read(bytes) {
            Ok(Some((message, used))) => {
                self.start += used;
                self.taken += used as u64;
                Ok(Some(message))
            }
            Ok(None) => Ok(None),
            Err((at, fault)) => {
                let is_first = self.taken == 0 && at == 0;
                let fault = match bytes.first() {
                    Some(0) if is_first => FrameFault::Binary,
                    _ => fault,
                };
                let at = self.taken + at as u64;
                let error = FrameError { at, fault };
                self.broken = Some(error.clone());
                self.buffer = Vec::new();
                self.start = 0;
                Err(error)
            }
        }
    }
}

type Fault = (usize, FrameFault);

fn read(bytes: &[u8]) -> Result<Option<(Message, usize)>, Fault> {
    let known = bytes.len().min(8);
    if let Some(at) = bytes[..known].iter().position(|b| !b.is_ascii_hexdigit()) {
        return Err((at, FrameFault::NoHex));
    }
    if known < 8 {
        return Ok(None);
    }
    let length = hex(bytes, 0, 8)? as usize;
    if !(HEADER..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err((0, FrameFault::Length(length)));
    }
    let end = 8 + length;
    let Some(bytes) = bytes.get(..end) else {
        return Ok(None);
    };
    separator(bytes, 8, b' ')?;
    let id = u16::try_from(hex(bytes, 9, 4)?).map_err(|_| (9, FrameFault::NoHex))?;
    separator(bytes, 13, b':')?;
    let tid = hex(bytes, 14, 8)?;
    separator(bytes, 22, b':')?;
    let count = hex(bytes, 23, 8)? as usize;
    // Every string takes at least ten bytes, which limits the count by the length of the message.
    if count > (end - 31) / STRING_MIN {
        return Err((23, FrameFault::Strings));
    }
    let mut args = Vec::with_capacity(count);
    let mut at = 31;
    for _ in 0..count {
        separator(bytes, at, b' ')?;
        let length = hex(bytes, at + 1, 8)? as usize;
        separator(bytes, at + 9, b':')?;
        let from = at + STRING_MIN;
        let string = from.checked_add(length).and_then(|to| bytes.get(from..to));
        let string = string.ok_or((at + 1, FrameFault::Strings))?;
        args.push(String::from_utf8_lossy(string).into_owned());
        at = from + length;
    }
    match at == end {
        true => Ok(Some((Message { id, tid, args }, end))),
        false => Err((at, FrameFault::Strings)),
    }
}

fn separator(bytes: &[u8], at: usize, wanted: u8) -> Result<(), Fault> {
    match bytes.get(at) == Some(&wanted) {
        true => Ok(()),
        false => Err((at, FrameFault::NoSeparator)),
    }
}

fn hex(bytes: &[u8], at: usize, digits: usize) -> Result<u32, Fault> {
    let wrong = (at, FrameFault::NoHex);
    let digits = bytes.get(at..at + digits).ok_or(wrong)?;
    digits.iter().try_fold(0, |sum: u32, byte| {
        let digit = char::from(*byte).to_digit(16).ok_or(wrong)?;
        Ok(sum << 4 | digit)
    })
}

impl Message {
    /// Size of the message on the wire, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        let strings = self.args.iter().map(|arg| STRING_MIN + arg.len());
        8 + HEADER + strings.sum::<usize>()
    }

    /// Appends the message; numbers are in lower case.
    ///
    /// # Errors
    /// The message is longer than a decoder accepts; nothing is appended.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameFault> {
        use std::io::Write as _;
        let length = self.wire_len() - 8;
        if length > MESSAGE_BYTES_MAX {
            return Err(FrameFault::Length(length));
        }
        out.reserve(length + 8);
        let (id, tid, count) = (self.id, self.tid, self.args.len());
        // Writing to a vector does not fail.
        let _ = write!(out, "{length:08x} {id:04x}:{tid:08x}:{count:08x}");
        for arg in &self.args {
            let _ = write!(out, " {:08x}:", arg.len());
            out.extend_from_slice(arg.as_bytes());
        }
        Ok(())
    }
}
