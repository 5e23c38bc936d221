//! The master of a session that starts, and the handover file for one that is started by hand.

use sdm_text::printable_name;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use sdm_bootstrap::handover;
use sdm_core::ids::SessionId;
use sdm_core::secure::SessionKey;
use sdm_core::transport::{ConnectionString, Shape};
use sdm_system::secret::SecretFile;
use sdm_system::{files, programs};

use super::error::SessionError;
use super::reverse_listener::ReverseListener;

/// The master process during a start. Dropping it ends the process.
#[derive(Default)]
pub(super) struct Master {
    /// The process and its pidfd. None if it is started by hand.
    running: Option<(Child, OwnedFd)>,
}

impl Master {
    /// Starts the master process. [`Master::end_fd`] is readable once it has ended.
    pub(super) fn start(
        program: &Path,
        front_end: &ConnectionString,
        shape: Option<Shape>,
        environment: Vec<(OsString, OsString)>,
        reverse_listener: Option<ReverseListener>,
    ) -> Result<Self, SessionError> {
        let mut command = programs::at(program);
        let stdin = match reverse_listener {
            Some(reverse_listener) => {
                command.arg("--reverse-listener");
                OwnedFd::from(reverse_listener.socket).into()
            }
            None => Stdio::null(),
        };
        command
            .arg(front_end.to_string())
            .envs(environment)
            .stdin(stdin)
            .stdout(Stdio::null());
        if let Some(shape) = shape {
            command.args(["--shape", &shape.to_string()]);
        }
        let io = |what: String| move |source| SessionError::Io { what, source };
        sdm_system::in_own_session(&mut command, Signal::SIGTERM);
        let mut child = command
            .spawn()
            .map_err(io(format!("start {}", printable_name(program))))?;
        match sdm_system::watch_child(child.id()) {
            Ok(end) => Ok(Self {
                running: Some((child, end)),
            }),
            Err(source) => {
                // A master that cannot be watched is ended.
                let _ = child.kill();
                let _ = child.wait();
                Err(io("cannot watch sdm-master".to_owned())(source))
            }
        }
    }

    /// A descriptor that is readable when the master ends. -1 if it is started by hand.
    pub(super) fn end_fd(&self) -> RawFd {
        self.running.as_ref().map_or(-1, |(_, end)| end.as_raw_fd())
    }

    /// The error for a master that has ended, with its exit status.
    pub(super) fn gone(&mut self) -> SessionError {
        let status = self.running.as_mut().and_then(|(it, _)| it.wait().ok());
        let how = status.map(|status| format!(": {status}"));
        SessionError::MasterGone(how.unwrap_or_default())
    }

    /// Returns the process after a successful start, so that it is not ended on drop. None if it was started by hand.
    pub(super) fn release(mut self) -> Option<Child> {
        self.running.take().map(|(child, _)| child)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes a file with the session's name and key, which only this user can read. It is removed on drop, and
/// at the end of this process.
pub(super) fn write_handover(
    session: SessionId,
    key: &SessionKey,
) -> Result<SecretFile, SessionError> {
    let failed = |what: String| move |source| SessionError::Io { what, source };
    let folder = files::runtime_folder();
    let folder = folder.map_err(failed(
        "cannot create the folder for the session key".to_owned(),
    ))?;
    // Kept sessions have their sockets there, too, and their names do not begin so.
    let mut file = SecretFile::at(folder.join(format!(".{session}.key")));
    let text = handover::to_text(session, key);
    let written = file.write(text.as_bytes());
    let path = printable_name(file.path());
    written.map_err(failed(format!("cannot write the session key to {path}")))?;
    Ok(file)
}
