//! Arguments of the commands that need more than a few fields, for example the start of a program, a breakpoint, or an
//! inspection.

use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

use crate::probe::ProbeSpec;

/// The start of a program.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct StartSpec {
    /// Path of the program, or a name looked up on `PATH`.
    pub program: Vec<u8>,
    /// Arguments, without the program itself.
    pub args: Vec<Vec<u8>>,
    /// Changes to the environment: a name, and its new value, or `None` to remove the variable.
    pub environment: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The working directory; `None` for the server's own.
    pub directory: Option<Vec<u8>>,
    /// The place of the program's first stop.
    pub stop: StopAt,
    /// The gdb; `None` for the one on `PATH`.
    pub gdb: Option<Vec<u8>>,
    /// The tasks whose standard input the front-end feeds; that of all other tasks is empty.
    pub stdin_tasks: IdSet,
    /// A command with arguments that runs the program in its own process (`numactl -N 0`, a site's binding script)
    /// after any number of `exec`s; empty for none. `valgrind` alone runs the program under Valgrind, as `--memcheck`
    /// describes.
    pub wrapper: Vec<Vec<u8>>,
    /// Breakpoints to set before the program runs. A breakpoint that cannot be set is reported as
    /// [`crate::Event::BreakpointRefused`]; the other breakpoints are not affected.
    pub points: Vec<StartPoint>,
    /// Lines for gdb's command line before the program runs, each with the tasks whose gdb gets it. If gdb refuses a
    /// line, a notice reports it.
    pub settings: Vec<(IdSet, String)>,
    /// True to start a gdb for the program only when an operation needs one, if the host and the program allow that.
    pub gdb_when_needed: bool,
}

/// A breakpoint, watchpoint or catchpoint that is set before the program runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartPoint {
    /// The tasks in which the breakpoint is set.
    pub tasks: IdSet,
    /// The breakpoint. If its location is not loaded yet it stays pending.
    pub spec: PointSpec,
    /// False if the breakpoint is set but disabled.
    pub enabled: bool,
}

/// A request for a breakpoint, watchpoint or catchpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PointSpec {
    /// A breakpoint at a location.
    Break(BreakSpec),
    /// A watchpoint on a value.
    Watch(WatchSpec),
    /// A catchpoint on an event.
    Catch(CatchSpec),
}

/// The place at which a started program is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum StopAt {
    /// Stop at `main`, or at the entry point if there is none.
    #[default]
    Main,
    /// No stop: the program runs. `Start` is then answered like `Continue`.
    Nowhere,
}

/// A request to attach: the process of each task, and how to attach to it.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct AttachSpec {
    /// Pairs of task number and pid.
    pub pids: Vec<(u32, i32)>,
    /// True if neither memory nor code of the processes may be changed. No breakpoint is ever inserted then.
    pub read_only: bool,
    /// True if a launcher holds the processes for a debugger. A process that the launcher has stopped is resumed by a
    /// continue or a detach.
    pub held: bool,
    /// The gdb; `None` for the one on `PATH`.
    pub gdb: Option<Vec<u8>>,
    /// Distribution of a server's tasks over gdbs.
    pub arrangement: Arrangement,
}

/// A request to inspect processes without gdb.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct LookSpec {
    /// Pairs of task number and pid.
    pub pids: Vec<(u32, i32)>,
    /// True for every frame of every thread, without folding.
    pub full: bool,
    /// The options of a probe; `None` if stacks are wanted and not states.
    pub probe: Option<ProbeSpec>,
}

/// A request to sample processes repeatedly.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SampleSpec {
    /// The processes, and the form of the stacks.
    pub look: LookSpec,
    /// Duration of the sampling, in milliseconds.
    pub span_ms: u32,
    /// Time from one sample to the next, in milliseconds.
    pub period_ms: u32,
    /// True if this sampling continues an earlier one. The first sample then counts as changed if it differs from the
    /// last sample of the earlier sampling.
    pub goes_on: bool,
}

/// Distribution of the tasks of one server over gdbs at an attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Arrangement {
    /// One gdb for all tasks if the server has several.
    #[default]
    Auto,
    /// One gdb for each task.
    PerTask,
    /// One gdb for all tasks of the server.
    Shared,
}

/// The core files of tasks.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct CoreSpec {
    /// Pairs of task number and path of the core file.
    pub cores: Vec<(u32, Vec<u8>)>,
    /// The program that left the core files.
    pub program: Vec<u8>,
    /// The gdb; `None` for the one on `PATH`.
    pub gdb: Option<Vec<u8>>,
}

