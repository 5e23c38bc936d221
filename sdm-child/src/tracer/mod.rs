//! A program that runs without a gdb: its parent has seized it by ptrace, and receives its signals and its end.
//!
//! The program only stops briefly at each thread creation and each signal. If a debugger is needed all threads are
//! released, and gdb attaches: see [`Tracer::let_go`]. The kernel kills the program when its parent ends
//! (`PTRACE_O_EXITKILL`), just as a program started by gdb ends with gdb.

mod events;
mod signals;
mod start;
mod traps;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use sdm_debug::fold::FoldRules;
use sdm_system::proc::{self, Status};

use crate::may_have_own_handlers;
use crate::sys::{self, Resumption};
pub use events::{Cause, Freed, MpiSymbols, ProgramNews};
use signals::{is_of_instruction, is_stop, needs_debugger};
use traps::{Trap, Traps};

/// Maximum number of times in a row that a process's threads are listed.
const LISTINGS_MAX: usize = 16;
/// The `si_code` of a SIGTRAP from a debug register.
const TRAP_HWBKPT: i32 = 4;

/// The reason why a program does not run without a gdb.
#[derive(Debug)]
pub(crate) enum SeizeRefusal {
    /// The program needs a gdb from its beginning, and has not begun.
    NeedsGdb,
    /// The program cannot be run, for this reason.
    CannotRun(String),
}

/// The settings for watching a program.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// True if the program is not to be stopped before an abort or exit.
    pub(crate) no_holds: bool,
    /// The rules that recognise runtime libraries.
    pub(crate) fold: FoldRules,
}

/// A program that this process has seized.
#[derive(Debug)]
pub(crate) struct Tracer {
    pid: i32,
    threads: BTreeMap<i32, Thread>,
    /// Readable if a thread or the program has changed state.
    changes: SignalFd,
    traps: Traps,
    watch: Watch,
    /// The thread that asks for its rank, and is stopped until that is known.
    asks_rank: Option<i32>,
    /// True once the program was found to possibly have signal handlers of its own.
    own_handlers: bool,
    /// The stopped thread, and the cause.
    stands: Option<(i32, Cause)>,
    /// True if all threads are to stay stopped until [`Tracer::release`], except for inspections.
    is_held: bool,
    /// True while all threads are being released.
    is_letting_go: bool,
    /// True if the threads are, or were, released for an inspection: afterwards the program is seized again.
    is_loose: bool,
    /// Signals to send again to other threads, once the program is released.
    again: Vec<(i32, i32)>,
    has_ended: bool,
    news: Vec<ProgramNews>,
}

/// A thread of the program.
#[derive(Debug, Default)]
struct Thread {
    /// The signal to deliver on resume; `None` while it runs.
    stood_at: Option<i32>,
    /// The version of the traps in the thread's debug registers, as counted by `Traps::version`.
    armed: u32,
}

