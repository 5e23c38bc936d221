//! Hosts, and the processes of a job that runs on them.
//!
//! A [`HostShare`] is a host that the user names; [`hostlist`] abbreviates many names. [`job::find`] resolves a
//! [`job::Target`] on this machine to a [`job::Job`]: its processes with their ranks and hosts. [`mpi::Linked`] is
//! the MPI implementation that a program uses.
//!
//! This crate does not use the tree or its key, starts no server, and does not change the processes that it reads.

mod host_names;
pub mod hostlist;
pub mod job;
mod libraries;
pub mod mpi;
pub mod pmix;
mod symbols;

/// Parses arbitrary bytes as a program, as the loader's cache, and as a launcher's memory. Checks that nothing panics.
#[doc(hidden)]
pub fn fuzz_objects(bytes: &[u8]) {
    libraries::fuzz(bytes);
    job::fuzz_mpir(bytes);
}

/// Parses arbitrary text as host lists and host files. Checks that nothing panics, the result is bounded, and a list
/// survives formatting and parsing.
#[doc(hidden)]
pub fn fuzz_hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    hostlist::fuzz(&text);
    for shares in [HostShare::list(&text), HostShare::file(&text)] {
        let hosts = shares.unwrap_or_default().into_iter();
        hosts.for_each(|share| assert!(!share.host.is_empty()));
    }
}

pub use host_names::{HostShare, HostShareError};
