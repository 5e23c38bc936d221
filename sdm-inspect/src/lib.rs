//! What is read of a running process without a debugger.
//!
//! A [`snapshot`] holds the registers and the stacks of a process's threads, all of one moment. It is a value: everything that
//! is made of it is made while the process runs on: its functions are followed by the files' call frame information, and named by their
//! debug information ([`stack`]).
//!
//! Other things are read as they are now, of the process's [`memory`]: [`python`], [`mpi`] and [`queues`] know structures in it.
//! [`kernel`], [`resources`], [`exchange`] and [`arrival`] ask the kernel. What is read is the process's own and can be anything: every
//! length, count and chain has a bound.

pub mod arrival;
mod assembly;
mod elf;
pub mod exchange;
pub mod files;
#[doc(hidden)]
pub mod fuzz;
pub mod kernel;
pub mod looker;
pub mod memory;
mod module;
pub mod mpi;
pub mod python;
pub mod queues;
pub mod resources;
mod rules;
pub mod snapshot;
mod space;
pub mod stack;
mod symbols;
mod sys;
mod unwind;
mod values;
