//! The release of traced processes: for a gdb, for an inspection, and at the end.

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use sdm_system::look_socket::StoppedThread;
use sdm_system::proc;

use super::process::{Process, Thread};
use super::processes::Scope;
use super::traps::{self, Traps};
use super::{Freed, ProgramNews, Tracer};
use crate::sys::{self, Resumption};

/// Resumes a program that is stopped for a debugger that does not come.
pub(crate) fn go_on_alone(tracer: &mut Tracer) -> Vec<ProgramNews> {
    tracer.stands = None;
    tracer.release()
}

/// Releases all threads for good. A program that is stopped for a debugger receives its signal.
pub(crate) fn leave(tracer: &mut Tracer) -> Vec<ProgramNews> {
    tracer.stands = None;
    tracer.let_go()
}

/// All traced threads with their registers, if the program is stopped for a debugger; `None` if it is not, or while a
/// thread runs.
pub(crate) fn stopped_threads(tracer: &Tracer) -> Option<Vec<StoppedThread>> {
    tracer.stands?;
    let all = tracer.processes.all.values().flat_map(|it| &it.threads);
    let registers = |(id, thread): (&i32, &Thread)| {
        thread.stood_at?;
        Some((*id, sdm_system::registers(*id).ok()??.to_vec()))
    };
    all.map(registers).collect()
}

impl Tracer {
    /// Releases all threads for a debugger that attaches next. SIGSTOP stops the process in place of the present cause.
    pub(crate) fn let_go(&mut self) -> Vec<ProgramNews> {
        self.is_loose = false;
        self.is_held = false;
        self.begin_release(Scope::All);
        self.handle_changes()
    }

    /// Releases the program for an inspection by another process. Until [`Tracer::seize_again`] only the program's end
    /// is noticed. A program that waits for a debugger is not released.
    pub(crate) fn let_look(&mut self) -> Vec<ProgramNews> {
        if self.stands.is_some() || self.releases != Scope::Nothing {
            return Vec::new();
        }
        if !self.is_loose {
            self.choose();
        }
        self.is_loose = true;
        self.begin_release(Scope::Program);
        self.handle_changes()
    }

    /// Seizes the program again after an inspection. If another process traces the program by then, it is left alone.
    pub(crate) fn seize_again(&mut self) -> Vec<ProgramNews> {
        if !self.is_loose || self.has_ended || self.status.is_some() {
            return Vec::new();
        }
        self.releases = Scope::Nothing;
        let pid = self.program;
        if let Some(process) = self.processes.all.get_mut(&pid) {
            process.traps.have_missed_calls();
        }
        self.processes.seize_all(pid);
        let process = self.processes.all.get(&pid);
        self.is_loose = process.is_some_and(|it| it.threads.is_empty());
        if self.is_loose && pid != self.processes.top && proc::of(pid).stat().is_err() {
            // Its end was reported to its parent only.
            self.processes.all.remove(&pid);
            self.is_loose = false;
            self.choose();
        } else if !self.is_loose {
            self.seize_children(pid);
        }
        // The threads are stopped to set the addresses of the traps, or because all are held again.
        self.processes.interrupt_running(|_, _| true);
        self.handle_changes()
    }

    /// Seizes the processes that a wrapper has started during an inspection.
    fn seize_children(&mut self, pid: i32) {
        let Some(process) = self.processes.all.get(&pid).filter(|it| it.leads()) else {
            return;
        };
        let threads = process.threads.keys();
        let children = threads.flat_map(|id| proc::of(pid).children_of_thread(*id));
        let children: Vec<i32> = children.flatten().collect();
        for child in children {
            if self.processes.all.contains_key(&child) {
                continue;
            }
            let mut traps = Traps::of_new(child).unwrap_or_default();
            traps.look_again(child);
            let mut process = Process::new(child, traps);
            process.threads.clear();
            process.parent = pid;
            self.processes.all.insert(child, process);
            self.processes.seize_all(child);
        }
        self.processes
            .all
            .retain(|known, it| *known == pid || !it.threads.is_empty());
    }

    /// Releases a stopped process of one thread that must not be traced.
    pub(super) fn let_run(&mut self, pid: i32) {
        self.free(pid);
        self.processes.all.remove(&pid);
        if self.program == pid {
            self.choose();
        }
    }

    /// Handles the end of the started process. The other processes run on, as they would without a debugger.
    pub(super) fn top_ended(&mut self, status: i32) {
        self.status = Some(status);
        self.stands = None;
        self.is_held = false;
        self.is_loose = false;
        self.begin_release(Scope::All);
    }

    fn begin_release(&mut self, scope: Scope) {
        self.releases = scope;
        if let Some((id, _)) = self.stands {
            self.free(id);
        }
        let all = self.processes.thread_ids().into_iter();
        let all: Vec<i32> = all.filter(|id| self.is_released(*id)).collect();
        for id in all {
            match self.processes.thread(id).map(|thread| thread.stood_at) {
                Some(Some(_)) => self.free(id),
                Some(None) => {
                    let _ = ptrace::interrupt(Pid::from_raw(id));
                }
                None => {}
            }
        }
        self.look_whether_free();
    }

    /// True for a thread that must be released when it stops.
    pub(super) fn is_released(&self, id: i32) -> bool {
        match self.releases {
            Scope::Nothing => false,
            Scope::Program => self.processes.process_of(id) == Some(self.program),
            Scope::All => true,
        }
    }

    /// Detaches from a stopped thread, which then runs on. The thread that needs a debugger gets SIGSTOP instead of its
    /// signal.
    pub(super) fn free(&mut self, id: i32) {
        let pid = self.processes.process_of(id);
        let process = pid.and_then(|pid| self.processes.all.get_mut(&pid));
        let Some(thread) = process.and_then(|it| it.threads.remove(&id)) else {
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

    pub(super) fn look_whether_free(&mut self) {
        let is_left = match self.releases {
            Scope::Nothing => return,
            Scope::Program => self.processes.threads().any(|(pid, _)| pid == self.program),
            Scope::All => self.processes.threads().next().is_some(),
        };
        if is_left || self.has_ended {
            return;
        }
        self.releases = Scope::Nothing;
        if let Some(status) = self.status {
            self.has_ended = true;
            return self.news.push(ProgramNews::Ended {
                status,
                before_finalize: self.before_finalize,
                initialized: self.initialized,
            });
        }
        if self.is_loose {
            return self.news.push(ProgramNews::Loose);
        }
        for (pid, id, signal) in self.again.drain(..) {
            sys::signal_thread(pid, id, signal);
        }
        let program = self.processes.all.get(&self.program);
        let (initialized, finalized) = program.map_or((false, false), |it| it.traps.mpi());
        self.news.push(ProgramNews::Free(Freed {
            stood: self.stands,
            initialized,
            finalized,
        }));
    }
}
