//! A stop that the kernel keeps ready for a process, for the moment when its gdb is killed.
//!
//! When a gdb dies the kernel closes its files, and then lets go of what it traced. Such a process goes on at once,
//! into the breakpoint that it stands at: nobody who only hears of gdb's death is fast enough to prevent that. So gdb holds
//! the writing end of a pipe that it knows nothing of, and the kernel is told to send the process SIGSTOP when
//! nobody holds it any more (`F_SETSIG`): that is pending before the process is let go.

use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::sys;

/// A pipe, half of which is for a gdb that is not there yet.
pub(crate) struct Leash {
    ours: OwnedFd,
    pub(crate) theirs: OwnedFd,
}

/// The kernel stops the process when its gdb is gone, as long as this lives.
pub(crate) struct Tied {
    ours: OwnedFd,
}

impl Drop for Tied {
    fn drop(&mut self) {
        // Closing does not suffice: a process that was forked meanwhile, a warden for example, can have both ends too, and
        // closes them when it comes to it.
        sys::untie(&self.ours);
    }
}

impl Leash {
    /// Absent where no more files can be opened: the process is stopped a little later then.
    pub(crate) fn new() -> Option<Self> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC).ok()?;
        Some(Self { ours, theirs })
    }

    /// To be called when gdb is there and holds its end.
    pub(crate) fn tie(self, pid: i32) -> Option<Tied> {
        let Self { ours, theirs } = self;
        drop(theirs);
        sys::stop_at_end_of(&ours, pid).ok()?;
        Some(Tied { ours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::is_stopped;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_is_stopped_at_the_end_of_another_unless_it_was_untied() {
        let cat = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        for untied in [false, true] {
            let (mut dies, mut stops) = (Command::new("cat"), cat());
            let leash = Leash::new().unwrap();
            sys::hand_on(&mut dies, &leash.theirs);
            let mut dies = dies.stdin(Stdio::piped()).spawn().unwrap();
            let pid = stops.id().cast_signed();
            let tied = leash.tie(pid).unwrap();
            assert!(!is_stopped(pid));
            let _tied = (!untied).then_some(tied);
            dies.kill().unwrap();
            dies.wait().unwrap();
            let begin = Instant::now();
            while !untied && !is_stopped(pid) && begin.elapsed() < Duration::from_secs(30) {
                std::thread::yield_now();
            }
            assert_eq!(is_stopped(pid), !untied);
            stops.kill().unwrap();
            stops.wait().unwrap();
        }
    }
}
