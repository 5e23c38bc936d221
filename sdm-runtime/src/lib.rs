//! The runtime platform without I/O. [`model`] has the machines, nodes, queues, jobs and processes of resource
//! managers. [`wire`] has both ends of the resource-manager proxy protocol.
//!
//! An element of the model has an id, which the agent of its resource manager chooses ([`ids`]).

#![forbid(unsafe_code)]

pub mod attribute;
pub mod ids;
mod job_attributes;
pub mod model;
pub mod wire;

pub use job_attributes::{JOB_NUMBERS, JobAttributes};
pub use model::states;
