//! The probe: one question for all the facts that a diagnosis needs of a task.
//!
//! A task keeps facts from one probe to the next (values of variables, processor time) and compares them on its own
//! host. Only the result is sent: it is the same for most tasks, so that it merges.

use sdm_idset::IdSet;
pub use sdm_mpi::ArgumentRole;
use serde::{Deserialize, Serialize};

use crate::reply::{StackFrame, TaskStacks, Value};

/// Options of a probe, the query for a task's stacks and waits and for its progress since the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// True to compare with the previous probe. A probe with `false` begins a new series.
    pub compare: bool,
    /// True to include the threads' waits and the arguments of the call. These cost some gdb commands per waiting
    /// thread.
    pub waits: bool,
}

/// The facts of one task: the answer to [`crate::Command::Probe`]. A running task has no stacks and no waits.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskProbe {
    /// The folded stacks of the task's threads; `None` while the task runs, and if the main thread's stack could not be
    /// read to its end.
    pub stacks: Option<TaskStacks>,
    /// True if the main thread's stack could not be unwound to its end, for example in the middle of a function that
    /// gdb cannot unwind. The probe then gives no stack, and should be repeated.
    pub partial: bool,
    /// True if the main thread's innermost user frame has changed since the last complete probe: its place, its
    /// variables, its part of the stack, or its callee-saved registers. `None` if there was no comparison.
    pub inner_changed: Option<bool>,
    /// True if one of the main thread's outer user frames has changed since the last complete probe; `None` if there
    /// was no comparison.
    pub outer_changed: Option<bool>,
    /// The innermost function that the main thread has not left since the last complete probe; `None` if there is none,
    /// or if it is unknown.
    pub within: Option<Within>,
    /// True if the main thread hardly ran since the probe before, although it waits in no system call but
    /// `sched_yield`: unchanged state then means nothing.
    pub starved: bool,
    /// True if the thread appears to be in the same MPI call as at the last complete probe, but the call's return
    /// could not be tracked, as the kernel refused.
    pub unfollowed: bool,
    /// True if the thread appears to be in the same MPI call as at the last complete probe, but its process has
    /// exchanged data since. It did so with other processes, by shared memory or TCP.
    pub exchanged: bool,
    /// The waits of the task's threads; `None` if they were not requested.
    pub waits: Option<TaskWaits>,
    /// The processor time since the previous probe, in milliseconds; `None` if nothing was compared.
    pub cpu_ms: Option<u64>,
    /// State of the process in the kernel; `None` if it could not be read.
    pub process: Option<ProcessState>,
}

/// The innermost user function that a thread was not seen to leave between two probes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Within {
    /// Number of user functions on the stack outside this one.
    pub depth: u32,
    /// The function, with line 0.
    pub frame: StackFrame,
    /// True if the function's own state has changed: its loop makes progress.
    pub changed: bool,
    /// True if it was tracked that the function's call has not returned. Otherwise this is only concluded from its
    /// unchanged state.
    pub noted: bool,
}

/// State of a process or thread in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessState {
    /// The state letter from `/proc`: `R`, `S`, `D`, `T`, `t` (held by a debugger), `Z`.
    pub letter: char,
    /// The kernel function in which it waits; empty if the kernel does not say.
    pub wait_channel: String,
}

/// The waits of a task's threads.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskWaits {
    /// The runtime call that the main thread is in; `None` if there is none. If that call waits for other threads and
    /// exactly one other thread is in an MPI call, that MPI call instead.
    pub call: Option<Call>,
    /// The waiting threads that have a user frame, by number.
    pub threads: Vec<ThreadWait>,
    /// The window locks that the process holds.
    pub window_locks: Vec<WindowLock>,
}

/// A lock of an MPI window that a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WindowLock {
    /// The context id of the window, as in [`ArgumentRole::Context`]: equal at all ranks.
    pub window: i64,
    /// Rank in the job of the locked part; `None` if the parts of all ranks are locked.
    pub target: Option<u32>,
}

/// A waiting thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadWait {
    /// Number of the thread in the task, from 1.
    pub thread: u32,
    /// The object of the wait.
    pub what: WaitFor,
}

/// The object of a thread's wait: the most specific that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitFor {
    /// A mutex, an OpenMP lock or a call-once function, with its holder.
    Lock(LockWait),
    /// A system call, by name; `number N` if its name is not known here.
    SystemCall(String),
    /// A resource outside the process.
    Resource(ResourceWait),
    /// The end of another thread.
    Join(JoinWait),
    /// No resource: the thread polls for other ranks in an MPI file operation, and is not accessing a file.
    Polling,
    /// Another thread of the process, although the process has no other thread, or each of them waits as well.
    Nobody,
}

/// A thread that another thread of its process waits to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinWait {
    /// Number of the thread in the task, from 1.
    pub thread: u32,
    /// The user's frame that waits for the thread's end.
    pub place: StackFrame,
}

/// A wait for something outside the process, read from the kernel's tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceWait {
    /// The name of the system call.
    pub call: String,
    /// The resource, with its path: `the lock on /scratch/x`.
    pub what: String,
    /// The processes of this host that hold the resource, or have its other end.
    pub holders: Vec<Holder>,
}

