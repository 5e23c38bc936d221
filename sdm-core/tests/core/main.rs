//! The tree's parts from outside: messages, aggregation, transports.
#![allow(missing_docs)]

mod aggregate;
mod common;
mod frames;
#[cfg(feature = "net")]
mod late_reader;
#[cfg(feature = "net")]
mod shaped;
mod sizes;
#[cfg(feature = "net")]
mod tcp;
mod transport;
#[cfg(feature = "net")]
mod unix;
