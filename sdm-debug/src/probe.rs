//! The probe: one question that tells a diagnosis all it wants to know of a task.
//!
//! What a task remembers from one probe to the next (values of variables, processor time) is compared where
//! the task is, and only the outcome travels: it is the same for most tasks, so that it merges.

use serde::{Deserialize, Serialize};

use crate::reply::{StackFrame, TaskStacks, Value};

/// How a probe looks at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Compared with the probe before; a probe that is not compared begins a row of them.
    pub compare: bool,
    /// With what the threads wait in and the arguments of the call. These cost some questions to gdb
    /// per thread that waits.
    pub waits: bool,
}

/// What one task is doing: the answer to [`crate::Command::Probe`]. A task that runs has no stacks and no
/// waits.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskProbe {
    /// The folded stacks of its threads.
    pub stacks: Option<TaskStacks>,
    /// True where a variable of the main thread's innermost user frame is another than at the probe before;
    /// absent where nothing was compared.
    pub inner_changed: Option<bool>,
    /// The same of the two frames that called it.
    pub outer_changed: Option<bool>,
    /// What its threads wait in, where that was asked for.
    pub waits: Option<TaskWaits>,
    /// The time on a processor since the probe before, in milliseconds; absent where nothing was compared.
    pub cpu_ms: Option<u64>,
    /// What the kernel says of the process.
    pub process: Option<ProcessState>,
}

/// What the kernel says of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessState {
    /// The letter of its state in `/proc`: `R`, `S`, `D`, `T`, `t` (held by a debugger), `Z`.
    pub letter: char,
    /// The kernel's function that it waits in; empty where the kernel does not say.
    pub wait_channel: String,
}

/// What the threads of a task wait in.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskWaits {
    /// The call of a runtime that the main thread is in.
    pub call: Option<Call>,
    /// The threads with a user frame that wait, by number.
    pub threads: Vec<ThreadWait>,
}

/// A thread that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadWait {
    /// Its number in the task, from 1.
    pub thread: u32,
    /// What it waits in.
    pub what: WaitFor,
}

/// What a thread waits in: the most telling of what is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitFor {
    /// A mutex of pthreads, with its holder.
    Lock(LockWait),
    /// A system call, by name; `number N` for one without a name here.
    SystemCall(String),
}

/// A mutex that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWait {
    /// The expression in the source.
    pub mutex: String,
    /// The user's frame that wants it.
    pub place: StackFrame,
    /// The number of the task's thread that holds it, where that is known.
    pub holder: Option<u32>,
}

/// A call of a runtime, with those of its arguments that say whom it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The runtime's function: `MPI_Recv`.
    pub function: String,
    /// The user's frame that called it.
    pub place: StackFrame,
    /// The line of source there, trimmed; empty where it is not known.
    pub source: String,
    /// The arguments that [`crate::calls::roles`] names, in its order.
    pub arguments: Vec<CallArgument>,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallArgument {
    /// What it means to the call.
    pub role: ArgumentRole,
    /// As it stands in the source; the parameter's name where it was read from the debug information.
    pub expression: String,
    /// Its value, where it could be evaluated.
    pub value: Option<Value>,
}

/// What an argument means to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgumentRole {
    /// The number of elements.
    Count,
    /// The rank that it goes to.
    Destination,
    /// The tag; of what is sent where a call sends and receives.
    Tag,
    /// The rank that it comes from.
    Source,
    /// The tag of what is received, where a call sends and receives.
    ReceiveTag,
    /// The communicator of the call.
    Communicator,
    /// The file, by descriptor, stream or name.
    File,
}

impl TaskWaits {
    /// True where nothing is known to be waited for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.call.is_none() && self.threads.is_empty()
    }
}

impl CallArgument {
    /// True for the communicator of all ranks: its name, MPICH's handle of it, or Open MPI's symbol.
    #[must_use]
    pub fn is_world(&self) -> bool {
        const MPICH_WORLD: &str = "1140850688";
        let named = self.expression == "MPI_COMM_WORLD";
        let value = self.value.as_ref().map(|value| value.text.as_str());
        named
            || value.is_some_and(|text| text == MPICH_WORLD || text.contains("ompi_mpi_comm_world"))
    }
}
