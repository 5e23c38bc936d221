//! What `sdm-server` is made of, apart from its arguments and its wiring.

mod announce;
mod backend;
mod copy;
mod fork;
mod network;
pub mod run;
