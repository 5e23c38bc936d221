//! A server of the tree: it owns tasks, runs their backend (gdb), and forwards messages for its descendants.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use sdm_bootstrap::log::LogWriter;
use sdm_bootstrap::{Complaints, arguments, escape_panics};
use sdm_server::arguments::{Arguments, snapshot};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

fn main() -> ExitCode {
    escape_panics();
    // Between gdb and a program this is neither a server nor a shim.
    if let Some(failure) = sdm_child::exec_program() {
        let _ = writeln!(Complaints, "sdm-server: {failure}");
        return ExitCode::from(failure.code());
    }
    if let Some(looked) = sdm_backend_gdbmi::run_looker() {
        return match looked {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if let Some(served) = sdm_child::run_shim() {
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    run().unwrap_or_else(|error| {
        // A failed write is ignored: standard error is not read any more.
        let _ = writeln!(Complaints, "Error: {error:?}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    let lookup = snapshot();
    let filter = std::env::var(sdm_bootstrap::handover::LOG_VARIABLE);
    let arguments: Arguments = arguments();
    if let Some(gdb) = &arguments.doctor {
        sdm_server::doctor::tell(&arguments, gdb)
            .context("sdm-server: cannot print the report of --doctor")?;
        return Ok(ExitCode::SUCCESS);
    }
    // Before the key is here: no core file of this process or of one that it forks, and no other process of the
    // user looks in.
    nix::sys::prctl::set_dumpable(false)
        .context("sdm-server: cannot exclude the memory of this process from core files")?;
    let handed_over = sdm_bootstrap::handover::take(arguments.handover.as_deref());
    if let Ok(filter) = filter {
        // Never on stdout: it carries the announcement.
        let filter: Targets = filter.parse().context("sdm-server: SDM_LOG is invalid")?;
        let log = fmt::layer()
            .with_writer(LogWriter::forwarded)
            .with_ansi(false);
        tracing_subscriber::registry().with(log).with(filter).init();
    }
    let code = sdm_server::run::serve(arguments, lookup, handed_over)?;
    Ok(ExitCode::from(code))
}
