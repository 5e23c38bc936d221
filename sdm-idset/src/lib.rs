//! Sets of task ids, made for a million tasks.
//!
//! This crate holds [`TaskId`] and [`IdSet`] and nothing else: no I/O, nothing of ours below it.

mod set;
mod text;
mod wire;

pub use set::{IdSet, Iter, TaskId};
pub use text::{ParseError, TEXT_BYTES_MAX};
pub use wire::{DecodeError, SET_BYTES_MAX};
