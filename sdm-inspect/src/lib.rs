//! What is read of a running process without a debugger.
//!
//! A [`snapshot`] holds the registers and the stacks of a process's threads, all of one moment. It is a value: everything that
//! is made of it is made while the process runs on.

pub mod snapshot;
