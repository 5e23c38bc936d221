//! The parts of `sdm-server` that its `main` calls.

mod announce;
pub mod arguments;
mod backend;
pub mod doctor;
mod fork;
mod local_tasks;
mod network;
mod outbox;
mod pmix;
mod pmix_state;
pub mod run;
mod shim;
mod spawned_programs;
mod staged_binary;
