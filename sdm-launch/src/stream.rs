//! What one or many processes write into a pipe, line by line.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::lines::Lines;
use crate::sys;

/// How much is read in one go, in bytes: the events of one call are bounded by this.
const READ_BYTES_MAX: usize = 16 << 10;
/// How much an ended process may still have in a pipe, in bytes: what a pipe can hold at most where
/// nobody writes any more. Something else that kept the pipe open cannot hold up the end.
const LEFT_BYTES_MAX: usize = 1 << 20;

/// A line of a stream.
pub(crate) struct Line {
    pub(crate) stderr: bool,
    pub(crate) text: String,
}

/// The reading end of a pipe.
pub(crate) struct Stream {
    /// None once it was closed by the other side.
    pipe: Option<PipeReader>,
    stderr: bool,
    lines: Lines,
}

impl Stream {
    /// A pipe: what is read here, and where to write.
    pub(crate) fn open(stderr: bool) -> io::Result<(Self, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        sys::set_nonblocking(pipe.as_fd())?;
        let stream = Self {
            pipe: Some(pipe),
            stderr,
            lines: Lines::default(),
        };
        Ok((stream, writer))
    }

    /// The pipe, while it is open.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Whether `fd` is the pipe.
    pub(crate) fn is(&self, fd: RawFd) -> bool {
        self.fd().is_some_and(|own| own.as_raw_fd() == fd)
    }

    /// Reads once; how many bytes, 0 where there is nothing now or nothing any more.
    pub(crate) fn read(&mut self, line: &mut impl FnMut(Line)) -> usize {
        let stderr = self.stderr;
        let Some(pipe) = &mut self.pipe else {
            return 0;
        };
        let mut buffer = [0; READ_BYTES_MAX];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    let give = |text| line(Line { stderr, text });
                    self.lines.push(&buffer[..read], give);
                    return read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                // A pipe that cannot be read is as good as closed.
                Err(_) => break,
            }
        }
        self.close(line);
        0
    }

    /// Reads what is left of who wrote there, within a bound.
    pub(crate) fn read_rest(&mut self, line: &mut impl FnMut(Line)) {
        let mut left = LEFT_BYTES_MAX;
        while left > 0 {
            match self.read(line) {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
    }

    /// Closes the pipe; an unfinished line is one.
    pub(crate) fn close(&mut self, line: &mut impl FnMut(Line)) {
        let stderr = self.stderr;
        self.pipe = None;
        self.lines.finish(|text| line(Line { stderr, text }));
    }
}
