//! Checks whether a machine has what SDM needs.
//!
//! Each [`Finding`] names its [`Check`] and has the present state, with advice if that is bad or unknown. `sdm doctor`
//! shows the findings for this machine. `sdm-server --doctor` prints those of its own machine, a line each.
//!
//! Nothing here changes the machine. The kernel's files are read below a root directory that tests can replace
//! ([`Machine`]). A gdb is tried on a process of SDM's own ([`gdb::Trial`]).

mod check;
mod finding;
pub mod gdb;
mod host_report;
mod looks;
mod machine;
mod resource_limits;

pub use check::Check;
pub use finding::{Finding, Verdict};
pub use host_report::{ReportLine, fuzz_told};
pub use looks::looks;
pub use machine::Machine;
