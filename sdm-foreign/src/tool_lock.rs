//! A lock that allows one of SDM's tools at a time to connect to a server.
//!
//! Every tool of ours has the same name at a `prterun`: see [`crate::library`]. Two tools of one name may confuse the
//! server, also where the second connects before the server has processed the end of the first. The server may then
//! refuse all later tools. The lock prevents this. The lock is on a file of the server's process that only its owner
//! can open, so that no other user can keep a tool out, and no lock file is left over. A tool holds the lock while it
//! connects, and again while it leaves, until the server has removed it. If the tool dies, its keeper still holds the
//! lock.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// Time limit for the wait for other tools. A tool and its keeper take little more than a second, and more where
/// the server gets no processor time; the keeper of a dead tool ends after ten. A tool that waits for the server's
/// job stays longer, and the server may answer none.
const WAIT: Duration = Duration::from_secs(60);
/// Interval between attempts to take the lock.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The lock on a server, held by this process or released. If this process dies, its keeper may still hold the lock.
pub(crate) struct ToolLock(State);

/// In both states the file stays open, as the keeper knows it by its descriptor number.
enum State {
    Held(Flock<File>),
    Free(File),
}

impl ToolLock {
    /// Waits until no other tool of this user holds the lock of a server, at most a minute. Then it fails, because a
    /// server may refuse all later tools once two were connected at once.
    pub(crate) fn take(server: i32) -> Result<Self> {
        let file = File::open(format!("/proc/{server}/environ"));
        let file = file.with_context(|| format!("process {server}"))?;
        Self(State::Free(file)).take_again()
    }

    /// Takes the lock again, as [`ToolLock::take`] does.
    pub(crate) fn take_again(self) -> Result<Self> {
        let mut file = match self.0 {
            State::Held(_) => return Ok(self),
            State::Free(file) => file,
        };
        let deadline = Instant::now() + WAIT;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(State::Held(lock))),
                Err((back, Errno::EWOULDBLOCK)) if Instant::now() < deadline => file = back,
                Err((_, Errno::EWOULDBLOCK)) => bail!(
                    "another tool has been connected to the PMIx server for {} s: the server is still starting, or does not answer",
                    WAIT.as_secs()
                ),
                Err((_, error)) => {
                    return Err(error)
                        .context("cannot wait for the other tools of the PMIx server");
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The descriptor of the locked file.
    pub(crate) fn descriptor(&self) -> RawFd {
        match &self.0 {
            State::Held(lock) => (**lock).as_raw_fd(),
            State::Free(file) => file.as_raw_fd(),
        }
    }

    /// Releases the lock; returns it free, or still held if that fails.
    pub(crate) fn end(self) -> Self {
        match self.0 {
            State::Held(lock) => match lock.unlock() {
                Ok(file) => Self(State::Free(file)),
                Err((lock, _)) => Self(State::Held(lock)),
            },
            State::Free(_) => self,
        }
    }

    /// Leaves the lock to the keeper of this process, which releases it once the server has removed this tool.
    pub(crate) fn leave_to_keeper(self) {
        // A drop would release the lock.
        std::mem::forget(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ToolLock {
        fn is_held(&self) -> bool {
            matches!(self.0, State::Held(_))
        }
    }

    #[test]
    fn tool_lock_waits_until_its_holder_releases_it() {
        let own = std::process::id().cast_signed();
        let first = ToolLock::take(own).unwrap();
        assert!(first.is_held());
        let other = File::open(format!("/proc/{own}/environ")).unwrap();
        let refused = Flock::lock(other, FlockArg::LockExclusiveNonblock);
        assert_eq!(
            refused.map_err(|(_, error)| error).err(),
            Some(Errno::EWOULDBLOCK)
        );
        let waits = std::thread::spawn(move || ToolLock::take(own).unwrap());
        let first = first.end();
        assert!(!first.is_held());
        let second = waits.join().unwrap();
        assert!(second.is_held(), "its turn came");
        drop(second);
        assert!(first.take_again().unwrap().is_held(), "nobody else has it");
    }
}
