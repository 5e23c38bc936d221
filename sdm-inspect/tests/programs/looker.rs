//! Looks at processes, as a server's executable does in that mode.

use std::process::ExitCode;

fn main() -> ExitCode {
    match sdm_inspect::looker::run() {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
