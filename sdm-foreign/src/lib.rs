//! Messages between the program `sdm-pmix`, which loads foreign libraries, and the processes that start it.
//!
//! Foreign libraries are loaded by `sdm-pmix` alone, so that their faults cost that process at most: libpmix, and
//! the library by which an MPI library shows its message queues to debuggers ([`queues`]). The program's `host` is
//! a PMIx server, one on each node, started by a server of that node and shared by all of them. It receives the
//! description of the job ([`HostJob`]) and answers with the environment variables for the job's processes
//! ([`FromHost::Ready`]). Afterwards it passes on the requests of processes that only the session can fulfil. The
//! messages ([`wire`]) are in this library, so that both sides share them.

#![forbid(unsafe_code)]

pub mod names;
mod outer_runtime;
pub mod peer_messages;
pub mod queues;
mod spawned_jobs;
mod table;
pub mod tool_protocol;
pub mod wire;

pub use outer_runtime::is_outer;
pub use spawned_jobs::{Share, SpawnedJob};
pub use table::{HostCommand, HostProcess, HostState, HostTable};
pub use wire::{FromHost, HostJob, HostNode, HostProgram, PeerMessage, ToHost};
