//! Files on another host, followed through ssh.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use sdm_system::programs::{self, remote_line};

use super::error::ClusterError;
use crate::tail_buffer::keep_end;

/// The shell script that follows a file until its standard input ends. A `tail` alone would run on after a
/// lost connection as long as the file does not grow. Data in transit has a second to arrive.
const FOLLOWS: &str = "tail -c \"$1\" -F -- \"$2\" & t=$!; cat >/dev/null; sleep 1; kill \"$t\"";
/// The shell script that prints a file from a start position to its current end.
const ENDS: &str = "exec tail -c \"$1\" -- \"$2\"";

/// The start position in a file of another host: its beginning, or a number of bytes before its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    Beginning,
    BeforeEnd(u64),
}

/// The command that prints a file of another host. With `follow`, the command follows the file as long as the command's
/// input is open.
///
/// # Errors
/// ssh cannot be started.
pub(super) fn tail(
    host: &str,
    options: &[String],
    path: &str,
    from: From,
    follow: bool,
) -> io::Result<Command> {
    let from = match from {
        From::Beginning => "+1".to_owned(),
        From::BeforeEnd(bytes) => bytes.to_string(),
    };
    let script = if follow { FOLLOWS } else { ENDS };
    let mut ssh = programs::named("ssh")?;
    ssh.args(["-o", "BatchMode=yes"]).args(options);
    ssh.args(["--", host, &remote_line(script, &[&from, path])]);
    Ok(ssh)
}

/// The growing end of a file on another host.
pub(super) struct FarEnd {
    of: (String, String),
    ssh: Child,
    read: Arc<Mutex<Vec<u8>>>,
}

impl FarEnd {
    /// Starts following a file.
    ///
    /// # Errors
    /// ssh cannot be started.
    pub(super) fn begin(
        host: &str,
        options: &[String],
        path: &str,
        bytes_max: usize,
    ) -> Result<Self, ClusterError> {
        let from = From::BeforeEnd(bytes_max as u64);
        let failed = |source| ClusterError::Program {
            program: "ssh".to_owned(),
            source,
        };
        let mut ssh = tail(host, options, path, from, true).map_err(failed)?;
        let piped = ssh.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut ssh = piped.stderr(Stdio::piped()).spawn().map_err(failed)?;
        let read = Arc::new(Mutex::new(Vec::new()));
        if let (Some(out), Some(err)) = (ssh.stdout.take(), ssh.stderr.take()) {
            for stream in [Box::new(out) as Box<dyn Read + Send>, Box::new(err)] {
                let read = Arc::clone(&read);
                std::thread::spawn(move || keep_end(stream, &read, bytes_max));
            }
        }
        Ok(Self {
            of: (host.to_owned(), path.to_owned()),
            ssh,
            read,
        })
    }

    /// True if this file is followed.
    pub(super) fn is_of(&self, host: &str, path: &str) -> bool {
        (&*self.of.0, &*self.of.1) == (host, path)
    }

    /// The end of the file, as far as it was received, and of the error output of ssh.
    pub(super) fn text(&self) -> String {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&read).into_owned()
    }
}

impl Drop for FarEnd {
    /// Ends the remote `tail`, which ends with its input.
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}
