//! Texts for stops at the calls that end a program: `MPI_Abort` and `_exit` with their code, and Open MPI's handler of
//! fatal errors.
//!
//! `ompi_mpi_errors_are_fatal_comm_handler(communicator, error, ...)` and its kin have a pointer to the class of the
//! error.

use sdm_mpi::open_mpi_error;

use super::language::IN_C;
use super::values::evaluated;
use crate::gdb::Gdb;

/// The register with a function's second argument, on x86-64 and on AArch64.
const SECOND: [&str; 2] = ["$rsi", "$x1"];

/// The register with a function's first argument, on x86-64 and on AArch64.
const FIRST: [&str; 2] = ["$rdi", "$x0"];

/// A call that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastCall {
    Abort,
    ExitBeforeFinalize,
}

/// Text for the stop at a call that ends the program, with the exit code in its argument.
pub(crate) async fn ending(gdb: &Gdb, call: LastCall) -> String {
    let (what, registers) = match call {
        LastCall::Abort => (sdm_mpi::symbols::ABORT, SECOND),
        LastCall::ExitBeforeFinalize => ("_exit before MPI_Finalize", FIRST),
    };
    for register in registers {
        let code = evaluated(gdb, IN_C, &format!("(int) {register}")).await;
        if let Some(code) = code.ok().and_then(|it| it.text.parse::<i32>().ok()) {
            return format!("{what} with code {code}");
        }
    }
    what.to_owned()
}

/// Text for the stop in Open MPI's error handler, which is about to call `MPI_Abort`: that call, and the class of the
/// error.
pub(crate) async fn aborting(gdb: &Gdb) -> String {
    for register in SECOND {
        let class = evaluated(gdb, IN_C, &format!("*(int *) {register}")).await;
        if let Ok(class) = class.map_or(Ok(0), |value| value.text.parse::<usize>())
            && class > 0
        {
            return format!("MPI_Abort for {}", open_mpi_error(class));
        }
    }
    "MPI_Abort for an unknown error".to_owned()
}
