//! The command `sdm`.

use std::io::Write;
use std::process::ExitCode;

use sdm_bootstrap::{Complaints, escape_panics};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

fn main() -> ExitCode {
    escape_panics();
    // The session's key will be in memory: this process gets no core file, and other processes of the user
    // cannot inspect it. Processes that it starts are not affected.
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        let _ = writeln!(
            Complaints,
            "sdm: cannot exclude its memory from core files: {error}"
        );
        return ExitCode::FAILURE;
    }
    if let Ok(filter) = std::env::var(sdm_bootstrap::handover::LOG_VARIABLE) {
        let filter: Targets = match filter.parse() {
            Ok(filter) => filter,
            Err(error) => {
                let _ = writeln!(Complaints, "sdm: SDM_LOG: {filter:?}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let log = fmt::layer()
            .with_writer(sdm_bootstrap::log::LogWriter::direct)
            .with_ansi(false);
        tracing_subscriber::registry().with(log).with(filter).init();
    }
    sdm::app::main(std::env::args_os(), &mut sdm::app::Live).into()
}
