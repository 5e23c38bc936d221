//! The Debug Adapter Protocol over a session of many tasks, without I/O.
//!
//! An [`Adapter`] is one connection with an editor. Bytes of the client, events of the session and the time go in; bytes for
//! the client ([`Adapter::poll_output`]) and what is to be done with the session ([`Adapter::poll_action`]) come out. What
//! the protocol calls a thread is a class of tasks that stand alike, or one task.
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
