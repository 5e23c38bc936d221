//! Starts a program, or a gdb for a program, with the same environment as without SDM. This process starts it, or the
//! process that a launcher has started for a rank ([`Shim`]).
//!
//! # What the program sees
//!
//! Arguments, environment, directory, limits, signal mask, ignored signals and inherited descriptors are those of a run
//! without SDM. These differ:
//! - `argv[0]` is the program's absolute path.
//! - gdb is its parent. In a batch its parent is a [`Shim`].
//! - The program is in gdb's session, with a process group of its own. In a batch it leads a session of its own.
//! - Its standard output is a pseudo-terminal of SDM; its error and input are pipes, or its input is `/dev/null`. It may
//!   have this process's own streams instead ([`InheritedStreams`]).
//! - Addresses are not randomised, as always under gdb, so that equal tasks print equal pointers.
//! - The two signals that the C library reserves (32, 33) have their default action.
//! - SIGTRAP is neither blocked nor ignored: a debugger sees nothing of a program that blocks it.
//!
//! A started program that is detached loses that terminal when the backend ends. This crate never leaves a process
//! behind.

mod autoload;
mod binding;
mod check_library;
mod gdb;
mod gdb_start;
mod handlers;
mod launch;
mod memcheck;
mod preload;
mod program;
mod shim;
mod signals;
mod starter;
mod starter_args;
mod stdio;
mod streams;
mod sys;
mod tracer;
mod variables;

pub use autoload::MARK as SCRIPT_MARK;
pub use binding::Binding;
pub use gdb::{GdbChild, GdbEnvironment, LastWords, gdb_arguments, handles, is_handle};
pub use gdb_start::{StartConfig, StartedGdb, begin};
pub use handlers::may_have_own_handlers;
pub use launch::{COMMAND_LINE_BYTES_MAX, Launch};
pub use memcheck::program_of;
pub use preload::{Completion, Preload, UnknownCompletion, is_loaded};
pub use program::{find_directory, find_program};
pub use shim::{
    Channel, LocalShim, Shim, ShimEvent, ShimLink, ShimSays, StartRequest, Started, ToShim,
    fuzz_shim, run_shim, shim_examples,
};
pub use signals::SignalState;
pub use starter::{ExecFailure, exec_program};
pub use stdio::{
    InheritedStreams, InputStream, OutputStream, ReadMore, STDIN_BUFFER_BYTES_MAX, StdinError,
};
pub use streams::Streams;
pub use sys::{adopt_orphans, reap, signal_thread};
pub use tracer::{Cause, EndingCall, Freed, MpiSymbols, ProgramNews};
pub use variables::Variables;

pub(crate) use launch::{Environment, Outfit, program_environment};
pub(crate) use program::find_gdb;
pub(crate) use starter::{name_of, name_of_pipe};
pub(crate) use starter_args::Source;
pub(crate) use streams::{ProgramEnds, StreamPaths};
