//! A tunnel per connection: `ssh -W` to a port of another host's loopback, where no port is open
//! to the network. The members' own handshake and encryption run inside it as everywhere.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use mio::net::UnixStream;

use super::ConnectionString;

/// Maximum number of bytes of `ssh`'s messages that are read.
const WORDS_BYTES_MAX: u64 = 4096;
/// Number of last lines of `ssh`'s messages that are passed on.
const WORDS_LINES_MAX: usize = 3;

/// A running `ssh`; it ends with the connection.
pub(super) struct Tunnel {
    pub(super) stream: UnixStream,
    ssh: Child,
    stderr: Option<ChildStderr>,
    /// The address for which `ssh` was started, for messages.
    to: ConnectionString,
}

pub(super) fn connect(to: &ConnectionString, program: &Path) -> io::Result<Tunnel> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = std::os::unix::net::UnixStream::from(OwnedFd::from(theirs));
    // ssh takes a blocking terminal or pipe for granted.
    theirs.set_nonblocking(false)?;
    let theirs = OwnedFd::from(theirs);
    let mut ssh = Command::new(program)
        // ssh must never prompt: no user would see the question.
        .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=15"])
        // A master left in the background would hold our pipe.
        .args(["-o", "ControlMaster=no", "-W"])
        .arg(format!("127.0.0.1:{}", to.port()))
        .args(["--", to.host()])
        .stdin(Stdio::from(theirs.try_clone()?))
        .stdout(Stdio::from(theirs))
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{to}: start ssh: {error}")))?;
    let stderr = ssh.stderr.take();
    Ok(Tunnel {
        stream: ours,
        ssh,
        stderr,
        to: to.clone(),
    })
}

impl Tunnel {
    /// Receives bytes. If `ssh` has failed, the end of the stream is an error with its message.
    pub(super) fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buf)? {
            0 if !buf.is_empty() => self.ended(),
            count => Ok(count),
        }
    }

    /// Handles the end of the socket pair: `ssh` has ended or is about to.
    fn ended(&mut self) -> io::Result<usize> {
        let Some(stderr) = self.stderr.take() else {
            return Ok(0);
        };
        if self.ssh.wait()?.success() {
            return Ok(0);
        }
        let mut words = Vec::new();
        stderr.take(WORDS_BYTES_MAX).read_to_end(&mut words)?;
        let words = String::from_utf8_lossy(&words);
        let words: Vec<&str> = words
            .lines()
            .map(str::trim)
            .filter(|w| !w.is_empty())
            .collect();
        let words = match words.len() {
            0 => "no output".to_owned(),
            count => words[count.saturating_sub(WORDS_LINES_MAX)..].join("; "),
        };
        let what = format!("{}: ssh failed: {words}", self.to);
        Err(io::Error::other(what))
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}
