//! A server of the tree: it owns tasks, drives their gdb, and passes on what is for those below.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use sdm_server::run::Arguments;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

fn main() -> Result<ExitCode> {
    let lookup = sdm_server::run::snapshot();
    let filter = std::env::var(sdm_core::handover::LOG_VARIABLE);
    let arguments = Arguments::parse();
    let handed_over = sdm_core::handover::take(arguments.handover.as_deref());
    if let Ok(filter) = filter {
        // Never on stdout: it carries the announcement.
        let filter: Targets = filter.parse().context("sdm-server: SDM_LOG")?;
        let log = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        tracing_subscriber::registry().with(log).with(filter).init();
    }
    let code = sdm_server::run::serve(arguments, lookup, handed_over)?;
    Ok(ExitCode::from(code))
}
