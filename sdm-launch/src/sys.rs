//! The unsafe calls of this crate: the code that a child runs between fork and exec.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sys::signal::Signal;

/// Makes the command's process the leader of a session of its own, so that a terminal's Ctrl-C does
/// not reach it. The kernel sends it `death_signal` when the thread that started it ends. If
/// this process has raised its limit of descriptors, the child gets the earlier one.
pub(crate) fn isolate(command: &mut Command, death_signal: Signal) {
    sdm_system::in_own_session(command, death_signal);
    let descriptors = crate::machine_limits::descriptors_of_children();
    let before_exec = move || {
        if let Some((soft, hard)) = descriptors {
            let limit = libc::rlimit {
                rlim_cur: soft,
                rlim_max: hard,
            };
            // SAFETY: setrlimit is async-signal-safe and reads one rlimit, which lives across it.
            if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, takes no lock and only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(before_exec);
    }
}
