//! Processes by their pid and start time, as pids are reused, and whether they are stopped.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::proc::{self, State};
use sdm_system::signal_process;

/// One process, distinguished by its start time from a later process with the same pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: i32,
    /// Start time, in clock ticks since boot.
    began: u64,
}

/// The identity of the process that has this pid now; `None` if it has ended.
pub fn identity(pid: i32) -> Option<Identity> {
    let stat = proc::of(pid).stat().ok()?;
    let began = stat.began_ticks()?;
    (!stat.state().has_ended()).then_some(Identity { pid, began })
}

/// Resumes a process if a signal has stopped it. The process must be an unreaped child of this process.
pub fn go_on(pid: i32) {
    if is_stopped(pid) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
    }
}

/// True if a signal has stopped the process; false if a tracer has.
pub(crate) fn is_stopped(pid: i32) -> bool {
    proc::of(pid).state().is_some_and(State::is_stopped)
}

/// True if a signal has stopped a thread of the process, or will stop one. A thread without a processor stops long
/// after the signal was sent, or after another thread has taken the signal.
pub(crate) fn is_stopping(pid: i32) -> bool {
    let process = proc::of(pid);
    let is_sent = |status: &proc::Status| {
        let mut pending = ["SigPnd", "ShdPnd"].into_iter();
        pending.any(|field| status.signals(field).contains(&(Signal::SIGSTOP as i32)))
    };
    let mut threads = process.thread_ids().into_iter().flatten();
    threads.any(|id| {
        let thread = process.thread(id);
        let status = thread.status();
        thread.state().is_some_and(State::is_stopped) || status.as_ref().is_ok_and(is_sent)
    })
}

/// Kills the child processes of a gdb that was killed at its start. gdb tests tracing on a child of its own, which
/// would stay stopped for ever. Every gdb is a session of its own.
pub fn end_trials_of(gdb: i32) {
    for pid in proc::pids().into_iter().flatten() {
        let stat = proc::of(pid).stat();
        let is_its = |it: proc::Stat| it.session() == Some(gdb) && it.name == "gdb";
        if pid != gdb && stat.is_ok_and(is_its) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

impl Identity {
    /// True while the process runs or is stopped; false once it has ended, even if another process has its pid.
    pub fn is_alive(&self) -> bool {
        identity(self.pid).is_some_and(|now| now == *self)
    }

    /// The pid of the process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Kills the process, unless it has ended.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Sends a signal to the process, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        signal_process(self.pid, signal, || self.is_alive());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_identity_is_alive_until_exit() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let who = identity(child.id().cast_signed()).unwrap();
        assert!(who.is_alive());
        who.kill();
        child.wait().unwrap();
        assert!(!who.is_alive());
        assert_eq!(identity(-1), None);
    }
}
