//! The background process of a started cluster: `sdm cluster start` starts it, and passes the definition on its
//! standard input.

use std::process::ExitCode;

fn main() -> ExitCode {
    sdm_text::escape_panics();
    match sdm_rm::process::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = error.to_string();
            eprintln!("sdm-rm: {}", sdm_text::printable_lines(&error));
            ExitCode::FAILURE
        }
    }
}
