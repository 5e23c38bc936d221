//! A stop that the kernel keeps ready for a process, for the moment when its gdb is killed.
//!
//! When a gdb dies the kernel closes its files, and then lets go of what it traced. Such a process goes on at once,
//! into the breakpoint that it stands at: nobody who only hears of gdb's death is fast enough to prevent that. So gdb holds
//! the writing end of a pipe that it knows nothing of, and the kernel is told to send the process SIGSTOP when
//! nobody holds it any more (`F_SETSIG`): that is pending before the process is let go.
//!
//! Somebody has to let it go on afterwards, and who kills everything at once (a resource manager that ends a job's
//! step) leaves nobody. So it is told only when gdb is to put breakpoints into the process: before that there is nothing to
//! run into.

use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::sys;

/// A pipe, half of which is for a gdb that is not there yet.
pub struct Leash {
    ours: OwnedFd,
    /// The end that gdb is to hold.
    pub theirs: OwnedFd,
}

/// Our end of the pipe, the other of which a gdb holds. The kernel stops the process when that gdb is gone, from
/// [`Grip::tie`] on and as long as this lives.
pub(crate) struct Grip {
    ours: OwnedFd,
    tied: bool,
}

impl Drop for Grip {
    fn drop(&mut self) {
        // Closing does not suffice: a process that was forked meanwhile, a warden for example, can have both ends too, and
        // closes them when it comes to it.
        if self.tied {
            sys::untie(&self.ours);
        }
    }
}

impl Grip {
    /// Has the kernel stop the process when its gdb is gone.
    pub(crate) fn tie(&mut self, pid: i32) {
        // Where that fails the process is stopped a little later.
        self.tied |= sys::stop_at_end_of(&self.ours, pid).is_ok();
    }

    pub(crate) fn is_tied(&self) -> bool {
        self.tied
    }
}

impl Leash {
    /// Absent where no more files can be opened: the process is stopped a little later then.
    pub fn new() -> Option<Self> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC).ok()?;
        Some(Self { ours, theirs })
    }

    /// To be called when gdb is there and holds its end.
    pub(crate) fn grip(self) -> Grip {
        let Self { ours, theirs } = self;
        drop(theirs);
        Grip { ours, tied: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::is_stopped;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_is_stopped_at_the_end_of_another_while_it_is_tied() {
        let cat = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        for (tied, dropped) in [(true, false), (true, true), (false, false)] {
            let (mut dies, mut stops) = (Command::new("cat"), cat());
            let leash = Leash::new().unwrap();
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
