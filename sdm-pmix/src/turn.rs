//! One tool of ours at a time connects to a server.
//!
//! Every tool of ours is the same one in a server's books: see [`crate::library`]. Two that connect in the same moment with one
//! name may be refused, so that a lock orders them. It is on a file of the server's process that only its owner can open, so that
//! nobody else can keep a tool out, and nothing is left behind. It is held until the connection stands, also by the keeper of a tool
//! that died before.

use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// How long others are waited for. A tool that connects takes a second here, and the keeper of a dead one ends after as long as
/// this; a server that takes nobody must not hold all tools for ever.
const WAIT: Duration = Duration::from_secs(12);
/// How often it is looked whether the others are done.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The turn of this process. Where it dies with it, a keeper may still hold it.
pub(crate) struct Turn {
    lock: Option<Flock<File>>,
}

impl Turn {
    /// Waits until nobody else of this user connects to a server, at most 12 s: then it is tried all the same.
    pub(crate) fn take(server: i32) -> Result<Self> {
        let file = File::open(format!("/proc/{server}/environ"));
        let mut file = file.with_context(|| format!("process {server}"))?;
        let deadline = Instant::now() + WAIT;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self { lock: Some(lock) }),
                Err((back, Errno::EWOULDBLOCK)) if Instant::now() < deadline => file = back,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(Self { lock: None }),
                Err((_, error)) => return Err(error).context("wait for other tools"),
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The descriptor that holds it; absent where it was not waited for to the end.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.lock.as_ref().map(|lock| (**lock).as_raw_fd())
    }

    /// Lets others come. The descriptor stays open, as a keeper knows it by its number.
    pub(crate) fn end(mut self) {
        if let Some(Ok(file)) = self.lock.take().map(Flock::unlock) {
            let _ = file.into_raw_fd();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits_until_the_first_is_done() {
        let own = std::process::id().cast_signed();
        let first = Turn::take(own).unwrap();
        assert!(first.descriptor().is_some());
        let waits = std::thread::spawn(move || Turn::take(own).unwrap().descriptor().is_some());
        assert!(!waits.is_finished());
        first.end();
        assert!(waits.join().unwrap(), "its turn came");
    }
}
