//! The gdb backend: drives tasks through GDB/MI.
//!
//! [`GdbBackend`] implements [`sdm_debug::Backend`] with one gdb per task. Below it, each on its
//! own: [`mi`] reads GDB/MI, the driver is the sans-I/O state machine of one gdb, the child and
//! stdio modules start gdb and the program so that the program sees what it sees without SDM.
//!
//! # What the program sees
//!
//! Arguments, environment, directory, limits, signal mask, ignored signals and inherited descriptors
//! are those of a run without SDM. What differs: `argv[0]` is the program's absolute path; gdb is its
//! parent; it leads a session of its own whose terminal is a pty of ours, which is its standard
//! output (its error and input are pipes, or input is `/dev/null`) unless it has this process's own streams
//! ([`InheritedStreams`]); addresses are not randomised, as
//! always under gdb, so that equal tasks print equal pointers; and the two signals that the C library
//! keeps for itself (32, 33) have their default action. A started program that is detached loses
//! that terminal when the backend ends.
//!
//! It never decides by gdb's message text, never lets a signal of its own reach the program, and
//! never leaves a process behind: gdb is ended by closing its input, and kills what it started.

mod backend;
mod child;
mod driver;
mod handlers;
mod host;
mod liveness;
mod looks;
mod memory_estimate;
pub mod mi;
mod shared_gdb;
mod shim;
mod slot;
mod sources;
mod stdio;
mod sys;
mod task;
mod timers;
mod variables;

pub use backend::{GdbBackend, GdbConfig};
pub use child::{
    Binding, COMMAND_LINE_BYTES_MAX, Completion, ExecFailure, SignalState, StartConfig,
    UnknownCompletion, exec_program, gdb_arguments,
};
pub use driver::VALUE_BYTES_MAX;
pub use sdm_inspect::looker::run as run_looker;
pub use shim::{Channel, Shim, ShimEvent};
pub use stdio::{InheritedStreams, STDIN_BUFFER_BYTES_MAX};
pub use variables::Variables;
