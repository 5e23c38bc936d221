//! A program's starter without anything else: what `sdm-server` is between gdb and a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(failure) = sdm_backend_gdbmi::exec_program() else {
        eprintln!("sdm-starter: it becomes a program, where it is told which");
        return ExitCode::FAILURE;
    };
    eprintln!("sdm-starter: {failure}");
    ExitCode::from(failure.code())
}
