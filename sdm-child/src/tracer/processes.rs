//! The traced processes of a rank.

use std::collections::BTreeMap;

use nix::sys::ptrace;
use nix::unistd::Pid;
use sdm_system::proc;
use sdm_system::rank_program::Candidate;

use super::events::EndingCall;
use super::process::{Process, Thread, options};

/// Maximum number of times in a row that the threads of a process are listed.
const LISTINGS_MAX: usize = 16;

/// The processes whose threads are being released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scope {
    #[default]
    Nothing,
    /// The program, for an inspection.
    Program,
    All,
}

/// The traced processes, and the process that is released for an inspection.
#[derive(Debug)]
pub(super) struct Processes {
    /// The process that was started. Its end is the end of the rank.
    pub(super) top: i32,
    pub(super) all: BTreeMap<i32, Process>,
}

impl Processes {
    /// Learns whether the process has called `MPI_Init` or `MPI_Finalize` while it was released. If it has, returns
    /// true: the trap at which it has stopped may then mean something else.
    pub(super) fn catches_up(&mut self, pid: i32, id: i32) -> bool {
        let process = self.all.get_mut(&pid);
        process.is_some_and(|it| it.traps.catch_up(id))
    }

    /// The call that a thread is about to make at a trap.
    pub(super) fn call_at(&self, pid: i32, id: i32) -> EndingCall {
        let traps = self.all.get(&pid).map(|it| &it.traps);
        match (traps, ptrace::getregs(Pid::from_raw(id))) {
            (Some(traps), Ok(registers)) => traps.call_at(&registers),
            _ => EndingCall::Abort,
        }
    }

    /// The traced threads, each with its process.
    pub(super) fn threads(&self) -> impl Iterator<Item = (i32, i32)> {
        let all = self.all.iter();
        all.flat_map(|(pid, it)| it.threads.keys().map(|id| (*pid, *id)))
    }

    pub(super) fn thread_ids(&self) -> Vec<i32> {
        self.threads().map(|(_, id)| id).collect()
    }

    /// The process of a traced thread; `None` if the thread is not traced.
    pub(super) fn process_of(&self, id: i32) -> Option<i32> {
        self.threads()
            .find(|(_, known)| *known == id)
            .map(|(pid, _)| pid)
    }

    /// Interrupts the running threads for which `which` is true.
    pub(super) fn interrupt_running(&self, which: impl Fn(&Process, &Thread) -> bool) {
        for process in self.all.values() {
            let threads = process.threads.iter();
            let running = threads.filter(|(_, it)| it.stood_at.is_none() && which(process, it));
            for (id, _) in running {
                let _ = ptrace::interrupt(Pid::from_raw(*id));
            }
        }
    }

    /// Handles a new thread or process, which is traced from its first instruction. Its creator and the new thread
    /// itself report it, in either order. Returns its process; `None` if it must not be traced.
    pub(super) fn adopt(&mut self, id: i32) -> Option<i32> {
        let status = proc::of(id).status().ok()?;
        let pid = status.number("Tgid")?;
        if pid != id {
            let process = self.all.get_mut(&pid)?;
            process.threads.entry(id).or_default();
            return Some(pid);
        }
        let parent = status.number("PPid").unwrap_or(self.top);
        // Its parent may have ended.
        let parent = match self.all.contains_key(&parent) {
            true => parent,
            false => self.top,
        };
        let process = self.all.get(&parent).filter(|it| it.leads())?;
        let process = process.forked(id, parent);
        self.all.insert(id, process);
        Some(id)
    }

    pub(super) fn thread(&mut self, id: i32) -> Option<&mut Thread> {
        let pid = self.process_of(id)?;
        self.all.get_mut(&pid)?.threads.get_mut(&id)
    }

    /// Records that a thread is stopped, with the signal to deliver when it resumes.
    pub(super) fn stand(&mut self, id: i32, signal: i32) {
        if let Some(thread) = self.thread(id) {
            thread.stood_at = Some(signal);
        }
    }

    /// Interrupts the running threads whose debug registers hold old addresses. They get the present addresses when
    /// they are resumed.
    pub(super) fn arm_all(&self) {
        self.interrupt_running(|process, thread| thread.armed != process.traps.version);
    }

    /// Seizes all threads of a process.
    pub(super) fn seize_all(&mut self, pid: i32) {
        for _ in 0..LISTINGS_MAX {
            if !self.seize_new(pid) {
                break;
            }
        }
    }

    /// Seizes the threads of a process that are not traced yet; false if there were none.
    pub(super) fn seize_new(&mut self, pid: i32) -> bool {
        let Some(process) = self.all.get_mut(&pid) else {
            return false;
        };
        let options = options(process.leads());
        let mut found = false;
        for id in proc::of(pid).thread_ids().into_iter().flatten() {
            let is_new = !process.threads.contains_key(&id);
            if is_new && ptrace::seize(Pid::from_raw(id), options).is_ok() {
                process.threads.insert(id, Thread::default());
                found = true;
            }
        }
        found
    }

    pub(super) fn has_mpi(&self, pid: i32) -> bool {
        let process = self.all.get(&pid);
        process.is_some_and(|it| it.traps.has_mpi())
    }

    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let used = |pid| proc::of(pid).stat().ok()?.cpu_ticks();
        let candidate = |(&pid, process): (&i32, &Process)| Candidate {
            pid,
            parent: process.parent,
            depth: self.depth(pid),
            has_mpi: process.traps.has_mpi(),
            used_ticks: used(pid).unwrap_or(0),
            // A process that has loaded MPI itself is a program of its own.
            is_fork: process.is_fork() && !process.traps.has_mpi(),
        };
        self.all.iter().map(candidate).collect()
    }

    /// Number of levels at which a process is below the started one.
    pub(super) fn depth(&self, pid: i32) -> u64 {
        let parent = |pid: i32| self.all.get(&pid).map(|it| it.parent);
        let mut depth = 0;
        let mut next = pid;
        while next != self.top && depth < self.all.len() as u64 {
            depth += 1;
            next = parent(next).unwrap_or(self.top);
        }
        depth
    }
}
