//! The runtime controller: defined clusters, and a background process for each started one.
//!
//! A cluster is a resource manager somewhere ([`Definition`]). Starting it starts a background process (the program
//! `sdm-rm`, [`process`]), which starts the manager's agent here or through ssh ([`remote`]), controls it
//! ([`controller`]) and keeps the elements that it reports ([`store`]). Clients ask that process over a socket of
//! the user's ([`ask()`]).
//!
//! The layers are those of "PTP runtime platform, Runtime Controller": resource manager ([`process`]), runtime system
//! ([`controller`]), remote proxy runtime ([`remote`]), proxy runtime client and proxy client ([`sdm_runtime::wire`]).

#![forbid(unsafe_code)]

mod agent;
pub mod agent_error;
mod answer;
mod client;
mod connection;
pub mod controller;
mod definition;
mod error;
pub mod json_line;
mod name;
mod open_command;
pub mod process;
mod queries;
pub mod remote;
mod socket_path;
pub mod store;

pub use answer::{
    Answer, AttributeDefinition, Group, Look, ManagerView, OTHER_AGE_MAX, OWN_AGE_MAX, Question,
    Set,
};
pub use client::{ask, is_running, start};
pub use definition::{Clusters, Definition};
pub use error::RmError;
pub use json_line::fuzz_lines;
pub use sdm_runtime::wire::event::Kind;
