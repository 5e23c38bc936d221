//! System calls that start a command in a session of its own, with a signal at the end of this process.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid, setsid};

/// Runs the command in a session of its own, out of reach of the terminal's signals. The kernel ends it
/// when the calling thread ends, unless the process changes that.
pub(crate) fn in_own_session(command: &mut Command) -> &mut Command {
    let parent = Pid::this();
    let before_exec = move || -> io::Result<()> {
        setsid()?;
        prctl::set_pdeathsig(Signal::SIGTERM)?;
        // If the parent ended before that call, no signal will come. An error could not be reported to any
        // process.
        if getppid() != parent {
            // SAFETY: _exit is async-signal-safe and does not return.
            unsafe { libc::_exit(1) };
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, takes no lock and only makes async-signal-safe calls.
    unsafe { command.pre_exec(before_exec) }
}
