//! One stream of the program's output. It reads bytes and returns whole lines. An incomplete line is returned after
//! `PARTIAL_LINE_WAIT`, and a line that is too long in pieces.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::read;
use sdm_core::limits::BULK_CHUNK_BYTES_MAX;
use sdm_debug::event::Stream;

/// Time after which an incomplete line is passed on.
const PARTIAL_LINE_WAIT: Duration = Duration::from_millis(20);
/// Number of bytes of one read: a pseudo-terminal returns no more.
const PIECE_BYTES: usize = 4 << 10;
/// Number of bytes that are read before other streams are read.
const READ_BYTES_MAX: usize = 256 << 10;

/// The outcome of a call of [`OutputStream::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMore {
    /// No more output at present.
    Later,
    /// More output may be available now.
    Now,
    /// The stream has ended.
    Ended,
}

/// This process's end of one output stream.
pub struct OutputStream {
    /// Standard output or standard error.
    pub stream: Stream,
    fd: OwnedFd,
    /// Bytes that were read and not passed on; usually an incomplete line.
    pending: Vec<u8>,
    /// Time at which `pending` is passed on although it is incomplete; `None` if it is empty.
    flush_at: Option<Instant>,
}

impl OutputStream {
    /// The output stream for a non-blocking descriptor.
    pub fn new(stream: Stream, fd: OwnedFd) -> Self {
        Self {
            stream,
            fd,
            pending: Vec::new(),
            flush_at: None,
        }
    }

    /// The descriptor to watch.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Releases the descriptor, so that the caller closes it.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Reads the available bytes, and passes whole lines to `give`.
    pub fn read(&mut self, now: Instant, mut give: impl FnMut(Vec<u8>)) -> ReadMore {
        let mut total = 0;
        let mut is_hung_up = false;
        let mut buffer = [0; PIECE_BYTES];
        let more = loop {
            match read(&self.fd, &mut buffer) {
                Ok(0) => break ReadMore::Ended,
                // The kernel looks first for bytes, and then for an open other end. Bytes that were written and
                // followed by a close in between are read only after the first EIO.
                Err(Errno::EIO) if !is_hung_up => is_hung_up = true,
                Err(Errno::EIO) => break ReadMore::Ended,
                Ok(count) => {
                    self.take(&buffer[..count], &mut give);
                    total += count;
                    if total >= READ_BYTES_MAX {
                        break ReadMore::Now;
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break ReadMore::Later,
                Err(error) => {
                    tracing::warn!("program's {:?}: read: {error}", self.stream);
                    break ReadMore::Ended;
                }
            }
        };
        if more == ReadMore::Ended {
            self.flush(&mut give);
        } else if self.pending.is_empty() {
            self.flush_at = None;
        } else if total > 0 || self.flush_at.is_none() {
            self.flush_at = Some(now + PARTIAL_LINE_WAIT);
        }
        more
    }

    /// The time at which [`OutputStream::flush`] is due; `None` if it is not.
    pub fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Passes the incomplete line to `give`.
    pub fn flush(&mut self, mut give: impl FnMut(Vec<u8>)) {
        self.flush_at = None;
        if !self.pending.is_empty() {
            give(std::mem::take(&mut self.pending));
        }
    }

    fn take(&mut self, bytes: &[u8], give: &mut impl FnMut(Vec<u8>)) {
        self.pending.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(length) = next_chunk(&self.pending[start..]) {
            give(self.pending[start..start + length].to_vec());
            start += length;
        }
        self.pending.drain(..start);
    }
}

/// Length of the next chunk: up to the last newline that fits, or a whole chunk of a line that is too long. `None`
/// while a line is incomplete.
fn next_chunk(bytes: &[u8]) -> Option<usize> {
    let window = &bytes[..bytes.len().min(BULK_CHUNK_BYTES_MAX)];
    match window.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => Some(end + 1),
        None => (window.len() == BULK_CHUNK_BYTES_MAX).then_some(window.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn output_is_sent_in_whole_lines_if_possible() {
        assert_eq!(next_chunk(b""), None);
        assert_eq!(next_chunk(b"abc"), None);
        assert_eq!(next_chunk(b"abc\nde"), Some(4));
        assert_eq!(next_chunk(b"a\nb\nc"), Some(4));
        let long = vec![b'x'; BULK_CHUNK_BYTES_MAX + 1];
        assert_eq!(next_chunk(&long), Some(BULK_CHUNK_BYTES_MAX));
    }

    #[test]
    fn unfinished_line_is_flushed_after_a_delay() {
        let (ours, theirs) = nix::unistd::pipe().unwrap();
        crate::stdio::set_nonblocking(ours.as_fd()).unwrap();
        let mut stream = OutputStream::new(Stream::Stderr, ours);
        let now = Instant::now();
        nix::unistd::write(&theirs, b"one\ntw").unwrap();
        let mut chunks = Vec::new();
        assert_eq!(
            stream.read(now, |chunk| chunks.push(chunk)),
            ReadMore::Later
        );
        assert_eq!(chunks, [b"one\n".to_vec()]);
        assert_eq!(stream.flush_at(), Some(now + PARTIAL_LINE_WAIT));
        stream.flush(|chunk| chunks.push(chunk));
        assert_eq!(chunks[1], b"tw");
        nix::unistd::write(&theirs, b"o").unwrap();
        drop(theirs);
        assert_eq!(
            stream.read(now, |chunk| chunks.push(chunk)),
            ReadMore::Ended
        );
        assert_eq!(chunks[2], b"o");
    }
}
