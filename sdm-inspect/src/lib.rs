//! Reads running processes without a debugger.
//!
//! A [`snapshot`] holds the registers and stacks of a process's threads at one moment. It is a value, and everything
//! is derived from it while the process runs on. Stacks are unwound by the files' call frame information, and named
//! by their debug information ([`stack`]).
//!
//! Other data is read live from the process's [`memory`]: [`python`], [`mpi`] and [`queues`] know structures there.
//! [`kernel`], [`resources`], [`traffic`] and [`return_counter`] ask the kernel. A process's data can be anything, so every
//! length, count and chain is bounded.

mod address_space;
mod elf;
pub mod files;
mod frame_rules;
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
pub mod return_counter;
pub mod snapshot;
pub mod stack;
mod symbols;
mod sys;
pub mod traffic;
pub mod unwind;
mod values;
