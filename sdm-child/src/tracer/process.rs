//! A traced process of a rank: the one that was started, or a descendant of it.

use std::collections::BTreeMap;

use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;
use sdm_system::launcher_env::Identity;
use sdm_system::proc;
use sdm_text::printable_name;

use super::exec_calls;
use super::traps::{self, Traps};

/// A traced process.
#[derive(Debug)]
pub(super) struct Process {
    /// The pid of the parent process.
    pub(super) parent: i32,
    pub(super) threads: BTreeMap<i32, Thread>,
    pub(super) traps: Traps,
    /// True once the program was found to possibly have signal handlers of its own.
    pub(super) own_handlers: bool,
    /// The name of the program that the process has executed; empty for a fork of its parent.
    pub(super) name: String,
    /// True for a program that may trace others: its children must not be traced.
    pub(super) is_tracer: bool,
    /// Number of further stops at system calls to examine for the execution of a privileged program.
    pub(super) calls: u16,
}

/// A thread of a process.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The signal to deliver when the thread resumes; `None` while it runs.
    pub(super) stood_at: Option<i32>,
    /// The version of the traps in the thread's debug registers, as counted by `Traps::version`.
    pub(super) armed: u32,
}

impl Process {
    /// A process with one thread, which is traced from now on.
    pub(super) fn new(pid: i32, traps: Traps) -> Self {
        Self {
            parent: 0,
            threads: BTreeMap::from([(pid, Thread::default())]),
            traps,
            own_handlers: false,
            name: String::new(),
            is_tracer: false,
            calls: 0,
        }
    }

    /// A new process that `parent` has started.
    pub(super) fn forked(&self, pid: i32, parent: i32) -> Self {
        Self {
            parent,
            own_handlers: self.own_handlers,
            calls: exec_calls::limit(),
            ..Self::new(pid, self.traps.clone())
        }
    }

    /// Records that the process has executed a program. `traps` has the addresses in that program.
    pub(super) fn executed(&mut self, pid: i32, traps: Traps) {
        self.threads.retain(|known, _| *known == pid);
        self.threads.entry(pid).or_default();
        self.traps = traps.after(&self.traps);
        let process = proc::of(pid);
        let program = process.program().unwrap_or_default();
        self.name = printable_name(program.file_name().unwrap_or_default());
        self.is_tracer = traps::imports(&process.inside(&program), "ptrace");
    }

    /// True for a fork of the parent process, which runs the parent's program.
    pub(super) fn is_fork(&self) -> bool {
        self.name.is_empty()
    }

    /// True if the children of the process are traced: it can be a wrapper, as it has not loaded MPI, and is no tracer
    /// itself.
    pub(super) fn leads(&self) -> bool {
        !self.traps.has_mpi() && !self.is_tracer
    }

    /// Sets up a stopped thread: its debug registers, and whether the kernel traces new processes.
    ///
    /// # Errors
    /// The kernel's error, if it supports no debug registers.
    pub(super) fn prepare(&mut self, id: i32) -> nix::Result<()> {
        if self
            .threads
            .get(&id)
            .is_some_and(|thread| thread.armed == 0)
        {
            self.traps.catch_up(id);
        }
        let version = self.traps.version;
        let options = options(self.leads());
        let Some(thread) = self.threads.get_mut(&id) else {
            return Ok(());
        };
        if thread.armed != version {
            ptrace::setoptions(Pid::from_raw(id), options)?;
            self.traps.arm(id)?;
            thread.armed = version;
        }
        Ok(())
    }
}

/// The `ptrace` options for a process; `leads` is true if its children are traced.
pub(super) fn options(leads: bool) -> Options {
    let all = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL;
    match leads {
        true => all | Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK,
        false => all,
    }
}

/// The rank that a runtime has put into a process's environment, with the runtime's name; `None` without a rank.
pub(super) fn rank_of(pid: i32) -> Option<(&'static str, u32)> {
    let environment = proc::of(pid).environment().ok()?;
    let value = |name: &str| {
        let mut all = environment.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let identity = Identity::from_env(value, None).ok()?;
    Some((identity.source, identity.server))
}
