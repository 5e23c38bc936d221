//! A process that lends another one a descriptor, which that opens by its path.
//!
//! `sdm` is kept out of core files: what it has open itself nobody but root may open through `/proc`. Another process,
//! which has nothing to hide, may be looked into.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::sys;

/// Says that it is there, and waits for the end of its input: it goes with this process, however that ends. What says so
/// is a process of its own, as a shell puts its own output elsewhere meanwhile.
const WAIT: [&str; 2] = ["-c", "(echo >&0); read -r line"];
/// How long it may take to be there.
const START_WAIT: Duration = Duration::from_secs(30);

/// A shell that has the descriptor.
pub(crate) struct Lender {
    child: Child,
    /// Open as long as it is to be there.
    input: UnixStream,
}

impl Lender {
    /// Hands it over: this process does not keep it. When this comes back it can be opened: a moment before, a process
    /// that has just been started may not be looked into either.
    pub(crate) fn start(lent: OwnedFd) -> io::Result<Self> {
        let (input, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/bin/sh");
        command.args(WAIT).stdin(OwnedFd::from(theirs)).stdout(lent);
        command.stderr(Stdio::null());
        sys::isolate(&mut command, Signal::SIGTERM);
        let child = command.spawn()?;
        // From now on only it has their end.
        drop(command);
        input.set_read_timeout(Some(START_WAIT))?;
        let mut lender = Self { child, input };
        lender.input.read_exact(&mut [0])?;
        Ok(lender)
    }

    /// Where it can be opened as long as this lives.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/1", self.child.id()).into()
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // It has nothing to lose, and would end by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_lent_is_read_by_its_path() {
        let (reader, mut writer) = io::pipe().unwrap();
        let lender = Lender::start(reader.into()).unwrap();
        writer.write_all(b"go\n").unwrap();
        drop(writer);
        assert_eq!(std::fs::read_to_string(lender.path()).unwrap(), "go\n");
    }
}
