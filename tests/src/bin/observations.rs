//! Stores the recordings of a run of `hangs::full`; `scripts/observations renew` calls it.
//!
//! usage: `observations FOLDER MPI...`

use std::path::Path;
use std::process::ExitCode;

use sdm_tests::observations::{kept, renew};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, mpis @ ..] = arguments.as_slice() else {
        eprintln!("usage: observations FOLDER MPI...");
        return ExitCode::from(2);
    };
    match renew(Path::new(folder), &kept(), mpis) {
        Ok(said) => {
            said.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("observations: {error}");
            ExitCode::FAILURE
        }
    }
}
