//! This process's own standard streams, which programs can share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

use nix::fcntl::{FcntlArg, fcntl};

use crate::sys::HANDED_FD_FIRST;

/// This process's standard streams, for sharing with programs that gdb starts.
///
/// gdb has standard streams of its own, so these streams are inherited under other numbers. The exec wrapper restores
/// the numbers. So a program has the same open files as without gdb, of any kind and owner.
#[derive(Clone, Copy, Debug)]
pub struct InheritedStreams {
    /// The copies of standard input, output and errors.
    copies: [RawFd; 3],
}

impl InheritedStreams {
    /// Copies of this process's streams.
    ///
    /// # Errors
    /// [`io::Error`] if a stream is closed, or no descriptor is left.
    pub fn take() -> io::Result<Self> {
        let stdin = hand_down(0, io::stdin().as_fd())?;
        let stdout = hand_down(1, io::stdout().as_fd())?;
        let stderr = hand_down(2, io::stderr().as_fd())?;
        Ok(Self {
            copies: [stdin, stdout, stderr],
        })
    }

    /// The copies' descriptors, which child processes inherit.
    pub fn copies(&self) -> [RawFd; 3] {
        self.copies
    }
}

/// Duplicates a descriptor to a number from `HANDED_FD_FIRST` on, which programs on the way to gdb do not use. If there
/// is none, to a number from 3 on. Children inherit the copy.
fn hand_down(number: RawFd, fd: BorrowedFd<'_>) -> io::Result<RawFd> {
    let copy = |first| fcntl(fd, FcntlArg::F_DUPFD(first));
    copy(HANDED_FD_FIRST).or_else(|_| copy(3)).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("standard stream {number}: {error}"))
    })
}
