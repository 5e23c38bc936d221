//! A program that runs without a gdb: its parent has seized it by ptrace, and receives its signals and its end.
//!
//! The program only stops briefly: at each thread creation, signal and `exec`, and at the watched functions. If a
//! debugger is needed all threads are released, and gdb attaches: see [`Tracer::let_go`]. The kernel kills the program
//! when its parent ends (`PTRACE_O_EXITKILL`), just as a program started by gdb ends with gdb.
//!
//! A wrapper can start the program. So the children of a process are traced too, as long as that process has not loaded
//! MPI.

mod causes;
mod choice;
mod events;
mod exec_calls;
mod process;
mod processes;
mod release;
mod signals;
mod start;
mod traps;

use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use sdm_debug::fold::FoldRules;

use crate::sys::{self, Resumption};
pub use events::{Cause, EndingCall, Freed, MpiSymbols, ProgramNews};
use process::rank_of;
use processes::{Processes, Scope};
pub(crate) use release::{go_on_alone, leave, stopped_threads};
use signals::{is_crash, is_stop};
use traps::{Trap, Traps};

/// The signal of a stop at a system call (`PTRACE_O_TRACESYSGOOD`).
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;

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
    /// True if the program must not be stopped before an abort or exit.
    pub(crate) no_holds: bool,
    /// The rules that recognise runtime libraries.
    pub(crate) fold: FoldRules,
}

/// A program that this process has seized.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// The traced processes, and the process that is released for an inspection.
    processes: Processes,
    /// The process that is taken for the rank's program: the one that was started, or a descendant of it.
    program: i32,
    /// Becomes readable when a thread or the program changes state.
    changes: SignalFd,
    watch: Watch,
    /// The thread that is about to ask for its rank, and is stopped until the rank is known; `None` if there is none.
    asks_rank: Option<i32>,
    /// The stopped thread that needs a debugger, and the cause; `None` if there is none.
    stands: Option<(i32, Cause)>,
    /// True if all threads are to stay stopped until [`Tracer::release`], except for inspections.
    is_held: bool,
    /// The processes whose threads are being released.
    releases: Scope,
    /// True from the release of the program for an inspection until it is seized again.
    is_loose: bool,
    /// Signals to send again once the threads are released: process, thread and signal.
    again: Vec<(i32, i32, i32)>,
    /// The exit status of the started process, while processes that it has started are being released; `None` at other
    /// times.
    status: Option<i32>,
    /// True if the process that used MPI last has ended before `MPI_Finalize`.
    before_finalize: bool,
    /// True if a process that has ended had called `MPI_Init`, or may have while it was released.
    initialized: bool,
    has_ended: bool,
    news: Vec<ProgramNews>,
}

impl Tracer {
    /// The pid of the process that was started.
    pub(crate) fn pid(&self) -> i32 {
        self.processes.top
    }

    /// The pid of the process that is taken for the program.
    pub(crate) fn program(&self) -> i32 {
        self.program
    }

    /// The descriptor to poll for reading: it reports state changes.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// True once the program has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// True if the program is released for an inspection, or if another process traces it after that.
    pub(crate) fn is_loose(&self) -> bool {
        self.is_loose
    }

