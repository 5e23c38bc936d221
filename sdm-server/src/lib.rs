//! The parts of `sdm-server`, apart from its `main`.

mod announce;
pub mod arguments;
mod backend;
mod copy;
pub mod doctor;
mod fork;
mod hosted;
mod network;
mod own_tasks;
mod pmix;
pub mod run;
mod said;
mod shim;
mod spawning;
