//! The process that started this one: a check that it is still alive, and a notification when it ends.
//!
//! The kernel signals the starter's death by SIGCONT. A SIGTERM would stay pending while this process is stopped.
//! SIGCONT resumes the process in any case, so that it can end.

use std::io;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getppid};
use sdm_system::proc::{self, Stat};

/// The kernel's flag of a thread that is exiting (`PF_EXITING`).
const EXITING: u32 = 0x4;

/// The process that started this one.
#[derive(Clone, Copy, Debug)]
pub struct Starter(Pid);

impl Starter {
    /// The present parent of this process. Call this early: after the starter's end another process has adopted this
    /// one, and is its parent.
    #[must_use]
    pub fn now() -> Self {
        Self(getppid())
    }

    /// A descriptor for these signals and SIGCONT, for a process that does not end with another process. This thread
    /// does not get these signals any more.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn nobody(signals: &[Signal]) -> io::Result<SignalFd> {
        let mut mask = SigSet::from_iter(signals.iter().copied());
        mask.add(Signal::SIGCONT);
        mask.thread_block()?;
        Ok(SignalFd::with_flags(
            &mask,
            SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
        )?)
    }

    /// A descriptor that reports the starter's death as SIGCONT. Check then whether it [is gone](Self::is_gone), as
    /// other processes may send that signal too. These signals are reported as well, and this thread does not get
    /// them any more.
    ///
    /// # Errors
    /// The system has no descriptor left, or the starter has ended meanwhile.
    pub fn follow(self, signals: &[Signal]) -> io::Result<SignalFd> {
        let told = Self::nobody(signals)?;
        prctl::set_pdeathsig(Signal::SIGCONT)?;
        if getppid() != self.0 {
            return Err(io::Error::other("the parent process has ended"));
        }
        Ok(told)
    }

    /// True if the starter has ended or is about to. The kernel sends the signal at the end of the starter's first
    /// thread. Its other threads may then still count as the parent; the kernel sends another signal when they end.
    #[must_use]
    pub fn is_gone(self) -> bool {
        if getppid() != self.0 {
            return true;
        }
        match proc::of(self.0.as_raw()).stat() {
            Ok(stat) => is_ending(&stat),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

fn is_ending(stat: &Stat) -> bool {
    stat.state().has_ended() || stat.flags().is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_parent_process_is_not_reported_as_gone() {
        assert!(!Starter::now().is_gone());
        assert!(Starter(Pid::from_raw(i32::MAX)).is_gone());
    }

    #[test]
    fn zombie_or_exiting_process_counts_as_ending() {
        let stat = |state, flags| {
            let line = format!("7 (a ) b) {state} 1 7 7 0 -1 {flags} 0 0");
            Stat::parse(&line).unwrap()
        };
        assert!(!is_ending(&stat("S", 4_194_304)));
        assert!(is_ending(&stat("Z", 4_194_304)));
        assert!(is_ending(&stat("R", 4_194_308)));
    }
}
