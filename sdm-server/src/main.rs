//! A server of the tree: it owns tasks, drives their gdb, and passes on what is for those below.

use anyhow::Result;
use clap::Parser;
use sdm_server::run::Arguments;

fn main() -> Result<()> {
    let lookup = sdm_server::run::snapshot();
    let handed_over = sdm_core::handover::take();
    sdm_server::run::serve(&Arguments::parse(), lookup, handed_over)
}
