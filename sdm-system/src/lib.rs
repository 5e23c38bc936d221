//! What a process finds on its machine.
//!
//! A [`secret::SecretFile`] is there for this user alone, as long as its process wants it. [`files`] opens, writes and looks up files, folders and programs where another user could have had a hand; [`programs`] is
//! the one way to start a program. An
//! [`identity::Identity`] is the number that a runtime gave a process, read from the variables that it set, or refused with an
//! [`identity::IdentityError`]. [`bounded::run`] asks a program something within bounds, and a
//! [`lender::Lender`] lends others what this process may not show; it is an [`attendant::Attendant`], which goes with whoever
//! has started it. A [`peer::Peer`] is who is at the other end of a socket. [`proc`] reads what the kernel says of processes.
//!
//! Nothing here knows the tree, its key, or debugging.

pub mod attendant;
pub mod bounded;
pub mod files;
pub mod identity;
pub mod lender;
mod lines;
pub mod listening;
mod owner;
pub mod pagemap;
pub mod peer;
pub mod proc;
pub mod programs;
pub mod room;
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
    close_inherited, confine, copy_descriptor, goes_with_its_parent, hand_on, pidfd_open,
    set_nonblocking, signal_pidfd, tcp_traffic,
};
