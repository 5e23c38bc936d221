//! What tasks answer. Replies are merge keys: they hold nothing that differs between tasks that
//! do the same (thread ids, pids, addresses of breakpoints, history numbers).

use serde::{Deserialize, Serialize};

use crate::TaskState;

/// The answer to a command.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done.
    Done,
    /// The task has stopped.
    Stopped(Stop),
    /// The program ended by itself.
    Exited {
        /// Its exit code, 0..=255.
        code: i32,
        /// True where it had called `MPI_Init` and ended without `MPI_Finalize`.
        before_finalize: bool,
    },
    /// A signal ended the program.
    Signalled {
        /// The signal's name, for example `SIGSEGV`.
        signal: String,
    },
    /// The run ended because the task was left running (`detach`).
    Detached,
    /// Where a breakpoint now stands.
    Breakpoint(BreakpointPlace),
    /// The frames of one thread.
    Backtrace(Backtrace),
    /// The selected frame.
    Frame(FrameView),
    /// Variables of the selected frame.
    Variables(Vec<Variable>),
    /// The threads of the task.
    Threads(Vec<ThreadView>),
    /// A value.
    Value(Value),
    /// The folded stacks of the task's threads.
    Stacks(TaskStacks),
    /// What the task is doing.
    Status(TaskState),
    /// What gdb printed.
    Text(String),
}

/// Why and where a task stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// Where: the frame that is selected now.
    pub frame: Option<Frame>,
    /// The outermost runtime function above the selected frame, where the stop was inside one:
    /// `MPI_Recv`. The innermost user frame is selected then, and this says why.
    pub inside: Option<String>,
    /// The line of source there, where known.
    pub source: Option<String>,
}

/// Why a task stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StopReason {
    /// Held at `main` after the start.
    AtMain,
    /// Held at the entry point: the program has no `main` that gdb can see.
    AtEntry,
    /// The front-end's breakpoint of this number.
    Breakpoint {
        /// The front-end's number.
        number: u32,
    },
    /// A step ended.
    StepEnd,
    /// The function returned.
    FunctionFinished {
        /// What it returned, where it returns something.
        value: Option<Value>,
    },
    /// We were asked to stop it.
    Interrupted,
    /// A signal that stops.
    Signal {
        /// Its name, for example `SIGSEGV`.
        name: String,
        /// Its meaning, for example `Segmentation fault`.
        meaning: String,
    },
    /// A breakpoint of SDM's own: the program is about to abort or to leave before `MPI_Finalize`.
    Internal {
        /// What it is about to do: `MPI_Abort`, `abort`, `_exit before MPI_Finalize`.
        what: String,
    },
    /// After an attach.
    Attached,
    /// Anything else, in gdb's words.
    Other(String),
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// 0 is the innermost.
    pub level: u32,
    /// The function; `module+offset` where it has no name.
    pub function: String,
    /// The source file as compiled, without directories; empty where unknown.
    pub file: String,
    /// The source file's full path; empty where unknown.
    pub path: String,
    /// The line, from 1; 0 where unknown.
    pub line: u32,
    /// The shared object without directories; empty for the program itself.
    pub module: String,
    /// Arguments with their values; empty where they were not asked for.
    pub args: Vec<Variable>,
}

/// The frames of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backtrace {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// True where there are more frames than were asked for.
    pub more: bool,
    /// How many frames were left out above the first one (inside a runtime) and below the last.
    pub folded: u32,
}

/// The frame now selected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameView {
    /// The frame, with its arguments.
    pub frame: Frame,
    /// The line of source there, where known.
    pub source: Option<String>,
}

/// A name with a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// A value as gdb prints it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Value {
    /// The text, cut where `cut` says so.
    pub text: String,
    /// Where the text was cut: the full length in bytes and the xxh3-64 of the full text, so that
    /// different values are never called equal by what is left of them.
    pub cut: Option<(u64, u64)>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    /// Its number in the task, from 1.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Where it is; absent while it runs.
    pub frame: Option<Frame>,
    /// True for the selected one.
    pub current: bool,
}

/// Where a breakpoint stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakpointPlace {
    /// The front-end's number.
    pub number: u32,
    /// True where it waits for its place to be loaded.
    pub pending: bool,
    /// The places, each `function`, `file`, `line`; several for templates and inlines.
    pub places: Vec<(String, String, u32)>,
}

/// The folded stacks of one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStacks {
    /// The main thread first, then every thread with a user frame.
    pub threads: Vec<ThreadStack>,
    /// How many threads were left out: helpers of a runtime.
    pub helpers: u32,
}

/// One folded stack, shared by threads that are in the same place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// How many threads of the task stand there, from 1.
    pub count: u32,
    /// True where the main thread is one of them.
    pub main: bool,
    /// Outermost first.
    pub frames: Vec<StackFrame>,
}

/// One node of a merged stack: equal fields are the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// The shared object; empty for the program itself.
    pub module: String,
    /// The function, or `module+offset`.
    pub function: String,
    /// The source file without directories; empty where unknown.
    pub file: String,
    /// The line of the call, or of the stop in the innermost one; 0 where unknown.
    pub line: u32,
    /// How many frames in a row are this function: 1, or more for recursion.
    pub repeat: u32,
}
