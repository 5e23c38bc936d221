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
mod breakpoint_spec;
mod client_breakpoints;
mod connection;
mod console;
mod deferred_requests;
mod error;
mod exit_state;
pub mod frame;
mod fuzz;
mod group;
mod grouping;
mod jobs;
mod launch;
mod locations;
mod member_expressions;
mod memory;
mod message;
mod os_threads;
mod output;
mod pages;
mod references;
mod repl;
mod source;
mod stop_coalescing;
mod tasks;
mod thread_ids;
mod values;

pub use action::{Action, Opened, Opening, Ticket};
pub use adapter::Adapter;
pub use error::RequestError;
pub use fuzz::fuzz_client;
