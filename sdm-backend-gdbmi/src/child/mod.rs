//! The gdb process and what it needs to be started.

mod binding;
mod gdb;
mod launch;
mod program;
mod signals;

pub use binding::Binding;
pub use gdb::gdb_arguments;
pub use launch::COMMAND_LINE_BYTES_MAX;
pub use signals::SignalState;

pub(crate) use gdb::{GdbChild, LastWords};
pub(crate) use launch::{Environment, Launch, Redirects, program_environment};
pub(crate) use program::{find_directory, find_gdb, find_program};
pub(crate) use signals::signals_of;
