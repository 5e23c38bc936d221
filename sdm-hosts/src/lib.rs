//! Hosts, and the processes of a job that runs on them.
//!
//! A [`HostShare`] is a host that a person names; [`hostlist`] has many in few words. [`job::find`] looks up what a [`job::Target`] means on this machine and gives
//! the [`job::Job`]: which process is which rank, and where. [`mpi::Linked`] says whose MPI a program
//! calls.
//!
//! Nothing here knows the tree or its key, starts a server, or changes a process that it looks at.

pub mod hostlist;
pub mod job;
mod libraries;
pub mod mpi;
pub mod pmix;
mod share;
mod symbols;

pub use share::{HostShare, HostShareError};
