//! Facilities of the machine for this project's processes.
//!
//! - [`files`]: files, directories and programs where other users could interfere.
//! - [`programs`]: the only way to start a program; [`run_bounded::run`] runs one within limits.
//! - [`poured`]: a file that a program makes of another one, within limits.
//! - [`launcher_env`]: the number that a runtime gave this process.
//! - [`proc`]: the kernel's facts about processes.
//! - [`secret::SecretFile`]: a file for this user alone, removed when its process ends.
//! - [`fd_server::FdServer`]: holds descriptors for other processes.
//! - [`guard_process::GuardProcess`]: a helper process that ends with this one.
//! - [`peer::Peer`]: the process at the other end of a socket.
//!
//! Nothing here knows the tree, its key, or debugging.

pub mod fd_server;
pub mod files;
pub mod guard_process;
pub mod launcher_env;
mod lines;
pub mod listener;
pub mod look_socket;
mod owner;
pub mod pagemap;
pub mod peer;
pub mod poured;
pub mod proc;
pub mod process_memory;
pub mod programs;
pub mod rank_program;
pub mod resource_limits;
pub mod run_bounded;
pub mod search_path;
pub mod secret;
mod signal;
pub mod sock_diag;
pub mod stream;
mod sys;
pub mod tcp_peer;

pub use programs::own_program;
pub use signal::signal_name;
pub use sys::{
    REGISTER_WORDS, began_without_sigpipe, close_all_but, close_inherited, confine,
    copy_descriptor, goes_with_its_parent, hand_on, has_capabilities, in_own_session, pidfd_open,
    registers, set_nonblocking, signal_process, tcp_traffic, watch_child,
};
