//! The commands that a front-end sends to a set of tasks.

mod point;
mod specs;

use serde::{Deserialize, Serialize};

pub use crate::probe::ProbeSpec;
pub use specs::{
    Arrangement, AttachSpec, BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, CoreSpec,
    FrameSelect, LookSpec, PointSpec, SampleSpec, StartPoint, StartSpec, StepKind, StopAt,
    ValueFormat, WatchKind, WatchSpec,
};

/// A command to a set of tasks. The doc of each gives its reply; every command can also fail with `gdb_dead`, `gdb`
/// and `timed_out`.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Starts the program and runs it to `main`. [`crate::Reply::Stopped`] at `main` (or at the entry point) answers
    /// it, or the program's end. With [`StopAt::Nowhere`] it is answered like `Continue`. Fails: `no_gdb`,
    /// `no_program`, `not_found`, `already_running`.
    Start(StartSpec),
    /// Attaches to running processes, one per task: answered by [`crate::Reply::Stopped`]. Fails: `no_gdb`,
    /// `attach_failed`; also for a task for which the request has no pid.
    Attach(AttachSpec),
    /// Detaches from the tasks and leaves them running: [`crate::Reply::Done`].
    Detach,
    /// Kills the tasks: answered by [`crate::Reply::Done`] when they have ended. Fails: `not_running`.
    Kill,
    /// Inserts a breakpoint: [`crate::Reply::Breakpoint`].
    BreakInsert(BreakSpec),
    /// Deletes a breakpoint of the front-end: `Done`. Fails: `no_such_thing`.
    BreakDelete {
        /// The front-end's number of the breakpoint.
        number: u32,
    },
    /// Enables or disables a breakpoint: `Done`. Fails: `no_such_thing`.
    BreakEnable {
        /// The front-end's number of the breakpoint.
        number: u32,
        /// True to enable the breakpoint, false to disable it.
        enabled: bool,
    },
    /// Resumes the tasks. The stop, exit or death that ends the run answers it, once per task. Fails:
    /// `already_running`, `not_running`.
    Continue,
    /// Runs one or more steps; answered like `Continue`.
    Step {
        /// The kind of step.
        kind: StepKind,
        /// Number of steps, 1 or more.
        count: u32,
    },
    /// Runs until the selected function returns; answered like `Continue`, with the returned value.
    Finish,
    /// Stops running tasks: `Done` when the task has stopped (its open run is answered too), or at once if it is
    /// already stopped. Fails: `not_running`, `not_stoppable`.
    Interrupt,
    /// The frames of the selected thread, innermost first: [`crate::Reply::Backtrace`].
    Backtrace(BacktraceSpec),
    /// The folded stacks of every thread, for merging: [`crate::Reply::Stacks`].
    Stacks {
        /// True for every frame of every thread, without folding.
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
        /// The thread's number in the task, from 1.
        number: u32,
    },
    /// Evaluates an expression: [`crate::Reply::Value`]. The value is not added to the value history.
    Evaluate {
        /// The expression, in the program's language.
        expression: String,
    },
    /// Evaluates an expression for its side effect, as gdb's `set var`: `Done`.
    SetVariable {
        /// An assignment, for example `x = 3`.
        expression: String,
    },
    /// Bytes for the program's standard input: `Done` when they are accepted. The stream is numbered: bytes below the
    /// position already accepted are skipped.
    Stdin {
        /// Position of the first byte of `bytes` in the stream, in bytes from 0.
        offset: u64,
        /// Input for the program; empty if only `eof` is set.
        bytes: Vec<u8>,
        /// True if the stream ends after them.
        eof: bool,
    },
    /// Requests the state of the tasks: [`crate::Reply::Status`].
    Status,
    /// Executes a command of gdb's own command line: [`crate::Reply::Text`].
    Console {
        /// The line, as a user would type it to gdb.
        line: String,
    },
    /// A GDB/MI command without a token, such as `-stack-info-depth`: [`crate::Reply::Mi`]. A run that it begins
    /// belongs to no command: its stop is an event. Fails: `bad_command` if it is no MI command.
    Mi {
        /// The command, beginning with `-`.
        line: String,
    },
    /// Changes or removes a breakpoint's condition: `Done`. Fails: `no_such_thing`, `gdb`.
    BreakCondition {
        /// The front-end's number of the breakpoint.
        number: u32,
        /// The new condition; `None` for none.
        condition: Option<String>,
    },
    /// Sets a breakpoint's ignore count: `Done`. Fails: `no_such_thing`.
    BreakIgnore {
        /// The front-end's number of the breakpoint.
        number: u32,
        /// Number of hits to ignore from now on.
        count: u32,
    },
    /// Replaces the commands of a breakpoint: `Done`. See [`BreakSpec::commands`]. Fails: `no_such_thing`,
    /// `bad_command` if a block has no end.
    BreakCommands {
        /// The front-end's number of the breakpoint.
        number: u32,
        /// Lines for gdb's command line; empty for no commands.
        lines: Vec<String>,
    },
    /// Lists the task's breakpoints, watchpoints and catchpoints that the front-end made, with their hit counts:
    /// [`crate::Reply::Breakpoints`].
    Breakpoints,
    /// Watches an expression: [`crate::Reply::Breakpoint`]. Fails: `gdb` (no such symbol, an expression that cannot
    /// be watched, no watch register left).
    WatchInsert(WatchSpec),
    /// Sets a catchpoint: [`crate::Reply::Breakpoint`]. Fails: `gdb`.
    CatchInsert(CatchSpec),
    /// Like `Continue`, but first sets the ignore count of the breakpoint at which the task is stopped: `count` is
    /// the N of gdb's `continue N`. Fails as `Continue`, and `no_such_thing` if the task is at no breakpoint.
    ContinuePast {
        /// The N of gdb's `continue N`, 1 or more; 1 is `Continue`.
        count: u32,
    },
    /// Runs to a location in the current frame, or without one forward past the current line; answered like
    /// `Continue`.
    Until {
        /// The location in gdb's syntax; `None` for the next line in the current frame.
        location: Option<String>,
    },
    /// Runs to a location, or until the current frame returns; answered like `Continue`.
    Advance {
        /// The location in gdb's syntax.
        location: String,
    },
    /// Jumps to another location and continues there; answered like `Continue`.
    Jump {
        /// The location in gdb's syntax.
        location: String,
    },
    /// Continues and delivers a signal; answered like `Continue`.
    ContinueSignal {
        /// The signal's name, or `0` to discard the one that the task stopped for.
        signal: String,
    },
    /// Runs backward through gdb's recording (`record`) to the last breakpoint, or to the beginning of the recording;
    /// answered like `Continue`.
    ReverseContinue,
    /// Steps backward through gdb's recording; answered like `Continue`.
    ReverseStep {
        /// The kind of step.
        kind: StepKind,
        /// Number of steps, 1 or more.
        count: u32,
    },
    /// Calls a function of the program: [`crate::Reply::Value`], or `Done` if it returns nothing. Fails: `gdb`, also
    /// if the call is stopped on its way; the task then stays in it.
    Call {
        /// The call expression, for example `reset (grid)`.
        expression: String,
    },
    /// Leaves the selected frame without running the rest of it: [`crate::Reply::Frame`], the frame of the caller.
    Return {
        /// The return value, an expression; `None` if the function returns nothing.
        value: Option<String>,
    },
    /// Reads memory: [`crate::Reply::Memory`]. Fails: `gdb` if no byte can be read, `limit`.
    MemoryRead {
        /// Address of the first byte, an expression.
        address: String,
        /// Number of bytes, at most [`crate::reply::MEMORY_BYTES_MAX`].
        length: u32,
    },
    /// Writes memory: `Done`. Fails: `gdb` if the memory cannot be written.
    MemoryWrite {
        /// Address of the first byte, an expression.
        address: String,
        /// The bytes to write, at most [`crate::reply::MEMORY_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// Registers of the selected frame: [`crate::Reply::Variables`]. In the natural form an integer follows its
    /// hexadecimal form, as in gdb's `info registers`. Fails: `no_such_thing` for a name that the processor does not
    /// have.
    Registers {
        /// The registers, without `$`; all but the vector registers if empty.
        names: Vec<String>,
        /// Output format of the values.
        format: ValueFormat,
    },
    /// The instructions of a function: [`crate::Reply::Instructions`].
    Disassemble {
        /// An expression for an address in the function; `None` for the selected frame's function.
        address: Option<String>,
    },
    /// Lines of source, as in gdb's `list`: [`crate::Reply::Source`]. Each task keeps its position, as gdb does.
    List {
        /// The argument of gdb's `list`: empty, `-`, `12`, `5,9`, `solve`, `halo.c:40`.
        what: String,
    },
    /// The loaded shared libraries: [`crate::Reply::Libraries`].
    Libraries,
    /// Lists the settings of signals: [`crate::Reply::Signals`]. Fails: `gdb` for an unknown one.
    Signals {
        /// The signals, by name; all if empty.
        names: Vec<String>,
    },
    /// Changes the handling of signals: [`crate::Reply::Signals`], the handling after the change. Fails: `gdb` for an
    /// unknown signal, `unsupported` for SIGTRAP and SIGSTOP, which the debugger needs itself.
    SignalHandle {
        /// The names of the signals: `SIGUSR1`.
        names: Vec<String>,
        /// True to stop the task at the signal; `None` leaves the setting as it is.
        stop: Option<bool>,
        /// True to report the signal; `None` leaves the setting as it is.
        print: Option<bool>,
        /// True to deliver the signal to the program; `None` leaves the setting as it is.
        pass: Option<bool>,
    },
    /// The type of an expression or of a type name: [`crate::Reply::Text`], in gdb's notation: `type = int`.
    TypeOf {
        /// An expression in the program's language, or a type name.
        expression: String,
        /// True for the definition, as in gdb's `ptype`; false for the name only, as in `whatis`.
        full: bool,
    },
    /// Creates a variable object, whose children are fetched on demand: [`crate::Reply::VarObject`]. Fails: `gdb`,
    /// `limit`.
    VarCreate {
        /// The name of the new object: a letter, then letters, digits, `_`.
        name: String,
        /// The expression, evaluated in the selected frame.
        expression: String,
    },
    /// Children of a variable object: [`crate::Reply::VarChildren`]. Fails: `no_such_thing`.
    VarChildren {
        /// Name of the variable object, or of one of its children.
        name: String,
        /// Index of the first child, from 0.
        from: u32,
        /// Maximum number of children to list, 1 or more.
        count: u32,
    },
    /// Assigns to a variable object: [`crate::Reply::Value`]. Fails: `no_such_thing`, `gdb`.
    VarAssign {
        /// Name of the variable object.
        name: String,
        /// The new value, an expression in the program's language.
        value: String,
    },
    /// Deletes a variable object and its children: `Done`. Fails: `no_such_thing`.
    VarDelete {
        /// Name of the variable object.
        name: String,
    },
    /// Opens core files, one per task: [`crate::Reply::Stopped`] with [`crate::reply::StopReason::Core`]. Such a task
    /// can be inspected and detached, but not run. Fails: `no_gdb`, `no_program`, `not_found`, `gdb`.
    LoadCore(CoreSpec),
    /// Compares the memory that a gdb for this program would need with the free memory on the task's host:
    /// [`crate::Reply::Room`]. Nothing is started. Fails: `no_program`.
    Room(StartSpec),
    /// Evaluates an expression as gdb's `print` does: [`crate::Reply::Value`]. The value is added to the task's value
    /// history, as `$`. Each task has its own history numbers, which the answer does not contain.
    Print {
        /// The format letters of `print/`: `x`, `4c`; empty for the natural form.
        format: String,
        /// The expression, in the program's language; options of gdb's `print` may precede it.
        expression: String,
    },
    /// Reads a task's stacks, its waits and its changes since the probe before, in one inspection:
    /// [`crate::Reply::Probe`], merged by [`crate::rules::RULE_PROBE`]. A running task has no stacks and no waits. The
    /// selected thread and frame do not change. Fails: `not_running` if there is no process.
    Probe(ProbeSpec),
    /// Memory of the task's process, as the kernel counts it: [`crate::Reply::Usage`]. Running tasks answer too.
    /// Fails: `not_running` if there is no process.
    Usage,
    /// The sends and receives of the task's MPI library that have not completed: [`crate::Reply::Queues`], merged by
    /// [`crate::rules::RULE_QUEUES`]. The debug library that belongs to the MPI library reads them. Fails: `running`,
    /// `not_running`. Fails also with `unsupported`, if the MPI library has no debug library or its layout is not
    /// known.
    Queues,
    /// Inspects processes without a debugger, each stopped only for an instant. The reply has their folded stacks:
    /// [`crate::Reply::Stacks`], merged as those are; or their state: [`crate::Reply::Probe`]. Fails: `not_running`
    /// if the process has ended, `unsupported` if only a gdb could do it.
    Look(LookSpec),
    /// Like `Look`, repeated for some time: [`crate::Reply::Samples`], merged by [`crate::rules::RULE_SAMPLES`]. A
    /// cancel answers with the samples so far. Fails as `Look`.
    Sample(SampleSpec),
    /// Stops a program that runs without a gdb, until a gdb attaches or it is killed: [`crate::Reply::Done`].
    /// Inspections remain possible. Other tasks answer at once.
    Hold,
    /// Like `Usage`, also for processes that no gdb was ever attached to.
    ProcessUsage {
        /// Pairs of task number and pid.
        pids: Vec<(u32, i32)>,
    },
}

