//! A shim without a launcher: the server itself starts it, as the parent of a program without a gdb.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use sdm_system::programs;

use super::channel::Channel;
use super::process::{Shim, ShimEvent};
use crate::sys;
use crate::{StartConfig, adopt_orphans};

/// The first argument of a local shim; a descriptor and a task number follow.
const MODE: &str = "--shim";
/// Interval of checks for the end of a process that no descriptor reports, in milliseconds.
const LOOK_AGAIN_MS: u16 = 5;

/// A shim process that this process has started. It exits on request, or when its server has ended.
#[derive(Debug)]
pub struct LocalShim(Child);

impl LocalShim {
    /// Starts a local shim for a task. `program` is an executable that calls [`run_shim`] first in `main`.
    ///
    /// # Errors
    /// [`io::Error`] if the system has no resources for another process.
    pub fn start(program: &Path, task: u32) -> io::Result<(Self, Channel)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let theirs = sys::out_of_the_way(theirs);
        let mut command = programs::at(program);
        command
            .arg(MODE)
            .arg(theirs.as_raw_fd().to_string())
            .arg(task.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        sdm_system::hand_on(&mut command, &theirs);
        // A terminal's signals to a whole group do not reach the shim. One that is stopped resumes when its server
        // ends, and sees that.
        sdm_system::in_own_session(&mut command, Signal::SIGCONT);
        let child = command.spawn()?;
        Ok((Self(child), Channel::new(ours)?))
    }
}

impl Drop for LocalShim {
    fn drop(&mut self) {
        // The shim is reaped if it has ended. Otherwise it remains this process's child until this process ends.
        let _ = self.0.try_wait();
    }
}

/// Runs as a local shim until it is told to exit, or until its server has ended; `None` if this process was not started
/// as a local shim. Call it first in `main`.
#[must_use]
pub fn run_shim() -> Option<io::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != MODE {
        return None;
    }
    let number = |word: Option<std::ffi::OsString>| {
        let word = word.as_deref().and_then(OsStr::to_str)?;
        word.parse::<u32>().ok()
    };
    let (Some(socket), Some(task)) = (number(words.next()), number(words.next())) else {
        return Some(Err(io::ErrorKind::InvalidInput.into()));
    };
    let socket = RawFd::try_from(socket).map_err(io::Error::other);
    Some(socket.and_then(|socket| serve(sys::own_received(socket), task)))
}

fn serve(socket: OwnedFd, task: u32) -> io::Result<()> {
    let name = std::ffi::CString::new(format!("sdm-shim-{task}"))?;
    nix::sys::prctl::set_name(&name)?;
    adopt_orphans();
    nix::fcntl::fcntl(
        &socket,
        nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC),
    )?;
    let mut shim = Shim::new(Channel::new(socket)?, task, StartConfig::default())?;
    loop {
        for event in shim.handle_ready() {
            match event {
                ShimEvent::End(_) => return Ok(()),
                ShimEvent::ServerGone => {
                    // The program ends with its debugger.
                    shim.kill_gdb();
                    return Ok(());
                }
                _ => {}
            }
        }
        // The shim stays even after its program has ended. If it ended before it had read all its messages, those
        // that it has sent would be lost.
        wait(&shim)?;
    }
}

fn wait(shim: &Shim) -> io::Result<()> {
    let timeout = match shim.looks_again() {
        true => PollTimeout::from(LOOK_AGAIN_MS),
        false => PollTimeout::NONE,
    };
    let fds = shim.fds();
    let mut polled: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN))
        .collect();
    if shim.wants_write()
        && let Some(first) = polled.first_mut()
    {
        first.set_events(PollFlags::POLLIN | PollFlags::POLLOUT);
    }
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::Pid;

    #[test]
    fn shim_stopped_at_its_start_continues_when_its_server_ends() {
        let program = std::env::temp_dir().join(format!("sdm-shim-{}", std::process::id()));
        fs::write(&program, "#!/bin/sh\nkill -STOP $$\nexit 7\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        // The kernel counts the end of the thread that has started it.
        let started = program.clone();
        let server = std::thread::spawn(move || {
            let (shim, _) = LocalShim::start(&started, 0).unwrap();
            let pid = Pid::from_raw(shim.0.id().cast_signed());
            waitid(Id::Pid(pid), WaitPidFlag::WSTOPPED).unwrap();
            shim
        });
        let mut shim = server.join().unwrap();
        assert_eq!(shim.0.wait().unwrap().code(), Some(7));
        fs::remove_file(program).unwrap();
    }
}
