//! The operations: what is done for each command, at each stop and at each record of gdb's.

pub(super) mod attach;
mod breakpoints;
mod clear;
mod console;
pub(super) mod core_file;
pub(super) mod end;
mod frames;
mod history;
mod internal;
pub(super) mod interrupt;
mod lines;
mod memory;
mod objects;
pub(super) mod probe;
pub(super) mod query;
pub(super) mod records;
pub(super) mod refused;
mod registers;
pub(super) mod run;
mod signals;
mod source;
mod stack;
pub(super) mod start;
pub(super) mod stop;
pub(super) mod usage;
mod values;
mod wrapped;