/// A process that holds a resource for which another process waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Holder {
    /// The pid of the process.
    pub pid: i32,
    /// Name of the process's program.
    pub name: String,
    /// The state letter of the process from `/proc`.
    pub letter: char,
}

/// A mutex, an OpenMP lock or a call-once function that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWait {
    /// The mutex, as its expression in the source, as its symbol, or in words.
    pub mutex: String,
    /// The user's frame that tries to lock it.
    pub place: StackFrame,
    /// The task's number for the thread that holds the mutex; `None` if unknown.
    pub holder: Option<u32>,
    /// True if the thread that holds the mutex has ended.
    pub orphaned: bool,
}

/// A call of a runtime, with those of its arguments that identify its partners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The name of the runtime's function: `MPI_Recv`.
    pub function: String,
    /// The user's frame that made the call.
    pub place: StackFrame,
    /// The source line there, trimmed; empty if unknown.
    pub source: String,
    /// The arguments with roles, in the order of [`crate::calls::roles`].
    pub arguments: Vec<CallArgument>,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallArgument {
    /// Role of the argument in the call.
    pub role: ArgumentRole,
    /// The expression in the source, or the parameter's name if the argument was read by debug information.
    pub expression: String,
    /// The value, if it was evaluated and is not an integer; otherwise `None`.
    pub value: Option<Value>,
    /// The value, if it is an integer; otherwise `None`. In merged probes it is 0 except for communicators and files,
    /// as the tasks' values are kept separately.
    pub number: Option<i64>,
    /// The origin of the value.
    pub known: Known,
}

/// The origin of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Known {
    /// Evaluated in the caller's frame, from the expression in the source code.
    Source,
    /// Read by the debug information of the called function.
    Callee,
    /// Read from the place to which the call has put it: a register that the called function has kept, or the stack.
    Kept,
}

impl WaitFor {
    /// True if the wait is for another thread of the process.
    #[must_use]
    pub fn is_for_a_thread(&self) -> bool {
        match self {
            Self::Lock(_) | Self::Join(_) | Self::Nobody => true,
            Self::SystemCall(name) => name == "futex",
            Self::Resource(_) | Self::Polling => false,
        }
    }
}

impl TaskWaits {
    /// The main thread's wait; `None` if it is not known to wait.
    #[must_use]
    pub fn main(&self) -> Option<&WaitFor> {
        let main = self.threads.iter().find(|wait| wait.thread == 1);
        main.map(|wait| &wait.what)
    }

    /// True if no wait and no held lock is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.call.is_none() && self.threads.is_empty() && self.window_locks.is_empty()
    }
}

impl ResourceWait {
    /// True for a wait for a file lock: a process holds the lock and does not release it. False for example for a pipe,
    /// whose data may never have been sent.
    #[must_use]
    pub fn is_lock(&self) -> bool {
        self.what.starts_with(LOCK_ON)
    }

    /// True for a wait for other processes, all of which wait for the process itself.
    #[must_use]
    pub fn is_waited_back(&self) -> bool {
        self.what.ends_with(WAITS_BACK)
    }

    /// True for a wait that only the process itself can end.
    #[must_use]
    pub fn is_for_itself(&self) -> bool {
        self.what.contains(NOBODY_ELSE) || self.is_waited_back()
    }
}

/// End of [`ResourceWait::what`] for a wait for processes that cannot go on before the waiting process does.
pub const WAITS_BACK: &str = ", and none of the awaited processes can go on before this one does";

/// Part of [`ResourceWait::what`] for a pipe whose other end only the waiting process itself has.
pub const NOBODY_ELSE: &str = ", whose other end no other process has open";

/// Beginning of [`ResourceWait::what`] for a file lock; the file's path follows.
pub const LOCK_ON: &str = "the lock on ";

impl CallArgument {
    /// A fact about a call that is not one of its arguments. It is compared with the same fact of other ranks, and not
    /// shown to the user.
    #[must_use]
    pub fn hidden(role: ArgumentRole, number: i64) -> Self {
        Self {
            role,
            expression: String::new(),
            value: None,
            number: Some(number),
            known: Known::Source,
        }
    }

    /// True for `MPI_COMM_WORLD`, given by its name, MPICH's handle, or Open MPI's symbol.
    #[must_use]
    pub fn is_world(&self) -> bool {
        let value = self.value.as_ref().map(|value| value.text.as_str());
        self.expression == sdm_mpi::COMM_WORLD
            || self.number == Some(sdm_mpi::MPICH_WORLD.into())
            || value.is_some_and(sdm_mpi::is_world)
    }

    /// True for a communicator whose ranks are known as ranks of the job.
    #[must_use]
    pub fn is_known_communicator(&self) -> bool {
        self.role == ArgumentRole::Communicator && (self.is_world() || self.members().is_some())
    }

    /// The ranks of a communicator, a window or an epoch's group, or the ranks that the call waits for; `None` if they
    /// are unknown.
    #[must_use]
    pub fn members(&self) -> Option<IdSet> {
        let members: IdSet = self.value.as_ref()?.text.parse().ok()?;
        Some(members).filter(|members| !members.is_empty())
    }
}
