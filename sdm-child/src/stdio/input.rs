//! The program's standard input: a numbered stream, of which no byte enters the program twice.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::unistd::write;

/// Maximum number of bytes that are queued for the program.
pub const STDIN_BUFFER_BYTES_MAX: usize = 4 << 20;

/// Number of queued bytes up to which input is answered at once. Above it the answer waits, so that a sender that waits
/// for answers is no faster than the program.
pub(super) const STDIN_HELD_BYTES_MAX: usize = 1 << 20;

/// The reason why input was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinError {
    /// The bytes begin after the end of the input accepted so far.
    Gap {
        /// The position up to which input was accepted, in bytes from 0.
        at: u64,
    },
    /// The buffer is full.
    Full,
    /// The stream was ended by the front-end, or the program has closed it.
    Closed,
}

/// This process's end of the program's standard input.
pub struct InputStream {
    /// The descriptor of the pipe; `None` once it is closed.
    fd: Option<OwnedFd>,
    buffer: VecDeque<u8>,
    /// Number of bytes accepted so far.
    taken: u64,
    /// True once no more input is accepted. The pipe is closed when the buffer is empty.
    ended: bool,
}

impl InputStream {
    /// The input stream for a non-blocking pipe.
    pub fn new(fd: OwnedFd) -> Self {
        Self {
            fd: Some(fd),
            buffer: VecDeque::new(),
            taken: 0,
            ended: false,
        }
    }

    /// The descriptor, if there are bytes to write to it; otherwise `None`.
    pub fn wants_write(&self) -> Option<RawFd> {
        let fd = self.fd.as_ref()?;
        (!self.buffer.is_empty()).then(|| fd.as_raw_fd())
    }

    /// True if at most `STDIN_HELD_BYTES_MAX` bytes are queued for the program, or if the stream is closed.
    pub fn has_room(&self) -> bool {
        self.fd.is_none() || self.buffer.len() <= STDIN_HELD_BYTES_MAX
    }

    /// Queues bytes for the program. `offset` is the position of the first byte in the stream; bytes that are queued
    /// already are skipped.
    pub fn take(&mut self, offset: u64, bytes: &[u8], eof: bool) -> Result<(), StdinError> {
        if offset > self.taken {
            return Err(StdinError::Gap { at: self.taken });
        }
        let known = usize::try_from(self.taken - offset).unwrap_or(usize::MAX);
        let fresh = bytes.get(known..).unwrap_or_default();
        if !fresh.is_empty() && (self.ended || self.fd.is_none()) {
            return Err(StdinError::Closed);
        }
        if self.buffer.len() + fresh.len() > STDIN_BUFFER_BYTES_MAX {
            return Err(StdinError::Full);
        }
        self.buffer.extend(fresh);
        self.taken += fresh.len() as u64;
        self.ended |= eof;
        Ok(())
    }

    /// Writes as many bytes as the pipe takes. Returns the descriptor to close, if writing has ended; otherwise `None`.
    pub fn write(&mut self) -> Option<OwnedFd> {
        while let Some(fd) = &self.fd {
            if self.buffer.is_empty() {
                return if self.ended { self.fd.take() } else { None };
            }
            match write(fd, self.buffer.as_slices().0) {
                Ok(count) => drop(self.buffer.drain(..count)),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return None,
                // The program has closed its end, so the remaining bytes have no reader.
                Err(_) => return self.close(),
            }
        }
        None
    }

    /// Closes the stream. Returns its descriptor, to be closed by the caller; `None` if it is closed already.
    pub fn close(&mut self) -> Option<OwnedFd> {
        self.buffer.clear();
        self.ended = true;
        self.fd.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_input_bytes_are_written_once() {
        let (theirs, ours) = nix::unistd::pipe().unwrap();
        let mut input = InputStream::new(ours);
        assert_eq!(input.take(1, b"x", false), Err(StdinError::Gap { at: 0 }));
        assert_eq!(input.take(0, b"abc", false), Ok(()));
        assert_eq!(input.take(0, b"abc", false), Ok(()));
        assert_eq!(input.take(1, b"bcde", true), Ok(()));
        assert_eq!(input.take(5, b"f", false), Err(StdinError::Closed));
        assert_eq!(input.take(3, b"de", true), Ok(()));
        assert!(input.write().is_some());
        let mut buffer = [0; 16];
        let count = nix::unistd::read(&theirs, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"abcde");
    }

    #[test]
    fn input_buffer_is_bounded() {
        let (_theirs, ours) = nix::unistd::pipe().unwrap();
        let mut input = InputStream::new(ours);
        let bytes = vec![0; STDIN_BUFFER_BYTES_MAX];
        assert_eq!(input.take(0, &bytes, false), Ok(()));
        assert_eq!(
            input.take(bytes.len() as u64, b"x", false),
            Err(StdinError::Full)
        );
    }
}
