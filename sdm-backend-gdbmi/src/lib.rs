//! The gdb backend: drives tasks through GDB/MI.
//!
//! [`GdbBackend`] implements [`sdm_debug::Backend`] with one gdb per task, or for several. [`sdm_gdb`] is the state machine
//! of one gdb, without I/O; [`sdm_mi`] reads what it says, [`sdm_child`] starts it and the program.
//!
//! It never decides by gdb's message text, never lets a signal of its own reach the program, and
//! never leaves a process behind: gdb is ended by closing its input, and kills what it started.

mod backend;
mod handlers;
mod host;
mod liveness;
mod looks;
mod memory_estimate;
mod sampling;
mod shared_gdb;
mod slot;
mod sources;
mod task;
mod timers;

pub use backend::{GdbBackend, GdbConfig};
pub use sdm_gdb::VALUE_BYTES_MAX;
pub use sdm_inspect::looker::run as run_looker;
