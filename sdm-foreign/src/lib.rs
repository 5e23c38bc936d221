//! What a PMIx server of ours and the servers of a session say to one another.
//!
//! The PMIx server is a process of its own, `sdm-pmix host`, since it is around a foreign library: one on each node, started by
//! a server of that node and shared by all of them. It is told what the job is like ([`HostJob`]) and answers with the
//! variables that the job's processes are to find ([`FromHost::Ready`]); then it tells what processes asked it for that only
//! the session can do. The words are here ([`wire`]), so that both sides have the same ones; the library is in the program
//! alone. A second foreign library is treated in the same way: the one by which an MPI library tells debuggers of its messages
//! ([`queues`]).

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
