//! The gdb backend: drives tasks through GDB/MI.
//!
//! [`GdbBackend`] implements [`sdm_debug::Backend`] with one gdb per task, or one for several. [`sdm_gdb`] is the state
//! machine of one gdb, without I/O. [`sdm_mi`] parses gdb's output, and [`sdm_child`] starts gdb and the program.
//!
//! The driver decides by gdb's message text only where MI has no code for it. The backend never lets a signal of its
//! own reach the program. It never leaves a process behind: gdb ends when its input is closed, and then kills the
//! programs that it started.

mod backend;
mod gdb_instance;
mod host;
mod liveness;
mod looks;
mod memory_estimate;
mod prober;
mod samples;
mod seized_looks;
mod shared_gdb;
mod sources;
mod task;
mod timers;

pub use backend::{GdbBackend, GdbConfig};
pub use sdm_gdb::VALUE_BYTES_MAX;

/// Runs a looker until the end of its input, if this process was started as a looker; otherwise `None`.
#[must_use]
pub fn run_looker() -> Option<std::io::Result<()>> {
    sdm_inspect::looker::run(&mut prober::Prober::default())
}
