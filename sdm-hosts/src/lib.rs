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

/// Feeds arbitrary bytes to the readers of programs, of the loader's index and of a launcher's memory: no panic.
#[doc(hidden)]
pub fn fuzz_objects(bytes: &[u8]) {
    libraries::fuzz(bytes);
    job::fuzz_mpir(bytes);
}

/// Feeds arbitrary text to the readers of host lists and host files: no panic, bounded, and what was read is written and read again
/// alike.
#[doc(hidden)]
pub fn fuzz_hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    hostlist::fuzz(&text);
    for shares in [HostShare::list(&text), HostShare::file(&text)] {
        let hosts = shares.unwrap_or_default().into_iter();
        hosts.for_each(|share| assert!(!share.host.is_empty()));
    }
}

pub use share::{HostShare, HostShareError};
