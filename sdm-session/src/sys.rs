//! What the operating system is asked for directly.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The command will run in a session of its own, out of reach of the terminal's signals.
pub(crate) fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: setsid is async-signal-safe, and nothing else is done between fork and exec.
    unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) }
}
