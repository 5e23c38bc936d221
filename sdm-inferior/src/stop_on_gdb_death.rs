//! A SIGSTOP that the kernel sends to a process when its gdb is killed.
//!
//! When a gdb dies the kernel closes its files, and then detaches from its processes. Such a process continues at once,
//! into the breakpoint at which it is stopped, so that a reaction to gdb's death comes too late. Therefore gdb inherits
//! the write end of a pipe, and the kernel is told to send the process SIGSTOP when that end closes (`F_SETSIG`). The
//! signal is pending before the process is detached.
//!
//! Afterwards some process must resume the stopped process. If everything is killed at once, as by a resource manager
//! that ends a job step, none is left to do so. So the kernel is told this only when gdb is about to insert breakpoints
//! in the process, and no longer when gdb is about to detach from it while it is stopped: gdb removes its breakpoints
//! before it reports a stop. Before and after that the process is in no danger.

use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::sys;

/// A pipe for a gdb that is not started yet and will inherit the pipe's write end.
pub struct StopOnGdbDeath {
    ours: OwnedFd,
    /// The write end, which gdb inherits.
    pub theirs: OwnedFd,
}

/// This process's end of a pipe whose write end a gdb holds. From [`DeathPipe::tie`] until [`DeathPipe::untie`], the
/// kernel stops the process when that gdb ends; dropping it unties it.
pub(crate) struct DeathPipe {
    ours: OwnedFd,
    tied: bool,
}

impl Drop for DeathPipe {
    fn drop(&mut self) {
        // A close is not sufficient. A process that was forked meanwhile, such as a warden, can have both ends too,
        // and closes them later.
        self.untie();
    }
}

impl DeathPipe {
    /// Tells the kernel to stop the process with this pid when the gdb ends.
    pub(crate) fn tie(&mut self, pid: i32) {
        // If this fails, the process is stopped a little later.
        self.tied |= sys::stop_at_end_of(&self.ours, pid).is_ok();
    }

    pub(crate) fn untie(&mut self) {
        if std::mem::take(&mut self.tied) {
            sys::untie(&self.ours);
        }
    }

    pub(crate) fn is_tied(&self) -> bool {
        self.tied
    }
}

impl StopOnGdbDeath {
    /// A new pipe; `None` if no more files can be opened. Without the pipe the process is stopped a little later.
    pub fn new() -> Option<Self> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC).ok()?;
        Some(Self { ours, theirs })
    }

    /// The pipe of a gdb that runs and has inherited the write end. This process's copy of that end is closed.
    pub(crate) fn grip(self) -> DeathPipe {
        let Self { ours, theirs } = self;
        drop(theirs);
        DeathPipe { ours, tied: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::is_stopped;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn attached_process_is_stopped_when_its_gdb_dies() {
        let cat = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        for (tied, dropped) in [(true, false), (true, true), (false, false)] {
            let (mut dies, mut stops) = (Command::new("cat"), cat());
            let leash = StopOnGdbDeath::new().unwrap();
            sdm_system::hand_on(&mut dies, &leash.theirs);
            let mut dies = dies.stdin(Stdio::piped()).spawn().unwrap();
            let pid = stops.id().cast_signed();
            let mut grip = leash.grip();
            if tied {
                grip.tie(pid);
            }
            assert_eq!(grip.is_tied(), tied);
            assert!(!is_stopped(pid));
            let _grip = (!dropped).then_some(grip);
            let is_to_stop = tied && !dropped;
            dies.kill().unwrap();
            dies.wait().unwrap();
            let begin = Instant::now();
            while is_to_stop && !is_stopped(pid) && begin.elapsed() < Duration::from_secs(30) {
                std::thread::yield_now();
            }
            assert_eq!(is_stopped(pid), is_to_stop);
            stops.kill().unwrap();
            stops.wait().unwrap();
        }
    }
}
