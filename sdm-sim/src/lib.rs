//! The whole tree in one process under a virtual clock and a seeded network.
//!
//! The members are the real ones: [`sdm_core::member::Member`] with its links, handshakes and
//! encryption. What is simulated is the clock, the network and what stands behind a server. A
//! seed decides everything: the shape of the tree, how bytes travel, what the user asks, and what
//! goes wrong: see [`run`]. First there are faults, and no law may be broken; then everything is
//! put right, and whoever lives must be found, answer and end.
//!
//! The same seed gives the same run, and so the same [`Report::hash`].

mod exec;
mod fault_kinds;
mod faults;
mod laws;
mod ledger;
mod log;
mod million;
mod net;
mod rng;
mod run;
mod spec;
mod swarm;
mod terminals;
mod user;
mod wire;
mod world;

pub use ledger::Violation;
pub use million::{Cost, Meters, Pace, Sized, measure, round_trip};
pub use rng::Rng;
pub use run::{Broken, Options, Report, run};
