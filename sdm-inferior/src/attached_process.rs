//! Data of a process to which gdb attaches: its state before the attach, and the means to restore it if gdb does not
//! detach by itself.
//!
//! When a gdb is killed, the kernel detaches it from its processes, and gdb's breakpoints stay in them: a process that
//! runs into one dies of SIGTRAP. A stop that gdb has requested and not received yet then takes effect, permanently. So
//! such a process is stopped by the kernel at gdb's end ([`StopOnGdbDeath`]), and once more as soon as that end is
//! noticed. Its code is restored. Then it is resumed, unless it was stopped before the attach.

use std::rc::Rc;

use nix::sys::signal::Signal;

use crate::breakpoint_cleanup;
use crate::process::{Identity, identity, is_stopped, is_stopping};
use crate::stop_on_gdb_death::{DeathPipe, StopOnGdbDeath};
use crate::watchdog::Watchdog;

/// A process to which a gdb attaches. Drop this once gdb has no hold on the process any more.
pub struct Held {
    who: Identity,
    /// True if the process was stopped before the attach, and must be stopped again.
    stopped: bool,
    /// Addresses of trap instructions that were in the process's code before the attach, and belong to another tool.
    foreign: Vec<u64>,
    /// True if the process is to be resumed at the end: this module has stopped it, or a SIGSTOP of gdb may stop it.
    frozen: bool,
    warden: Rc<Watchdog>,
    grip: Option<DeathPipe>,
}

impl Held {
    /// A process to which gdb will attach; `None` if the process is gone. Call this before gdb learns of the process.
    /// `woken` is true if the process is stopped for a debugger, which then resumes it.
    pub fn new(
        pid: i32,
        woken: bool,
        (gdb, leash): (i32, Option<StopOnGdbDeath>),
        warden: &Rc<Watchdog>,
    ) -> Option<Self> {
        let who = identity(pid)?;
        let stopped = !woken && is_stopped(pid);
        // If this fails, gdb cannot attach to the process either.
        let foreign = breakpoint_cleanup::breakpoints(pid).unwrap_or_default();
        // The pipe has room for thousands of messages, and the warden reads them.
        let _ = warden.hold(gdb, pid, stopped);
        Some(Self {
            who,
            stopped,
            foreign,
            frozen: false,
            warden: Rc::clone(warden),
            grip: leash.map(StopOnGdbDeath::grip),
        })
    }

    /// Ties the process to gdb, which will insert breakpoints into it: the kernel stops the process when gdb dies.
    pub fn tie(&mut self) {
        if let Some(grip) = self.grip.as_mut().filter(|grip| !grip.is_tied()) {
            grip.tie(self.who.pid());
        }
    }

    /// Cancels the stop of the process at gdb's death: gdb is about to detach from the process, and has no breakpoints
    /// in it.
    pub fn untie(&mut self) {
        self.grip.iter_mut().for_each(DeathPipe::untie);
    }

    /// Stops the process when its gdb dies or is about to be killed, before it runs into gdb's breakpoints. A process
    /// without gdb's breakpoints is not stopped: it would stay stopped if the calling process were killed too.
    pub fn catch(&mut self) {
        let is_tied = self.grip.as_ref().is_some_and(DeathPipe::is_tied);
        if is_tied
            || breakpoint_cleanup::breakpoints(self.who.pid())
                .is_ok_and(|found| found != self.foreign)
        {
            self.who.signal(Signal::SIGSTOP);
            self.frozen = true;
        }
    }

    /// Removes gdb's breakpoints from the process. Returns a message for the user; `None` if there is nothing to say.
    pub fn restore(&self) -> Option<String> {
        let pid = self.who.pid();
        match breakpoint_cleanup::remove_breakpoints(pid, &self.foreign) {
            Ok(removed) => match removed.len() {
                0 => None,
                1 => Some(format!(
                    "process {pid}: removed a breakpoint that gdb had left in it"
                )),
                count => Some(format!(
                    "process {pid}: removed {count} breakpoints that gdb had left in it"
                )),
            },
            Err(_) if !self.who.is_alive() => None,
            Err(error) => Some(format!(
                "process {pid}: breakpoints of gdb may remain in it: {error}"
            )),
        }
    }

    /// Removes the breakpoints that gdb has inserted, without gdb's knowledge. When gdb stops the process, it restores
    /// the same bytes.
    pub fn clear(&self) {
        // The process may have ended.
        let _ = breakpoint_cleanup::remove_breakpoints(self.who.pid(), &self.foreign);
    }

    /// Records that gdb has ended, so that drop resumes the process if needed. A SIGSTOP of gdb may have arrived after
    /// gdb's detach. If gdb was killed, a SIGSTOP may still be pending.
    pub fn wake(&mut self, was_killed: bool) {
        self.frozen |= was_killed || is_stopping(self.who.pid());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.untie();
        if self.frozen && !self.stopped {
            self.who.signal(Signal::SIGCONT);
        }
        let _ = self.warden.let_go(self.who.pid());
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use nix::sys::ptrace;
    use nix::sys::signal::kill;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn stop_signal_pending_under_ptrace_is_recognized() {
        let mut child = Command::new("sleep");
        child
            .arg("1000")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(!is_stopping(pid.as_raw()));
        ptrace::attach(pid).unwrap();
        // A process that is about to execute another program stops for that first.
        while waitpid(pid, None).unwrap() != WaitStatus::Stopped(pid, Signal::SIGSTOP) {
            ptrace::cont(pid, None).unwrap();
        }
        assert!(!is_stopping(pid.as_raw()), "its tracer holds it");
        kill(pid, Signal::SIGSTOP).unwrap();
        assert!(is_stopping(pid.as_raw()) && !is_stopped(pid.as_raw()));
        ptrace::detach(pid, None).unwrap();
        // For a moment after the signal was sent the kernel does not show it.
        while !is_stopped(pid.as_raw()) {
            std::thread::yield_now();
        }
        assert!(is_stopping(pid.as_raw()));
        kill(pid, Signal::SIGCONT).unwrap();
        assert!(!is_stopping(pid.as_raw()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
