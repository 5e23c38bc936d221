//! Waiting for several descriptors.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Waits until one of these descriptors can be read, a signal arrives, or the time is over.
pub(super) fn await_any<'a>(
    fds: impl Iterator<Item = BorrowedFd<'a>>,
    wait: Duration,
) -> io::Result<()> {
    let mut polled: Vec<PollFd> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
    match poll(&mut polled, wait) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