/// A breakpoint to insert.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct BreakSpec {
    /// The front-end's number of the breakpoint.
    pub number: u32,
    /// The location in gdb's syntax: `file.c:12`, `function`, `*0x1234`.
    pub location: String,
    /// The condition under which the breakpoint stops; `None` for always.
    pub condition: Option<String>,
    /// True if the breakpoint is deleted at its first stop.
    pub temporary: bool,
    /// True if the breakpoint may stay pending until its location is loaded.
    pub pending: bool,
    /// Number of hits to ignore before one stops the task.
    pub ignore: u32,
    /// True if the breakpoint uses one of the processor's debug registers.
    pub hardware: bool,
    /// The number of the only thread that the breakpoint stops; `None` for all threads.
    pub thread: Option<u32>,
    /// Lines for gdb's command line, carried out at each hit before the stop is reported; their output is
    /// [`crate::Event::Printed`]. A line `continue` resumes the task, and `silent` is accepted without effect. `if`,
    /// `else`, `while`, `loop_break`, `loop_continue` and `end` are as in gdb.
    pub commands: Vec<String>,
    /// True if `location` is a regular expression, `FILE:REGEX` or `REGEX`. One breakpoint is then set in every
    /// function of the program whose name matches.
    pub regex: bool,
}

/// A watchpoint to set.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct WatchSpec {
    /// The front-end's number for the watchpoint, from the same sequence as those of breakpoints.
    pub number: u32,
    /// The watched expression.
    pub expression: String,
    /// The kind of access at which the task stops.
    pub kind: WatchKind,
    /// True to watch the address that the expression has now (`watch -l`), in any frame.
    pub location: bool,
    /// The condition under which the watchpoint stops; `None` for always.
    pub condition: Option<String>,
    /// Number of hits to ignore before one stops the task.
    pub ignore: u32,
}

impl WatchSpec {
    /// A watchpoint that stops at every such access of an expression.
    pub fn new(number: u32, expression: impl Into<String>, kind: WatchKind) -> Self {
        Self {
            number,
            expression: expression.into(),
            kind,
            ..Self::default()
        }
    }
}

/// The kinds of accesses at which a watchpoint stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WatchKind {
    /// A change of the value: `watch`.
    #[default]
    Write,
    /// A read access: `rwatch`.
    Read,
    /// A read or a write access: `awatch`.
    Access,
}

/// A catchpoint to set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CatchSpec {
    /// The front-end's number for the catchpoint, from the same sequence as those of breakpoints.
    pub number: u32,
    /// The event at which the task stops.
    pub event: CatchEvent,
    /// The condition under which the catchpoint stops; `None` for always.
    pub condition: Option<String>,
    /// True if the catchpoint is deleted at its first stop.
    pub temporary: bool,
}

impl CatchSpec {
    /// A catchpoint that stops every time.
    #[must_use]
    pub fn new(number: u32, event: CatchEvent) -> Self {
        Self {
            number,
            event,
            condition: None,
            temporary: false,
        }
    }
}

/// The event at which a catchpoint stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CatchEvent {
    /// `fork`.
    Fork,
    /// `vfork`.
    Vfork,
    /// An `exec`; the task stops in the new program.
    Exec,
    /// System calls by name or number, at entry and at return; any if empty.
    Syscall(Vec<String>),
    /// Signals by name; any but the debugger's own if empty.
    Signal(Vec<String>),
    /// A C++ exception is thrown.
    Throw,
    /// A C++ exception is rethrown.
    Rethrow,
    /// A C++ exception is caught.
    Catch,
    /// The loading of a library whose name matches this pattern; any library if empty.
    Load(String),
    /// The unloading of a library whose name matches this pattern; any library if empty.
    Unload(String),
}

/// The output format of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ValueFormat {
    /// The natural form of the type.
    #[default]
    Natural,
    /// Hexadecimal, with `0x`.
    Hexadecimal,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// Steps to another line, into functions: `step`.
    Into,
    /// Steps to another line, over functions: `next`.
    Over,
    /// Steps one instruction: `stepi`.
    Instruction,
    /// Steps one instruction, over calls: `nexti`.
    InstructionOver,
}

/// The extent of a backtrace.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct BacktraceSpec {
    /// Maximum number of frames; 0 for no limit but the backend's own.
    pub limit: u32,
    /// True to include the values of arguments.
    pub args: bool,
    /// True to include frames inside runtimes, and frames of start code such as libc's.
    pub full: bool,
}

/// The frame to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameSelect {
    /// The frame already selected: only show it.
    Current,
    /// The frame of this level; 0 is the innermost.
    Level(u32),
    /// Moves by this many frames: outward (`up`) if positive, inward (`down`) if negative.
    Move(i32),
}
