//! The program's standard streams: a pty for output and pipes for errors and input, or this process's own streams.

mod inherited;
mod input;
mod output;
mod pty;

pub use inherited::InheritedStreams;
pub use input::STDIN_BUFFER_BYTES_MAX;
pub use input::{InputStream, StdinError};
pub use output::{OutputStream, ReadMore};
pub(crate) use pty::Pty;

use std::os::fd::BorrowedFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Makes a descriptor non-blocking.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> nix::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}
