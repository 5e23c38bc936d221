//! The exec wrapper of a program as a separate executable: the role that `sdm-server` has between gdb and a program.

use std::process::ExitCode;

fn main() -> ExitCode {
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
    let Some(failure) = sdm_child::exec_program() else {
        eprintln!("sdm-starter: it becomes a program, where it is told which");
        return ExitCode::FAILURE;
    };
    eprintln!("sdm-starter: {failure}");
    ExitCode::from(failure.code())
}
