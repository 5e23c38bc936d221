//! The words that processes around foreign libraries and whoever starts them say to one another.
//!
//! A library of others is loaded by the program `sdm-pmix` alone, so that whatever it does costs that process at most: libpmix, and the
//! library by which an MPI library tells debuggers of its messages ([`queues`]). The program's `host` is a PMIx server, one on each node,
//! started by a server of that node and shared by all of them. It is told what the job is like ([`HostJob`]) and answers with the
//! variables that the job's processes are to find ([`FromHost::Ready`]); then it tells what processes asked it for that only
//! the session can do. The words are here ([`wire`]), so that both sides have the same ones.

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
