//! The Debug Adapter Protocol over a session of many tasks, without I/O.
//!
//! An [`Adapter`] is one connection with an editor. Its inputs are the client's bytes, the session's events and the
//! time. Its outputs are bytes for the client ([`Adapter::poll_output`]) and actions on the session
//! ([`Adapter::poll_action`]). A thread of the protocol is a class of tasks with equal stacks, or one task.
//!
//! The protocol is that of <https://microsoft.github.io/debug-adapter-protocol/specification>, version 1.71.

#![forbid(unsafe_code)]

mod action;
mod adapter;
mod answers;
mod arguments;
mod beforehand;
mod connection;
mod console;
mod distinct;
mod ending;
mod error;
pub mod frame;
mod fuzz;
mod group;
mod grouping;
mod jobs;
mod launch;
mod memory;
mod message;
mod os_threads;
mod output;
mod places;
mod points;
mod references;
mod repl;
mod rows;
mod settling;
mod source;
mod tasks;
mod values;
mod wanted;
mod whole;

pub use action::{Action, Opened, Opening, Ticket};
pub use adapter::Adapter;
pub use error::RequestError;
pub use fuzz::fuzz_client;
