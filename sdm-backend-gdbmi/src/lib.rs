//! The gdb backend: drives tasks through GDB/MI.
//!
//! [`GdbBackend`] implements [`sdm_debug::Backend`] with one gdb per task. Below it, each on its
//! own: [`mi`] reads GDB/MI, the driver is the sans-I/O state machine of one gdb, the child and
//! stdio modules start gdb and the program so that the program sees what it sees without SDM.
//!
//! It never decides by gdb's message text, never lets a signal of its own reach the program, and
//! never leaves a process behind: gdb is ended by closing its input, and kills what it started.

mod backend;
mod child;
mod driver;
mod host;
pub mod mi;
mod process;
mod stdio;
mod sys;
mod task;

pub use backend::{GdbBackend, GdbConfig};
pub use child::{COMMAND_LINE_BYTES_MAX, SignalState};
pub use driver::VALUE_BYTES_MAX;
pub use stdio::STDIN_BUFFER_BYTES_MAX;
