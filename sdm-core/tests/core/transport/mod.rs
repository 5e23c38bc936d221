//! One suite of tests for every transport: in memory, sockets, reversed, and one of another crate.

mod driven;
mod hosts;
mod outside;
#[cfg(feature = "net")]
mod reversed;
#[cfg(feature = "net")]
mod sockets;
mod suite;

use sdm_core::transport::mem::MemNetwork;

use hosts::{Hosts, local};
use suite::suite_over;

fn mem_hosts() -> Hosts {
    let network = MemNetwork::new();
    Hosts::new(network.transport(), network.transport(), local)
}

suite_over!(mem, super::mem_hosts());
