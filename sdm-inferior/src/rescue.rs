//! Removes a debugger's traces from a process: breakpoints, and a stop. This is for the case that all processes that
//! would have done so were killed too.
//!
//! A stop by SIGSTOP, as debuggers use it, is undone. A terminal's stop (Ctrl-Z, SIGTSTP and the like) is the user's
//! and stays. A tracer that seizes the process learns from the kernel which of them it is; this changes nothing in the
//! process.

use std::io;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, geteuid};
use sdm_system::{files, proc};

use crate::breakpoint_cleanup::{self, Breakpoint};
use crate::process::{identity, is_stopped};

/// The result of the rescue of one process.
#[derive(Debug)]
pub struct Rescue {
    /// The breakpoints that were removed.
    pub removed: Vec<Breakpoint>,
    /// True if the process was stopped, and was resumed.
    pub goes_on: bool,
    /// The reason why the process stays stopped; `None` if it does not stay stopped.
    pub stays: Option<Stay>,
}

/// The reason why a process stays stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// The process was stopped by this signal, which debuggers do not send.
    By(Signal),
    /// The kernel does not name the signal, and gives this error.
    Unknown(Errno),
}

/// The reason why a process could not be rescued.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// The process has ended.
    #[error("no such process")]
    Gone,
    /// The process belongs to another user.
    #[error("belongs to {0}: that user can rescue it")]
    Foreign(String),
    /// The process has a tracer. The tracer is alive and knows the changes that it has made.
    #[error("is traced by {name} (pid {pid}): end that process first")]
    Traced {
        /// The tracer's name.
        name: String,
        /// The tracer's pid.
        pid: i32,
    },
    /// The process's code could not be compared with its files, or only in part.
    #[error("code in memory cannot be compared with the program files: {0}")]
    Code(#[from] io::Error),
}

/// Removes debuggers' breakpoints from a process of this user, and resumes it if a debugger has stopped it.
///
/// # Errors
/// [`RescueError`]. If only a part of the code could be compared, the process stays stopped.
pub fn rescue(pid: i32) -> Result<Rescue, RescueError> {
    let who = identity(pid).ok_or(RescueError::Gone)?;
    let status = proc::of(pid).status().map_err(|_| RescueError::Gone)?;
    let own = geteuid().as_raw();
    let owners = status.ids("Uid").ok_or(RescueError::Gone)?;
    if let Some(other) = owners.into_iter().find(|id| *id != own) {
        return Err(RescueError::Foreign(files::user(other)));
    }
    if let Some(pid) = status.tracer() {
        let name = proc::of(pid).name().unwrap_or_default();
        return Err(RescueError::Traced { name, pid });
    }
    let removed = breakpoint_cleanup::remove_breakpoints(pid, &[])?;
    let was_stopped = is_stopped(pid);
    let stays = match was_stopped.then(|| stop_signal(pid)) {
        None | Some(Ok(Signal::SIGSTOP | Signal::SIGTRAP)) => None,
        Some(Ok(other)) => Some(Stay::By(other)),
        Some(Err(errno)) => Some(Stay::Unknown(errno)),
    };
    // A seized process is on its way back into the stop.
    let goes_on = was_stopped && stays.is_none();
    if goes_on {
        who.signal(Signal::SIGCONT);
    }
    Ok(Rescue {
        removed,
        goes_on,
        stays,
    })
}

/// True if a process of this user is stopped without a tracer, and has breakpoints in its code.
#[must_use]
pub fn is_left_stopped(pid: i32) -> bool {
    is_stopped(pid) && breakpoint_cleanup::breakpoints(pid).is_ok_and(|found| !found.is_empty())
}

/// The signal that has stopped the process; SIGTRAP if the process is not stopped.
fn stop_signal(pid: i32) -> Result<Signal, Errno> {
    let pid = Pid::from_raw(pid);
    ptrace::seize(pid, ptrace::Options::empty())?;
    // A stopped process reports its stop at once. The interrupt makes a running one report too.
    ptrace::interrupt(pid)?;
    let found = waitpid(pid, Some(WaitPidFlag::__WALL))?;
    // The process may have been killed.
    let _ = ptrace::detach(pid, None);
    match found {
        WaitStatus::PtraceEvent(_, signal, _) | WaitStatus::Stopped(_, signal) => Ok(signal),
        _ => Err(Errno::ESRCH),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use nix::sys::signal::kill;

    use super::*;

    fn stopped_by(signal: Signal) -> Child {
        let mut command = Command::new("cat");
        // A terminal's stop signal has no effect on an orphaned process group. The parent of this one is in another
        // group of the session.
        command.stdin(Stdio::piped()).process_group(0);
        let child = command.spawn().unwrap();
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        wait_stopped(&child);
        child
    }

    fn wait_stopped(child: &Child) {
        while !is_stopped(child.id().cast_signed()) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn sigstop_is_undone_but_terminal_stop_remains() {
        for signal in [Signal::SIGSTOP, Signal::SIGTTIN] {
            let mut child = stopped_by(signal);
            let pid = child.id().cast_signed();
            assert_eq!(stop_signal(pid), Ok(signal));
            wait_stopped(&child);
            let done = rescue(pid).unwrap();
            let is_ours = signal == Signal::SIGSTOP;
            assert_eq!(done.goes_on, is_ours);
            assert_eq!(done.stays, (!is_ours).then_some(Stay::By(signal)));
            match is_ours {
                true => assert!(!is_stopped(pid)),
                false => wait_stopped(&child),
            }
            assert!(done.removed.is_empty());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn traced_process_is_not_rescued() {
        let mut child = stopped_by(Signal::SIGSTOP);
        let pid = child.id().cast_signed();
        ptrace::seize(Pid::from_raw(pid), ptrace::Options::empty()).unwrap();
        let refused = rescue(pid);
        assert!(matches!(refused, Err(RescueError::Traced { .. })));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(rescue(pid), Err(RescueError::Gone)));
    }
}