    /// True once the program has ended or is no longer traced, unless it is to be seized again.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended || !self.is_loose && self.processes.threads().next().is_none()
    }

    /// Handles state changes of the traced processes; returns the news to report.
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
        self.processes.interrupt_running(|_, _| true);
        self.handle_changes()
    }

    /// Resumes the threads that `hold_all` has stopped and that are stopped for no other reason.
    pub(crate) fn release(&mut self) -> Vec<ProgramNews> {
        self.is_held = false;
        let asks_rank = self.asks_rank;
        let all = self.processes.thread_ids().into_iter();
        for id in all.filter(|id| Some(*id) != asks_rank) {
            self.go_on_or_stay(id);
        }
        self.handle_changes()
    }

    /// Kills the program, its wrapper, and all other traced processes.
    pub(crate) fn kill(&self) {
        for pid in self.processes.all.keys().filter(|_| !self.has_ended) {
            // The pids of traced processes are not reused, as this process has not waited for them.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
    }

    fn note(&mut self, id: i32, status: i32) {
        if !libc::WIFSTOPPED(status) {
            return self.ended(id, status);
        }
        let Some(pid) = self
            .processes
            .process_of(id)
            .or_else(|| self.processes.adopt(id))
        else {
            // A process that the program has started, or that shares memory with it, as a thread does.
            traps::disarm(id);
            let _ = sys::send_on(id, Resumption::Free, 0);
            return self.look_whether_free();
        };
        match status >> 16 {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                let begun = ptrace::getevent(Pid::from_raw(id)).ok();
                let begun = begun.and_then(|begun| i32::try_from(begun).ok());
                if let Some(begun) =
                    begun.filter(|begun| self.processes.process_of(*begun).is_none())
                {
                    self.processes.adopt(begun);
                }
                self.processes.stand(id, 0);
                self.go_on_or_stay(id);
            }
            libc::PTRACE_EVENT_EXEC => self.executed(pid),
            libc::PTRACE_EVENT_STOP if is_stop(signal_of(status)) => self.stopped_by_user(id),
            0 if signal_of(status) == SYSTEM_CALL => self.called(pid, id),
            0 => self.signalled(pid, id, signal_of(status)),
            _ => {
                self.processes.stand(id, 0);
                self.go_on_or_stay(id);
            }
        }
    }

    /// Handles the end of a thread, or of a process.
    fn ended(&mut self, id: i32, status: i32) {
        if let Some(pid) = self.processes.process_of(id).filter(|pid| *pid != id)
            && let Some(process) = self.processes.all.get_mut(&pid)
        {
            process.threads.remove(&id);
        }
        if let Some(process) = self.processes.all.remove(&id) {
            let (initialized, finalized) = process.traps.mpi();
            self.initialized |= initialized || self.is_loose;
            if initialized {
                // What it called while it was released is not known.
                self.before_finalize = !finalized && !self.watch.no_holds && !self.is_loose;
            }
            if id == self.processes.top {
                return self.top_ended(status);
            }
            let is_crash = libc::WIFSIGNALED(status) && is_crash(libc::WTERMSIG(status));
            if is_crash && id != self.program && !process.is_fork() {
                self.news.push(ProgramNews::ChildDied {
                    name: process.name,
                    signal: libc::WTERMSIG(status),
                });
            }
            if id == self.program {
                self.choose();
            }
        }
        self.look_whether_free();
    }

    /// Handles an `exec`: the watched addresses are determined again. The started process runs even if it cannot be
    /// watched. A descendant is no longer traced if it cannot be watched, if it traces others, or if it has another
    /// rank.
    fn executed(&mut self, pid: i32) {
        let found = Traps::of_new(pid);
        let is_watched = found.is_ok();
        let Some(process) = self.processes.all.get_mut(&pid) else {
            return;
        };
        process.executed(pid, found.unwrap_or_default());
        let is_rank =
            is_watched && !process.is_tracer && rank_of(pid) == rank_of(self.processes.top);
        self.processes.stand(pid, 0);
        match pid == self.processes.top || is_rank {
            true => self.go_on_or_stay(pid),
            false => self.let_run(pid),
        }
    }

    /// Handles a stop at one of the first system calls of a process.
    fn called(&mut self, pid: i32, id: i32) {
        if let Some(process) = self.processes.all.get_mut(&pid) {
            process.calls = process.calls.saturating_sub(1);
        }
        self.processes.stand(id, 0);
        match exec_calls::executes_privileged(id) {
            true => self.let_run(pid),
            false => self.go_on_or_stay(id),
        }
    }

    /// Handles a stop by a stop signal from outside, such as SIGSTOP: the process stays stopped until it gets SIGCONT.
    fn stopped_by_user(&mut self, id: i32) {
        self.processes.stand(id, 0);
        if self.is_released(id) {
            return self.free(id);
        }
        // The registers of a thread that waits for SIGCONT cannot be read.
        if self.stands.is_some() {
            return;
        }
        if sys::send_on(id, Resumption::StayStopped, 0).is_ok()
            && let Some(thread) = self.processes.thread(id)
        {
            thread.stood_at = None;
        }
    }

    fn signalled(&mut self, pid: i32, id: i32, signal: i32) {
        if let Some(trap) = self.trap_of(pid, id, signal) {
            self.processes.stand(id, 0);
            return self.reached(pid, id, trap);
        }
        self.processes.stand(id, signal);
        match self.cause_of(pid, id, signal) {
            Some(cause) => self.hold(pid, id, cause),
            None => self.go_on_or_stay(id),
        }
    }

    fn reached(&mut self, pid: i32, id: i32, trap: Trap) {
        let is_program = pid == self.program;
        let Some(process) = self.processes.all.get_mut(&pid) else {
            return;
        };
        match trap {
            Trap::Loaded => {
                process.traps.look_again(pid);
                if process.traps.has_mpi() {
                    self.choose();
                }
            }
            Trap::Init => {
                let had_mpi = process.traps.has_mpi();
                process.traps.init();
                if !had_mpi {
                    self.choose();
                }
            }
            Trap::Finalize => process.traps.finalize(),
            Trap::Rank => {
                process.traps.forget_rank();
                if is_program {
                    self.asks_rank = Some(id);
                    let symbols = process.traps.mpi_symbols();
                    self.news.push(ProgramNews::AsksRank(symbols));
                    return self.processes.arm_all();
                }
            }
            Trap::Abort if !self.is_meant(pid) || self.survives_abort(pid) => {}
            // It has called `MPI_Finalize` while nobody watched.
            Trap::End if self.processes.catches_up(pid, id) => {}
            Trap::Abort | Trap::End | Trap::Check => {
                let call = self.processes.call_at(pid, id);
                return self.hold(pid, id, Cause::Function(call));
            }
            Trap::Past => {}
        }
        self.go_on_or_stay(id);
        self.processes.arm_all();
    }

    /// Resumes the thread that is about to ask for its rank.
    pub(crate) fn go_on_with_rank(&mut self) -> Vec<ProgramNews> {
        if let Some(id) = self.asks_rank.take() {
            self.go_on_or_stay(id);
        }
        self.handle_changes()
    }

    /// Handles a thread that needs a debugger. The other threads are stopped too, so that their states are of the same
    /// moment.
    fn hold(&mut self, pid: i32, id: i32, cause: Cause) {
        if self.stands.is_some() {
            // The signal is sent again, and the debugger of the first thread then sees it.
            if let Cause::Signal {
                number,
                again: true,
                ..
            } = cause
            {
                self.again.push((pid, id, number));
            }
            self.processes.stand(id, 0);
            return self.go_on_or_stay(id);
        }
        self.stands = Some((id, cause));
        self.take_for_program(pid, Vec::new());
        if std::mem::take(&mut self.is_loose) {
            // The inspection is no longer waiting for the release.
            self.releases = Scope::Nothing;
        }
        if self.is_released(id) {
            return self.free(id);
        }
        for other in self
            .processes
            .thread_ids()
            .into_iter()
            .filter(|other| *other != id)
        {
            let _ = ptrace::interrupt(Pid::from_raw(other));
        }
        self.news.push(ProgramNews::Stands { thread: id, cause });
    }

    fn go_on_or_stay(&mut self, id: i32) {
        if self.is_released(id) {
            self.free(id);
        } else if self.stands.is_none() && !self.is_held {
            self.resume_thread(id);
        }
    }

    fn resume_thread(&mut self, id: i32) {
        let Some(pid) = self.processes.process_of(id) else {
            return;
        };
        let Some(process) = self.processes.all.get_mut(&pid) else {
            return;
        };
        let stood = process
            .threads
            .get_mut(&id)
            .and_then(|it| it.stood_at.take());
        let Some(signal) = stood else { return };
        // Without debug registers the program runs unwatched.
        let _ = process.prepare(id);
        let how = match process.calls {
            0 => Resumption::Run,
            _ => Resumption::ToCall,
        };
        // The end of a thread that was killed meanwhile is reported separately.
        let _ = sys::send_on(id, how, signal);
    }
}

fn signal_of(status: i32) -> i32 {
    libc::WSTOPSIG(status)
}
