//! The background process of a started cluster: `sdm cluster start` starts it, and tells it the definition.

use std::process::ExitCode;

fn main() -> ExitCode {
    match sdm_rm::process::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sdm-rm: {error}");
            ExitCode::FAILURE
        }
    }
}
