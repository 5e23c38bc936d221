//! The reason and the place of a task's stop, as they are in replies and events.

use serde::{Deserialize, Serialize};

use super::{Frame, Value};

/// The reason and the location of a task's stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stop {
    /// The reason of the stop.
    pub reason: StopReason,
    /// The selected frame; `None` if unknown. Its level is 0 also if the task stopped inside a runtime, since the depth
    /// inside differs between tasks that wait in the same place.
    pub frame: Option<Frame>,
    /// The outermost runtime function above the selected frame: `MPI_Recv`. `None` if the stop was not inside a
    /// runtime. Inside a runtime the innermost user frame is selected.
    pub inside: Option<String>,
    /// The source line of the frame; `None` if unknown.
    pub source: Option<String>,
}

/// The call in the text of [`StopReason::Internal`], without its exit code and without the error for which MPI makes
/// it.
#[must_use]
pub fn call_of(what: &str) -> &str {
    let end = [" for ", " with code "]
        .iter()
        .filter_map(|word| what.find(word));
    &what[..end.min().unwrap_or(what.len())]
}

/// The reason of a task's stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StopReason {
    /// Stopped at `main` after the start.
    AtMain,
    /// Stopped at the entry point, because gdb finds no `main` in the program.
    AtEntry,
    /// The front-end's breakpoint with this number.
    Breakpoint {
        /// The front-end's number of the breakpoint.
        number: u32,
    },
    /// The end of a step.
    StepEnd,
    /// The return of the selected function, after `finish`.
    FunctionFinished {
        /// The returned value; `None` if the function returns nothing.
        value: Option<Value>,
    },
    /// An interrupt by the front-end.
    Interrupted,
    /// A signal at which the task stops.
    Signal {
        /// The name of the signal, for example `SIGSEGV`.
        name: String,
        /// The meaning of the signal, for example `Segmentation fault`.
        meaning: String,
    },
    /// A stop at an internal breakpoint of SDM: the program is about to abort, or to exit before `MPI_Finalize`.
    Internal {
        /// The imminent call: `MPI_Abort with code 9`, `MPI_Abort for MPI_ERR_RANK (invalid rank)`, `abort`,
        /// `_exit before MPI_Finalize with code 7`. [`call_of`] is the call alone.
        what: String,
    },
    /// A stop by an attach.
    Attached,
    /// Any other reason, in gdb's words.
    Other(String),
    /// A watchpoint of the front-end.
    Watchpoint(Box<WatchHit>),
    /// A watched variable is out of scope, as its frame has returned. The watchpoint is deleted.
    WatchpointScope {
        /// The front-end's number of the watchpoint.
        number: u32,
        /// The watched expression.
        expression: String,
    },
    /// The front-end's catchpoint with this number.
    Catch {
        /// The front-end's number of the catchpoint.
        number: u32,
        /// The caught event.
        hit: CatchHit,
    },
    /// The location of `until` or `advance` was reached.
    LocationReached,
    /// The end or the beginning of gdb's recording was reached.
    NoHistory,
    /// A core file, with the signal that ended the program, if recorded.
    Core {
        /// The signal's name; empty if unknown.
        signal: String,
        /// The signal's meaning; empty if unknown.
        meaning: String,
    },
    /// An error found by a sanitizer, by Valgrind or by the MPI check.
    Finding(Box<Finding>),
}

impl StopReason {
    /// True for a stop after which a program does not continue by itself: a signal, an abort or early exit, a core file
    /// that a signal left. Also true for an error that a sanitizer or Valgrind has found. False for an error of the MPI
    /// check, and for a core file of a process that a debugger held.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        match self {
            Self::Signal { .. } | Self::Internal { .. } => true,
            Self::Finding(finding) => !finding.is_of_check(),
            Self::Core { signal, .. } => !["", "SIGTRAP", "SIGSTOP"].contains(&signal.as_str()),
            _ => false,
        }
    }

    /// True for an error in the use of MPI that the MPI check has found.
    #[must_use]
    pub fn is_mpi_error(&self) -> bool {
        matches!(self, Self::Finding(finding) if finding.is_of_check())
    }
}

/// An error that a sanitizer, Valgrind or the MPI check has found, without parts that differ between tasks in the same
/// state (addresses, pids, values).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// The tool that has found the error: `AddressSanitizer`.
    pub tool: String,
    /// The kind of error, in the tool's words: `heap-buffer-overflow`.
    pub kind: String,
    /// The faulty memory access; `None` if the error is not a memory access, or if the access is unknown.
    pub access: Option<Access>,
}

impl Finding {
    /// The name of the tool that finds errors in the use of MPI.
    pub const MPI_CHECK: &str = "MPI check";

    /// True for an error in the use of MPI: the program stops before the faulty call, and can continue.
    #[must_use]
    pub fn is_of_check(&self) -> bool {
        self.tool == Self::MPI_CHECK
    }
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Access {
    /// True for a write access.
    pub is_write: bool,
    /// Number of bytes accessed; 0 if unknown.
    pub size_bytes: u64,
}

/// A watchpoint's hit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WatchHit {
    /// The front-end's number of the watchpoint.
    pub number: u32,
    /// The watched expression.
    pub expression: String,
    /// The value before; `None` if it has not changed.
    pub old: Option<Value>,
    /// The present value; `None` if it could not be read.
    pub new: Option<Value>,
}

/// The event that a catchpoint has caught, without pids, as they differ between tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CatchHit {
    /// `fork` has created a child.
    Fork,
    /// `vfork` has created a child.
    Vfork,
    /// The process has executed another program.
    Exec {
        /// The file name of the program, without directories.
        program: String,
    },
    /// A system call begins.
    SyscallEntry {
        /// The name or number of the system call.
        name: String,
    },
    /// A system call has returned.
    SyscallReturn {
        /// The name or number of the system call.
        name: String,
    },
    /// A signal was received.
    Signal {
        /// The signal's name: `SIGSEGV`.
        name: String,
    },
    /// A C++ exception: `throw`, `rethrow` or `catch`.
    Exception {
        /// The kind of event: `throw`, `rethrow` or `catch`.
        stage: String,
    },
    /// Libraries were loaded or unloaded.
    Libraries {
        /// Names of the loaded libraries, without directories.
        loaded: Vec<String>,
        /// Names of the unloaded libraries, without directories.
        unloaded: Vec<String>,
    },
}
