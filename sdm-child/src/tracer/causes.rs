//! The causes for which a program needs a debugger: signals that it does not handle, and traps.

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use sdm_system::proc::{self, Status};

use super::signals::{is_of_instruction, needs_debugger};
use super::traps::Trap;
use super::{Cause, Tracer};
use crate::{may_have_own_handlers, sys};

/// The `si_code` of a SIGTRAP from a debug register.
const TRAP_HWBKPT: i32 = 4;

impl Tracer {
    /// The trap at which a thread with a SIGTRAP has stopped; `None` if a debug register did not raise the signal.
    pub(super) fn trap_of(&self, pid: i32, id: i32, signal: i32) -> Option<Trap> {
        if signal != libc::SIGTRAP || code(id)? != TRAP_HWBKPT {
            return None;
        }
        // A trap that was wanted until recently does not matter any more.
        let registers = ptrace::getregs(Pid::from_raw(id)).ok()?;
        let traps = &self.processes.all.get(&pid)?.traps;
        Some(traps.at(registers.rip).unwrap_or(Trap::Past))
    }

    /// The cause for which a thread stopped by a signal needs a debugger; `None` if it needs none.
    pub(super) fn cause_of(&mut self, pid: i32, id: i32, signal: i32) -> Option<Cause> {
        if !needs_debugger(signal) {
            return None;
        }
        let status = proc::of(pid).status().ok()?;
        if status.signals("SigIgn").contains(&signal)
            || self.is_left_to_program(pid, &status, signal)
            || !self.is_meant(pid)
        {
            return None;
        }
        let is_raised = code(id).is_some_and(|code| code > 0);
        let again = !(is_raised && is_of_instruction(signal));
        let address = sys::fault_address(id).filter(|_| !again);
        Some(Cause::Signal {
            number: signal,
            again,
            address,
        })
    }

    /// True if the program's own handler takes the signal.
    fn is_left_to_program(&mut self, pid: i32, status: &Status, signal: i32) -> bool {
        if !status.signals("SigCgt").contains(&signal) {
            return false;
        }
        let Some(process) = self.processes.all.get_mut(&pid) else {
            return true;
        };
        // A program that depends on its handler receives the signal thousands of times.
        if !process.own_handlers {
            process.own_handlers = may_have_own_handlers(&proc::of(pid), &self.watch.fold);
        }
        process.own_handlers
    }

    /// True if the program has a handler for the SIGABRT of `abort`, in which it may continue. If its handler returns,
    /// the program ends.
    pub(super) fn survives_abort(&mut self, pid: i32) -> bool {
        let status = proc::of(pid).status();
        status.is_ok_and(|status| self.is_left_to_program(pid, &status, libc::SIGABRT))
    }
}

/// The `si_code` of the signal at which a thread is stopped; `None` if the thread has ended.
fn code(id: i32) -> Option<i32> {
    Some(ptrace::getsiginfo(Pid::from_raw(id)).ok()?.si_code)
}
