//! The command `sdm`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sdm::app::main(std::env::args_os(), &mut sdm::app::Live).into()
}
