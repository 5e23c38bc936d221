//! Replies of tasks. Replies are merge keys: they hold nothing that differs between tasks in the same state (thread
//! ids, pids, breakpoint addresses, history numbers).

mod data;
mod samples;
mod stop;

use serde::{Deserialize, Serialize};

use crate::TaskState;
use crate::probe::TaskProbe;
use crate::queues::TaskQueues;

pub use data::{
    ARRAY_BYTES_MAX, BreakpointView, Instruction, Library, MEMORY_BYTES_MAX, MemoryBlock,
    MemoryLimit, Room, SignalView, SourceText, Usage, VALUE_BYTES_MAX, VarObject,
};
pub use samples::{Cost, TaskSamples};
pub use stop::{Access, CatchHit, Finding, Stop, StopReason, WatchHit, call_of};

/// The answer to a command.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The command is done.
    Done,
    /// The task has stopped.
    Stopped(Stop),
    /// The program exited.
    Exited {
        /// The exit code, 0..=255.
        code: i32,
        /// True if the program had called `MPI_Init` and ended without `MPI_Finalize`.
        before_finalize: bool,
    },
    /// A signal terminated the program.
    Signalled {
        /// The signal's name, for example `SIGSEGV`.
        signal: String,
    },
    /// The run ended because the debugger detached and left the task running (`detach`).
    Detached,
    /// The location of the inserted breakpoint.
    Breakpoint(BreakpointPlace),
    /// The frames of one thread.
    Backtrace(Backtrace),
    /// The selected frame.
    Frame(FrameView),
    /// Variables of the selected frame.
    Variables(Vec<Variable>),
    /// Threads of the task, each with its innermost frame.
    Threads(Vec<ThreadView>),
    /// The value of an expression.
    Value(Value),
    /// The stacks of the task's threads, reduced to the user's frames and the functions that these call. Equal stacks
    /// are listed once.
    Stacks(TaskStacks),
    /// State of the task.
    Status(TaskState),
    /// Text that gdb printed.
    Text(String),
    /// gdb's answer to an MI command.
    Mi {
        /// The result record: `^done,depth="3"`.
        result: String,
        /// Console output during the command.
        printed: String,
    },
    /// The front-end's breakpoints, by number.
    Breakpoints(Vec<BreakpointView>),
    /// Memory, in ascending order of address; unreadable parts are left out.
    Memory(Vec<MemoryBlock>),
    /// Instructions, in ascending order of address.
    Instructions(Vec<Instruction>),
    /// Lines of source.
    Source(SourceText),
    /// The shared libraries.
    Libraries(Vec<Library>),
    /// The settings of signals.
    Signals(Vec<SignalView>),
    /// A variable object.
    VarObject(VarObject),
    /// Children of a variable object.
    VarChildren {
        /// The requested children, in the order of their definition or index.
        children: Vec<VarObject>,
        /// True if there are more children.
        more: bool,
    },
    /// The memory that a gdb needs, and the memory that is free.
    Room(Room),
    /// The facts of a probe.
    Probe(Box<TaskProbe>),
    /// Memory of a process.
    Usage(Usage),
    /// The messages of the task's MPI library that have not completed.
    Queues(TaskQueues),
    /// Sampled stacks.
    Samples(Box<TaskSamples>),
}

/// One frame of a stack, for display.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The level; 0 is the innermost frame.
    pub level: u32,
    /// The function; `module+offset` if it has no name.
    pub function: String,
    /// The source file as compiled, without directories; empty if unknown.
    pub file: String,
    /// The source file's full path; empty if unknown.
    pub path: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// File name of the shared object, without directories; empty for the program itself.
    pub module: String,
    /// Arguments with their values; empty if they were not requested.
    pub args: Vec<Variable>,
}

/// The frames of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backtrace {
    /// The requested frames, innermost first.
    pub frames: Vec<Frame>,
    /// True if there are more frames than requested.
    pub more: bool,
    /// Number of frames that are hidden: those inside a runtime that the innermost shown frame called, and those of
    /// start code outside the outermost one.
    pub folded: u32,
}

/// The newly selected frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameView {
    /// The frame, with its arguments.
    pub frame: Frame,
    /// The source line of the frame; `None` if unknown.
    pub source: Option<String>,
}

/// A variable or an argument, with its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variable {
    /// The name of the variable or argument, as in the source.
    pub name: String,
    /// The value at the time of the command.
    pub value: Value,
}

/// In place of a length: the end of the value is unknown, and the hash is that of the printed part.
pub const PRINTED_PART: u64 = 1;
/// For a value whose end is unknown: values with an equal beginning compare as equal.
pub const BY_TEXT: (u64, u64) = (PRINTED_PART, 0);

/// A value as printed by gdb.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Value {
    /// The text; cut if `cut` is set.
    pub text: String,
    /// For a cut text: length in bytes and xxh3-64 of the whole text, so that different values with an equal
    /// beginning compare as different.
    ///
    /// If gdb itself printed only the beginning: length and hash of the whole value. If these cannot be known: length
    /// 0 and a number that no other task has, or [`PRINTED_PART`].
    pub cut: Option<(u64, u64)>,
}

/// One thread of a task, with its innermost frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    /// Number of the thread in the task, from 1.
    pub number: u32,
    /// The thread's name in the system; empty if it has none.
    pub name: String,
    /// The thread's innermost frame, level 0; `None` while the thread runs.
    pub frame: Option<Frame>,
    /// True for the selected thread.
    pub current: bool,
}

/// The location of a breakpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakpointPlace {
    /// The front-end's number of the breakpoint.
    pub number: u32,
    /// True while the breakpoint is pending.
    pub pending: bool,
    /// The locations, each `function`, `file`, `line`; several for templates and inlined functions.
    pub places: Vec<(String, String, u32)>,
}

/// The folded stacks of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStacks {
    /// The distinct stacks of the threads, that of the main thread first. A helper thread of a runtime has none.
    pub threads: Vec<ThreadStack>,
    /// Number of threads left out, as helpers of a runtime or for lack of room.
    pub helpers: u32,
}

impl TaskStacks {
    /// The stacks of a task whose main thread has these frames, outermost first, and that has only helpers as other
    /// threads.
    #[must_use]
    pub fn of_main(frames: Vec<StackFrame>, helpers: u32) -> Self {
        let main = ThreadStack {
            count: 1,
            main: true,
            frames,
        };
        Self {
            threads: vec![main],
            helpers,
        }
    }
}

/// One folded stack, shared by threads with equal frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// Number of the task's threads with this stack, from 1.
    pub count: u32,
    /// True if the main thread is one of these threads.
    pub main: bool,
    /// The folded frames, outermost first.
    pub frames: Vec<StackFrame>,
}

/// One node of a merged stack: nodes with equal fields are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// The shared object; empty for the program itself.
    pub module: String,
    /// The function, or `module+offset`.
    pub function: String,
    /// The source file without directories; empty if unknown.
    pub file: String,
    /// The line of the call, or in the innermost frame the line of the stop; 0 if unknown.
    pub line: u32,
    /// Number of consecutive frames of this function: more than 1 for recursion.
    pub repeat: u32,
}

impl StackFrame {
    /// A frame of the program itself, with repeat count 1. An unknown file is empty, an unknown line 0.
    pub fn own(function: impl Into<String>, file: impl Into<String>, line: u32) -> Self {
        Self {
            module: String::new(),
            function: function.into(),
            file: file.into(),
            line,
            repeat: 1,
        }
    }
}
