//! Tests of the tree's public interface: messages, aggregation, frames and transports.
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
