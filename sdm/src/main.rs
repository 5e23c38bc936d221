//! The command `sdm`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Ok(filter) = std::env::var(sdm_core::handover::LOG_VARIABLE) {
        let log = tracing_subscriber::fmt().with_env_filter(filter);
        log.with_writer(std::io::stderr).init();
    }
    sdm::app::main(std::env::args_os(), &mut sdm::app::Live).into()
}
