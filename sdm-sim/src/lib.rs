//! The whole tree in one process, under a virtual clock and on a seeded network.
//!
//! The members are the real ones: [`sdm_core::member::Member`] with its links, handshakes and encryption. Simulated are
//! the clock, the network, and the tasks of a server. A seed decides everything (see [`run`]): the shape of the tree,
//! the delays of the bytes, the user's commands, and the faults. In the first phase there are faults, and no invariant
//! may be violated. Then everything is repaired, and each survivor must be found, answer and end.
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
