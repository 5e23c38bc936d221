//! What is read of a running process without a debugger.
//!
//! A [`snapshot`] holds the registers and the stacks of a process's threads, all of one moment. It is a value: everything that
//! is made of it is made while the process runs on: its functions are followed by the files' call frame information, and named by their
//! debug information ([`stack`]).

mod elf;
mod files;
pub mod looker;
mod module;
mod rules;
pub mod snapshot;
mod space;
pub mod stack;
mod symbols;
mod sys;
mod unwind;
