//! Reads a pipe into which one or several processes write, as lines, or as bytes that are passed on.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::lines::Lines;
use crate::sys;

/// Maximum number of bytes read in one call, which bounds the events of the call.
const READ_BYTES_MAX: usize = 16 << 10;
/// Maximum number of bytes read from a pipe after its process has ended: the default maximum of a pipe's capacity.
/// Another process that keeps the pipe open cannot delay the end.
const LEFT_BYTES_MAX: usize = 1 << 20;

/// A line of a stream, or bytes that are passed on unchanged.
pub struct Line {
    /// True if the line is from standard error.
    pub stderr: bool,
    /// The line, a piece of a very long line, or bytes that are passed on.
    pub piece: Piece,
}

/// A line, or bytes that are passed on.
pub enum Piece {
    /// A line without its line end.
    Text(String),
    /// Bytes, cut anywhere.
    Bytes(Vec<u8>),
}

impl Line {
    /// The text of a line; `None` for bytes.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.piece {
            Piece::Text(text) => Some(text),
            Piece::Bytes(_) => None,
        }
    }
}

/// The reading end of a pipe.
pub struct Stream {
    /// The pipe; `None` once it is closed, here or at the other end.
    pipe: Option<PipeReader>,
    stderr: bool,
    lines: Lines,
    /// True if input is passed on unchanged.
    passing: bool,
}

impl Stream {
    /// A new pipe: the stream to read, and the end to write to.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn open(stderr: bool) -> io::Result<(Self, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        sys::set_nonblocking(pipe.as_fd())?;
        let stream = Self {
            pipe: Some(pipe),
            stderr,
            lines: Lines::default(),
            passing: false,
        };
        Ok((stream, writer))
    }

    /// The pipe's descriptor; `None` once it is closed.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// True if `fd` is the pipe's descriptor.
    #[must_use]
    pub fn is(&self, fd: RawFd) -> bool {
        self.fd().is_some_and(|own| own.as_raw_fd() == fd)
    }

    /// Reads once from the pipe. Returns the number of bytes; 0 at the end, and if nothing is available.
    pub fn read(&mut self, line: &mut impl FnMut(Line)) -> usize {
        let stderr = self.stderr;
        let Some(pipe) = &mut self.pipe else {
            return 0;
        };
        let mut buffer = [0; READ_BYTES_MAX];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) if self.passing => {
                    let piece = Piece::Bytes(buffer[..read].to_vec());
                    line(Line { stderr, piece });
                    return read;
                }
                Ok(read) => {
                    self.lines.push(&buffer[..read], text_of(stderr, line));
                    return read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                // A pipe that cannot be read counts as closed.
                Err(_) => break,
            }
        }
        self.close(line);
        0
    }

    /// Reads the remaining bytes of an ended writer, up to a limit.
    pub fn read_rest(&mut self, line: &mut impl FnMut(Line)) {
        let mut left = LEFT_BYTES_MAX;
        while left > 0 {
            match self.read(line) {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
    }

    /// Closes the pipe, and passes on an incomplete last line.
    pub fn close(&mut self, line: &mut impl FnMut(Line)) {
        let stderr = self.stderr;
        self.pipe = None;
        self.lines.finish(text_of(stderr, line));
    }

    /// Passes bytes on unchanged from now on, beginning with an unfinished line.
    pub fn pass_on(&mut self, line: &mut impl FnMut(Line)) {
        self.passing = true;
        self.lines.finish(text_of(self.stderr, line));
    }
}

fn text_of(stderr: bool, line: &mut impl FnMut(Line)) -> impl FnMut(String) {
    move |text| {
        let piece = Piece::Text(text);
        line(Line { stderr, piece });
    }
}