impl Tracer {
    /// The program's pid.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// The descriptor to poll for reading.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// True once the program has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// True once the program has ended or is no longer traced, unless it is to be seized again.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended || self.threads.is_empty() && !self.is_loose
    }

    /// Handles state changes; returns the news to report.
    pub(crate) fn handle_changes(&mut self) -> Vec<ProgramNews> {
        while let Ok(Some(_)) = self.changes.read_signal() {}
        while !self.is_over() {
            match sys::next_change(-1, false) {
                Ok(Some((id, status))) => self.note(id, status),
                Ok(None) | Err(_) => break,
            }
        }
        std::mem::take(&mut self.news)
    }

    /// Stops all threads.
    pub(crate) fn hold_all(&mut self) -> Vec<ProgramNews> {
        self.is_held = true;
        self.interrupt_running();
        self.handle_changes()
    }

    /// Resumes the threads that are stopped for no other reason.
    pub(crate) fn release(&mut self) -> Vec<ProgramNews> {
        self.is_held = false;
        let asks_rank = self.asks_rank;
        let all: Vec<i32> = self.threads.keys().copied().collect();
        for id in all.into_iter().filter(|id| Some(*id) != asks_rank) {
            self.go_on_or_stay(id);
        }
        self.handle_changes()
    }

    fn interrupt_running(&self) {
        let running = self.threads.iter().filter(|(_, it)| it.stood_at.is_none());
        for (id, _) in running {
            let _ = ptrace::interrupt(Pid::from_raw(*id));
        }
    }

    /// Releases all threads for a debugger that then attaches: SIGSTOP stops the process in place of the present
    /// cause.
    pub(crate) fn let_go(&mut self) -> Vec<ProgramNews> {
        self.is_loose = false;
        self.is_held = false;
        self.begin_letting_go()
    }

    /// Releases the program for an inspection by another process: until [`Tracer::seize_again`] only its end is
    /// noticed. A program that waits for a debugger is not released.
    pub(crate) fn let_look(&mut self) -> Vec<ProgramNews> {
        if self.stands.is_some() || self.is_letting_go {
            return Vec::new();
        }
        self.is_loose = true;
        self.begin_letting_go()
    }

    /// Seizes the program again after an inspection. If another process traces the program by then it is left alone.
    pub(crate) fn seize_again(&mut self) -> Vec<ProgramNews> {
        if !self.is_loose || self.has_ended {
            return Vec::new();
        }
        self.is_letting_go = false;
        for _ in 0..LISTINGS_MAX {
            if !self.seize_new() {
                break;
            }
        }
        self.is_loose = self.threads.is_empty();
        // The threads are stopped to set the addresses of the traps, or because all are held again.
        self.interrupt_running();
        self.handle_changes()
    }

    /// Seizes the threads that are not traced yet; false if there were none.
    fn seize_new(&mut self) -> bool {
        let threads = proc::of(self.pid).thread_ids();
        let mut found = false;
        for id in threads.into_iter().flatten() {
            let is_new = !self.threads.contains_key(&id);
            if is_new && ptrace::seize(Pid::from_raw(id), options()).is_ok() {
                self.threads.insert(id, Thread::default());
                found = true;
            }
        }
        found
    }

    fn begin_letting_go(&mut self) -> Vec<ProgramNews> {
        self.is_letting_go = true;
        if let Some((id, _)) = self.stands {
            self.free(id);
        }
        let rest: Vec<i32> = self.threads.keys().copied().collect();
        for id in rest {
            self.free_or_interrupt(id);
        }
        self.look_whether_free();
        self.handle_changes()
    }

    /// Kills the program.
    pub(crate) fn kill(&self) {
        if !self.has_ended {
            // This process has not reaped it, so the pid has not been reused.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }

    fn note(&mut self, id: i32, status: i32) {
        if !libc::WIFSTOPPED(status) {
            self.threads.remove(&id);
            if id == self.pid {
                self.has_ended = true;
                self.threads.clear();
                let (initialized, finalized) = self.traps.mpi();
                let before_finalize = initialized && !finalized && !self.watch.no_holds;
                self.news.push(ProgramNews::Ended {
                    status,
                    before_finalize,
                });
            }
            return self.look_whether_free();
        }
        let is_ours = id == self.pid || self.has_thread(id);
        match status >> 16 {
            _ if !is_ours => {
                // A process that shares memory with the program, as a thread does, but is not one of its threads.
                self.threads.remove(&id);
                traps::disarm(id);
                let _ = sys::send_on(id, Resumption::Free, 0);
                self.look_whether_free();
            }
            libc::PTRACE_EVENT_CLONE => {
                self.begun_by(id);
                self.stand(id, 0);
                self.go_on_or_stay(id);
            }
            libc::PTRACE_EVENT_EXEC => self.executed(id),
            libc::PTRACE_EVENT_STOP if is_stop(signal_of(status)) => self.stopped_by_user(id),
            0 => self.signalled(id, signal_of(status)),
            _ => {
                self.stand(id, 0);
                self.go_on_or_stay(id);
            }
        }
    }

    fn has_thread(&self, id: i32) -> bool {
        proc::of(self.pid).thread(id).stat().is_ok()
    }

    /// Handles a new thread, which is traced from its first instruction. Its creator or the thread itself reports it,
    /// in either order.
    fn begun_by(&mut self, id: i32) {
        let begun = ptrace::getevent(Pid::from_raw(id)).ok();
        let begun = begun.and_then(|begun| i32::try_from(begun).ok());
        if let Some(begun) = begun.filter(|begun| self.has_thread(*begun)) {
            self.threads.entry(begun).or_default();
        }
    }

    /// Records that a thread is stopped, with the signal to deliver when it resumes.
    fn stand(&mut self, id: i32, signal: i32) {
        self.threads.entry(id).or_default().stood_at = Some(signal);
    }

    /// Handles an `exec`: the watched addresses are determined anew. A program that cannot be watched runs all the
    /// same.
    fn executed(&mut self, id: i32) {
        self.threads.retain(|known, _| *known == id);
        let traps = Traps::of_new(self.pid).unwrap_or_default();
        self.traps = traps.after(&self.traps);
        self.stand(id, 0);
        self.go_on_or_stay(id);
    }

    /// Handles a stop by a SIGSTOP from outside: the process stays stopped until it gets SIGCONT.
    fn stopped_by_user(&mut self, id: i32) {
        self.stand(id, 0);
        if self.is_letting_go {
            return self.free(id);
        }
        if sys::send_on(id, Resumption::StayStopped, 0).is_ok() {
            self.threads.entry(id).or_default().stood_at = None;
        }
    }

    fn signalled(&mut self, id: i32, signal: i32) {
        if let Some(trap) = self.trap_of(id, signal) {
            self.stand(id, 0);
            return self.reached(id, trap);
        }
        self.stand(id, signal);
        match self.cause_of(id, signal) {
            Some(cause) => self.hold(id, cause),
            None => self.go_on_or_stay(id),
        }
    }

    /// The trap at which a thread with a SIGTRAP has stopped; `None` if a debug register did not raise the signal.
    fn trap_of(&self, id: i32, signal: i32) -> Option<Trap> {
        if signal != libc::SIGTRAP || self.code(id)? != TRAP_HWBKPT {
            return None;
        }
        // A trap that was wanted until recently does not matter any more.
        let registers = ptrace::getregs(Pid::from_raw(id)).ok()?;
        Some(self.traps.at(registers.rip).unwrap_or(Trap::Past))
    }

    fn code(&self, id: i32) -> Option<i32> {
        Some(ptrace::getsiginfo(Pid::from_raw(id)).ok()?.si_code)
    }

    /// The cause, if a signal needs a debugger; `None` if the program handles it.
    fn cause_of(&mut self, id: i32, signal: i32) -> Option<Cause> {
        if !needs_debugger(signal) {
            return None;
        }
        let status = proc::of(self.pid).status().ok()?;
        if status.signals("SigIgn").contains(&signal) || self.is_left_to_program(&status, signal) {
            return None;
        }
        let is_raised = self.code(id).is_some_and(|code| code > 0);
        let again = !(is_raised && is_of_instruction(signal));
        Some(Cause::Signal {
            number: signal,
            again,
        })
    }

    /// True if a handler of the program's own takes the signal.
    fn is_left_to_program(&mut self, status: &Status, signal: i32) -> bool {
        if !status.signals("SigCgt").contains(&signal) {
            return false;
        }
        // A program that depends on its handler receives the signal thousands of times.
        if !self.own_handlers {
            let process = proc::of(self.pid);
            self.own_handlers = may_have_own_handlers(&process, &self.watch.fold);
        }
        self.own_handlers
    }

    /// True if the program handles the SIGABRT of `abort`. It may continue; if its handler returns, the program ends.
    fn survives_abort(&mut self) -> bool {
        let status = proc::of(self.pid).status();
        status.is_ok_and(|status| self.is_left_to_program(&status, libc::SIGABRT))
    }

    fn reached(&mut self, id: i32, trap: Trap) {
        match trap {
            Trap::Loaded => self.traps.look_again(self.pid),
            Trap::Init => self.traps.init(),
            Trap::Finalize => self.traps.finalize(),
            Trap::Rank => {
                self.traps.forget_rank();
                self.asks_rank = Some(id);
                self.news
                    .push(ProgramNews::AsksRank(self.traps.mpi_symbols()));
                return self.arm_all();
            }
            Trap::Abort if self.survives_abort() => {}
            Trap::Abort | Trap::End => return self.hold(id, Cause::Function),
            Trap::Past => {}
        }
        self.go_on_or_stay(id);
        self.arm_all();
    }

    /// Resumes the thread that asks for its rank.
    pub(crate) fn go_on_with_rank(&mut self) -> Vec<ProgramNews> {
        if let Some(id) = self.asks_rank.take() {
            self.go_on_or_stay(id);
        }
        self.handle_changes()
    }

    /// Handles a thread that needs a debugger: the others are stopped too, so that their states are of the same
    /// moment.
    fn hold(&mut self, id: i32, cause: Cause) {
        if self.stands.is_some() {
            // The signal is sent again, and the debugger of the first thread then sees it.
            if let Cause::Signal {
                number,
                again: true,
            } = cause
            {
                self.again.push((id, number));
            }
            self.stand(id, 0);
            return self.go_on_or_stay(id);
        }
        self.stands = Some((id, cause));
        if std::mem::take(&mut self.is_loose) {
            // The inspection is no longer waiting for the release.
            self.is_letting_go = false;
        }
        if self.is_letting_go {
            return self.free(id);
        }
        for other in self.threads.keys().filter(|other| **other != id) {
            let _ = ptrace::interrupt(Pid::from_raw(*other));
        }
        self.news.push(ProgramNews::Stands);
    }

    fn go_on_or_stay(&mut self, id: i32) {
        if self.is_letting_go {
            self.free(id);
        } else if self.stands.is_none() && !self.is_held {
            self.resume_thread(id);
        }
    }

    fn resume_thread(&mut self, id: i32) {
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        let Some(signal) = thread.stood_at.take() else {
            return;
        };
        if thread.armed != self.traps.version && self.traps.arm(id).is_ok() {
            thread.armed = self.traps.version;
        }
        // The end of a thread that was killed meanwhile is reported separately.
        let _ = sys::send_on(id, Resumption::Run, signal);
    }

    /// Interrupts the running threads whose debug registers hold old addresses. They get the present ones when they are
    /// resumed.
    fn arm_all(&self) {
        let old = self
            .threads
            .iter()
            .filter(|(_, it)| it.armed != self.traps.version);
        for (id, _) in old.filter(|(_, it)| it.stood_at.is_none()) {
            let _ = ptrace::interrupt(Pid::from_raw(*id));
        }
    }

    fn free_or_interrupt(&mut self, id: i32) {
        match self.threads.get(&id) {
            Some(thread) if thread.stood_at.is_some() => self.free(id),
            Some(_) => {
                let _ = ptrace::interrupt(Pid::from_raw(id));
            }
            None => {}
        }
    }

    /// Detaches from a stopped thread, which then runs on. The thread that needs a debugger gets SIGSTOP instead of its
    /// signal.
    fn free(&mut self, id: i32) {
        let Some(thread) = self.threads.remove(&id) else {
            return;
        };
        let signal = match self.stands {
            Some((stood, _)) if stood == id => libc::SIGSTOP,
            _ => thread.stood_at.unwrap_or(0),
        };
        traps::disarm(id);
        let _ = sys::send_on(id, Resumption::Free, signal);
        self.look_whether_free();
    }

    fn look_whether_free(&mut self) {
        if !self.is_letting_go || !self.threads.is_empty() || self.has_ended {
            return;
        }
        self.is_letting_go = false;
        if self.is_loose {
            return self.news.push(ProgramNews::Loose);
        }
        for (id, signal) in self.again.drain(..) {
            sys::signal_thread(self.pid, id, signal);
        }
        let (initialized, finalized) = self.traps.mpi();
        self.news.push(ProgramNews::Free(Freed {
            stood: self.stands,
            initialized,
            finalized,
        }));
    }
}

/// The `ptrace` options for a program.
fn options() -> Options {
    Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL
}

fn signal_of(status: i32) -> i32 {
    libc::WSTOPSIG(status)
}
