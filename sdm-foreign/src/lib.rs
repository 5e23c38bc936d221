//! Messages between the program `sdm-pmix`, which loads foreign libraries, and the processes that start it.
//!
//! Foreign libraries are loaded by `sdm-pmix` alone, so that their faults cost that process at most: libpmix, and
//! the library by which an MPI library shows its message queues to debuggers ([`queues`]). The program's `host` is
//! a PMIx server, one on each node, started by a server of that node and shared by all of them. It receives the
//! description of the job ([`HostJob`]) and answers with the environment variables for the job's processes
//! ([`FromHost::Ready`]). Afterwards it passes on the requests of processes that only the session can fulfil. The
//! messages ([`wire`]) are in this library, so that both sides share them.

#![forbid(unsafe_code)]

pub mod asked;
pub mod names;
pub mod notes;
mod offspring;
mod outer;
pub mod queues;
mod table;
pub mod wire;

pub use offspring::{Offspring, Share};
pub use outer::is_outer;
pub use table::{HostProcess, HostState, HostTable};
pub use wire::{FromHost, HostJob, HostLetter, HostNode, HostProgram, ToHost};
