//! A process that holds descriptors, so that other processes can open them by its `/proc` paths.
//!
//! A process with the session's key is protected against core dumps. So only root can open its descriptors through
//! `/proc`, not even processes of the same user. The descriptors of a process without secrets can be opened. FIFOs
//! would need a directory instead, and would stay there after a kill.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use super::guard_process::GuardProcess;
use super::programs;

/// Shell script: it reports that it runs, and then waits for the end of its input, so that it ends with this process in
/// any case. A subshell makes the report, because a redirection would change the shell's own output.
const WAIT: &str = "(echo >&0); read -r line";
/// Time limit for the shell to start.
const START_WAIT: Duration = Duration::from_secs(30);

/// A shell process that holds descriptors as its standard output and standard error, for other processes to open.
#[derive(Debug)]
pub struct FdServer {
    shell: GuardProcess,
    /// The other end of the shell's input. When it is closed, the shell ends.
    input: UnixStream,
}

impl FdServer {
    /// Starts the shell with one or two descriptors, of which this process keeps none. Other processes can open them as
    /// soon as this function returns. `/dev/null` stands for a missing descriptor.
    ///
    /// # Errors
    /// There is no room for one more process or descriptor, or the shell does not start within 30 seconds.
    pub fn start(first: Option<OwnedFd>, second: Option<OwnedFd>) -> io::Result<Self> {
        let (input, theirs) = UnixStream::pair()?;
        let stdio = |lent: Option<OwnedFd>| lent.map_or_else(Stdio::null, Stdio::from);
        let mut command = programs::shell(WAIT);
        command.stdin(OwnedFd::from(theirs));
        command.stdout(stdio(first)).stderr(stdio(second));
        let shell = GuardProcess::start(&mut command)?;
        // Dropping the command closes this process's copies, so only the shell has them.
        drop(command);
        input.set_read_timeout(Some(START_WAIT))?;
        let mut lender = Self { shell, input };
        lender.input.read_exact(&mut [0])?;
        Ok(lender)
    }

    /// Path at which the first descriptor can be opened as long as this value lives.
    #[must_use]
    pub fn first(&self) -> PathBuf {
        self.path(1)
    }

    /// Path at which the second descriptor can be opened as long as this value lives.
    #[must_use]
    pub fn second(&self) -> PathBuf {
        self.path(2)
    }

    fn path(&self, fd: u32) -> PathBuf {
        format!("/proc/{}/fd/{fd}", self.shell.pid()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn descriptors_of_fd_server_are_opened_by_path_and_closed() {
        let (theirs, mut ours) = io::pipe().unwrap();
        let (mut errors, their_errors) = io::pipe().unwrap();
        let lender = FdServer::start(Some(theirs.into()), Some(their_errors.into())).unwrap();
        let mut first = File::open(lender.first()).unwrap();
        let mut second = File::options().write(true).open(lender.second()).unwrap();
        drop(lender);
        ours.write_all(b"to it").unwrap();
        second.write_all(b"from it").unwrap();
        drop(ours);
        drop(second);
        let (mut read, mut said) = (String::new(), String::new());
        first.read_to_string(&mut read).unwrap();
        errors.read_to_string(&mut said).unwrap();
        assert_eq!((&*read, &*said), ("to it", "from it"));
    }

    #[test]
    fn absent_descriptor_of_fd_server_reads_as_empty() {
        let lender = FdServer::start(None, None).unwrap();
        assert_eq!(std::fs::read(lender.first()).unwrap(), b"");
    }
}
