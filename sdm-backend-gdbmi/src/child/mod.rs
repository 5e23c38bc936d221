//! The gdb process and what it needs to be started.

mod autoload;
mod begin;
mod binding;
mod gdb;
mod launch;
mod memcheck;
mod orders;
mod preload;
mod program;
mod signals;
mod starter;
mod streams;

pub use begin::StartConfig;
pub use binding::Binding;
pub use gdb::gdb_arguments;
pub use launch::COMMAND_LINE_BYTES_MAX;
pub use preload::{Completion, UnknownCompletion};
pub use signals::SignalState;
pub use starter::{ExecFailure, exec_program};

pub(crate) use autoload::MARK as SCRIPT_MARK;
pub(crate) use begin::{Begun, begin};
pub(crate) use gdb::{Around, GdbChild, LastWords, handles, is_handle};
pub(crate) use launch::{Environment, Launch, Outfit, program_environment};
pub(crate) use memcheck::program_of;
pub(crate) use orders::Source;
pub(crate) use preload::{Preload, is_loaded};
pub(crate) use program::{find_directory, find_gdb, find_program};
pub(crate) use starter::{name_of, name_of_pipe};
pub(crate) use streams::{ProgramEnds, Streams, WayToStreams};
