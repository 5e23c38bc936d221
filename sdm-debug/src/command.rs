//! What a front-end can ask of a set of tasks.

use serde::{Deserialize, Serialize};

/// A command to a set of tasks. What each answers stands beside it; every one can also fail with
/// `gdb_dead`, `gdb` and `timed_out`.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Starts the program and brings it to `main`: answered by [`crate::Reply::Stopped`] there
    /// (or at the entry point), or by its end. Fails: `no_gdb`, `no_program`, `already_running`.
    Start(StartSpec),
    /// Attaches to running processes, one per task: answered by [`crate::Reply::Stopped`].
    /// A task without a pid here fails. Fails: `no_gdb`, `attach_failed`.
    Attach(AttachSpec),
    /// Leaves the tasks running as they were: [`crate::Reply::Done`].
    Detach,
    /// Ends the tasks: answered by [`crate::Reply::Done`] when they are gone. Fails: `not_running`.
    Kill,
    /// Inserts a breakpoint: [`crate::Reply::Breakpoint`].
    BreakInsert(BreakSpec),
    /// Removes the front-end's breakpoint: `Done`. Fails: `no_such_thing`.
    BreakDelete {
        /// The front-end's number.
        number: u32,
    },
    /// Switches a breakpoint on or off: `Done`. Fails: `no_such_thing`.
    BreakEnable {
        /// The front-end's number.
        number: u32,
        /// On or off.
        enabled: bool,
    },
    /// Lets the tasks run; answered once per task by the stop, exit or death that ends the run.
    /// Fails: `already_running`, `not_running`.
    Continue,
    /// Runs a step; answered like `Continue`.
    Step {
        /// Which kind of step.
        kind: StepKind,
        /// How many, 1 or more.
        count: u32,
    },
    /// Runs until the selected function returns; answered like `Continue`, with the value returned.
    Finish,
    /// Stops running tasks: `Done` when the task has stopped (its open run is answered too), or at
    /// once where it is stopped already. Fails: `not_running`, `not_stoppable`.
    Interrupt,
    /// The frames of the selected thread, innermost first: [`crate::Reply::Backtrace`].
    Backtrace(BacktraceSpec),
    /// The folded stacks of every thread, for merging: [`crate::Reply::Stacks`].
    Stacks {
        /// Unfolded, and every thread.
        full: bool,
    },
    /// Selects a frame: [`crate::Reply::Frame`]. Fails: `no_such_thing`.
    SelectFrame(FrameSelect),
    /// The local variables of the selected frame: [`crate::Reply::Variables`].
    Locals,
    /// The arguments of the selected frame: [`crate::Reply::Variables`].
    Arguments,
    /// The threads: [`crate::Reply::Threads`].
    Threads,
    /// Selects a thread by its number in the task: [`crate::Reply::Frame`]. Fails: `no_such_thing`.
    SelectThread {
        /// The thread's number in the task, 1 or more.
        number: u32,
    },
    /// Evaluates an expression: [`crate::Reply::Value`].
    Evaluate {
        /// The expression, in the program's language.
        expression: String,
    },
    /// Evaluates for the effect, as gdb's `set var`: `Done`.
    SetVariable {
        /// An assignment, for example `x = 3`.
        expression: String,
    },
    /// Bytes for the program's standard input: `Done` when they are taken over. The stream is
    /// numbered: bytes below what was taken over are skipped.
    Stdin {
        /// Where these bytes stand in the stream.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
        /// True where the stream ends behind them.
        eof: bool,
    },
    /// What the tasks are doing: [`crate::Reply::Status`].
    Status,
    /// A command for gdb's own command line: [`crate::Reply::Text`].
    Console {
        /// The command.
        line: String,
    },
}

/// How the program is started.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct StartSpec {
    /// The program's path, or a name looked up on `PATH`.
    pub program: Vec<u8>,
    /// Its arguments, without the program itself.
    pub args: Vec<Vec<u8>>,
    /// Changes to the environment: a name, and a value or `None` to remove it.
    pub environment: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The working directory; the server's own where absent.
    pub directory: Option<Vec<u8>>,
    /// Where the program is held before anything else.
    pub stop: StopAt,
    /// Which gdb; found on `PATH` where absent.
    pub gdb: Option<Vec<u8>>,
    /// The tasks whose standard input the front-end feeds; the others read an empty one.
    /// Ids in the set's text form.
    pub stdin_tasks: String,
}

/// Where a started program is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum StopAt {
    /// At `main`; at the entry point where there is none.
    #[default]
    Main,
    /// Nowhere: it runs. `Start` is then answered like `Continue`.
    Nowhere,
}

/// Which process each task is.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct AttachSpec {
    /// Task id and Unix pid.
    pub pids: Vec<(u32, i32)>,
    /// True where nothing of the process may be changed: no breakpoint is ever inserted.
    pub read_only: bool,
    /// Which gdb; found on `PATH` where absent.
    pub gdb: Option<Vec<u8>>,
}

/// A breakpoint to insert.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct BreakSpec {
    /// The front-end's number for it.
    pub number: u32,
    /// Where, in gdb's words: `file.c:12`, `function`, `*0x1234`.
    pub location: String,
    /// Only where this holds.
    pub condition: Option<String>,
    /// Gone after the first stop.
    pub temporary: bool,
    /// Kept where the place does not exist yet.
    pub pending: bool,
    /// Stops after this many hits are passed by.
    pub ignore: u32,
    /// With the processor's help.
    pub hardware: bool,
}

/// Kinds of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// To another line, into functions: `step`.
    Into,
    /// To another line, over functions: `next`.
    Over,
    /// One instruction: `stepi`.
    Instruction,
    /// One instruction, over calls: `nexti`.
    InstructionOver,
}

/// What a backtrace shows.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct BacktraceSpec {
    /// At most this many frames; 0 for no bound but the backend's own.
    pub limit: u32,
    /// With the values of arguments.
    pub args: bool,
    /// With frames inside runtimes, libc start and the like, which are left out otherwise.
    pub full: bool,
}

/// Which frame to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameSelect {
    /// The one already selected: just show it.
    Current,
    /// By level: 0 is the innermost.
    Level(u32),
    /// Outward (`up`) by this many where positive, inward (`down`) where negative.
    Move(i32),
}

impl Command {
    /// True for commands that let a task run and are answered by what ends that run.
    #[must_use]
    pub fn is_run_control(&self) -> bool {
        matches!(
            self,
            Self::Start(_) | Self::Continue | Self::Step { .. } | Self::Finish
        )
    }

    /// True for commands that pass others on their way through a server.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        matches!(self, Self::Interrupt | Self::Kill | Self::Detach)
    }

    /// The command's name, as in logs and `--json`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Attach(_) => "attach",
            Self::Detach => "detach",
            Self::Kill => "kill",
            Self::BreakInsert(_) => "break_insert",
            Self::BreakDelete { .. } => "break_delete",
            Self::BreakEnable { .. } => "break_enable",
            Self::Continue => "continue",
            Self::Step { .. } => "step",
            Self::Finish => "finish",
            Self::Interrupt => "interrupt",
            Self::Backtrace(_) => "backtrace",
            Self::Stacks { .. } => "stacks",
            Self::SelectFrame(_) => "select_frame",
            Self::Locals => "locals",
            Self::Arguments => "arguments",
            Self::Threads => "threads",
            Self::SelectThread { .. } => "select_thread",
            Self::Evaluate { .. } => "evaluate",
            Self::SetVariable { .. } => "set_variable",
            Self::Stdin { .. } => "stdin",
            Self::Status => "status",
            Self::Console { .. } => "console",
        }
    }
}
