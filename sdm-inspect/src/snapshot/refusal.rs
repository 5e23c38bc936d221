//! Reasons why there is no snapshot of a process.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use sdm_system::proc;
use serde::{Deserialize, Serialize};

/// The reason why a process was not inspected. The process runs unchanged. The texts do not name the process, so that
/// equal reasons of several processes are merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The process does not exist any more.
    #[error("the process has ended")]
    Ended,
    /// A debugger traces the process.
    #[error("the process is traced by process {tracer}")]
    Traced {
        /// Pid of the debugger.
        tracer: i32,
    },
    /// The kernel does not permit tracing the process.
    #[error("the kernel does not allow the process to be traced: {why}")]
    NotAllowed {
        /// The rule that forbids tracing; empty if unknown.
        why: String,
    },
    /// The process did not stop in time.
    #[error("the process did not stop in time")]
    Stuck,
    /// A thread of the process stays in state D, where nothing stops it.
    #[error(
        "{what} is in an uninterruptible wait in the kernel (state D{within}) and cannot be stopped"
    )]
    Uninterruptible {
        /// The text `the process`, or one for a thread of it.
        what: String,
        /// The kernel function in which it waits, if known.
        within: String,
    },
    /// The process executed another program during the inspection.
    #[error("the process has just called exec: try again")]
    Executed,
    /// The process has too many threads.
    #[error("the process has {count} threads, more than are read without gdb")]
    TooManyThreads {
        /// Number of the process's threads.
        count: usize,
    },
    /// The process has another architecture.
    #[error("the process runs on another processor architecture than sdm")]
    Architecture,
    /// The kernel does not read the memory of other processes by `process_vm_readv`.
    #[error("the kernel refuses process_vm_readv: {text}")]
    MemoryCall {
        /// The system's error text.
        text: String,
    },
    /// Another error of the system.
    #[error("{text}")]
    System {
        /// The system's error text.
        text: String,
    },
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        let text = error.to_string();
        Self::System { text }
    }
}

impl Refusal {
    /// The meaning of a failed `ptrace` call on a thread of the process.
    pub(crate) fn of(pid: i32, error: Errno) -> Self {
        match error {
            Errno::ESRCH | Errno::ENOENT => Self::Ended,
            Errno::EPERM | Errno::EACCES => Self::of_forbidden(pid),
            error => io::Error::from(error).into(),
        }
    }

    /// The meaning of a failed `process_vm_readv` call on a traced thread.
    pub(crate) fn of_memory(error: Errno) -> Self {
        match error {
            Errno::ESRCH => Self::Ended,
            error => Self::MemoryCall {
                text: error.desc().to_owned(),
            },
        }
    }

    /// The meaning of a failure to read the process's files in `/proc`.
    pub(crate) fn of_files(pid: i32, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::of(pid, Errno::from_raw(number)),
            None => error.into(),
        }
    }

    fn of_forbidden(pid: i32) -> Self {
        let process = proc::of(pid).living();
        let Ok(status) = process.status() else {
            return Self::Ended;
        };
        let own = nix::unistd::geteuid().as_raw();
        let ids = status.ids("Uid").unwrap_or_default();
        let is_own = ids.iter().all(|id| *id == own);
        // The files of a protected process belong to root.
        let is_protected = || {
            let owner = fs::metadata(process.path("task")).map(|it| it.uid());
            is_own && owner.is_ok_and(|owner| owner != own)
        };
        if let Some(tracer) = status.tracer()
            && !is_protected()
        {
            return Self::Traced { tracer };
        }
        if process.state().is_none_or(proc::State::has_ended) {
            return Self::Ended;
        }
        let scope = proc::of_machine("sys/kernel/yama/ptrace_scope").unwrap_or_default();
        let why = match scope.trim() {
            _ if !is_own => "the process belongs to another user".to_owned(),
            "" | "0" => "the process is protected from tracing, or runs in another user namespace"
                .to_owned(),
            scope => format!("kernel.yama.ptrace_scope is {scope}"),
        };
        Self::NotAllowed { why }
    }
}