impl Command {
    /// True for commands that let a task run; their answer is the event that ends the run.
    #[must_use]
    pub fn is_run_control(&self) -> bool {
        matches!(
            self,
            Self::Start(_)
                | Self::Continue
                | Self::Step { .. }
                | Self::Finish
                | Self::ContinuePast { .. }
                | Self::Until { .. }
                | Self::Advance { .. }
                | Self::Jump { .. }
                | Self::ContinueSignal { .. }
                | Self::ReverseContinue
                | Self::ReverseStep { .. }
        )
    }

    /// The command's name as used in logs and `--json`.
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
            Self::Mi { .. } => "mi",
            Self::BreakCondition { .. } => "break_condition",
            Self::BreakIgnore { .. } => "break_ignore",
            Self::BreakCommands { .. } => "break_commands",
            Self::Breakpoints => "breakpoints",
            Self::WatchInsert(_) => "watch_insert",
            Self::CatchInsert(_) => "catch_insert",
            Self::ContinuePast { .. } => "continue_past",
            Self::Until { .. } => "until",
            Self::Advance { .. } => "advance",
            Self::Jump { .. } => "jump",
            Self::ContinueSignal { .. } => "continue_signal",
            Self::ReverseContinue => "reverse_continue",
            Self::ReverseStep { .. } => "reverse_step",
            Self::Call { .. } => "call",
            Self::Return { .. } => "return",
            Self::MemoryRead { .. } => "memory_read",
            Self::MemoryWrite { .. } => "memory_write",
            Self::Registers { .. } => "registers",
            Self::Disassemble { .. } => "disassemble",
            Self::List { .. } => "list",
            Self::Libraries => "libraries",
            Self::Signals { .. } => "signals",
            Self::SignalHandle { .. } => "signal_handle",
            Self::TypeOf { .. } => "type_of",
            Self::VarCreate { .. } => "var_create",
            Self::VarChildren { .. } => "var_children",
            Self::VarAssign { .. } => "var_assign",
            Self::VarDelete { .. } => "var_delete",
            Self::LoadCore(_) => "load_core",
            Self::Room(_) => "room",
            Self::Print { .. } => "print",
            Self::Probe(_) => "probe",
            Self::Usage => "usage",
            Self::Queues => "queues",
            Self::Look(_) => "look",
            Self::Sample(_) => "sample",
            Self::Hold => "hold",
            Self::ProcessUsage { .. } => "process_usage",
        }
    }
}
