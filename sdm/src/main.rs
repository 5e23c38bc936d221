//! The command `sdm`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The session's key will be in memory: no core file of this process, and no other process of the
    // user looks in. What it starts is as it always is.
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        eprintln!("sdm: keep out of core files: {error}");
        return ExitCode::FAILURE;
    }
    if let Ok(filter) = std::env::var(sdm_core::handover::LOG_VARIABLE) {
        let log = tracing_subscriber::fmt().with_env_filter(filter);
        log.with_writer(std::io::stderr).init();
    }
    sdm::app::main(std::env::args_os(), &mut sdm::app::Live).into()
}
