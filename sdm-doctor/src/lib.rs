//! What SDM needs of a machine, and whether it is there: each [`Finding`] names its [`Check`], says what was found,
//! and what to do where that is bad. `sdm doctor` shows them for this machine, and `sdm-server --doctor` tells them of
//! the machine that it is on, a line each.
//!
//! Nothing here changes the machine. What the kernel says is read below a root that tests plant ([`Machine`]); a gdb is
//! tried on a process of our own ([`gdb::Trial`]).

mod check;
mod finding;
pub mod gdb;
mod machine;
mod room;
mod told;

pub use check::Check;
pub use finding::{Finding, Verdict};
pub use machine::Machine;
pub use told::{Told, fuzz_told};
