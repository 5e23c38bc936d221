//! One process of the floor, which the benches start. The floor is a lower bound: its processes pass the same bytes by
//! blocking reads and writes.

use anyhow::{Context, Result};
use sdm_benches::floor::Sockets;

/// Passes bytes down and up a binomial tree by blocking reads and writes.
#[derive(clap::Parser)]
struct Arguments {
    /// This member's place in the tree
    position: u32,
    /// Number of members
    total: u32,
    /// The length of a command
    down_bytes: usize,
    /// The length of an answer
    up_bytes: usize,
    /// By what the members are connected: tcp or unix
    sockets: Sockets,
}

fn main() -> Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .context("floor: end with the bench")?;
    let arguments: Arguments = clap::Parser::parse();
    let Arguments {
        position,
        total,
        down_bytes,
        up_bytes,
        sockets,
    } = arguments;
    sdm_benches::floor::serve(position, total, down_bytes, up_bytes, sockets)
        .with_context(|| format!("floor {position}"))
}
