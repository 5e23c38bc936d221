//! Texts for stops at the calls that end a program: `MPI_Abort` and `_exit` with their code, and the handlers of fatal
//! errors of Open MPI and MPICH.
//!
//! Open MPI's handlers, such as `ompi_mpi_errors_are_fatal_comm_handler(communicator, error, ...)`, have a pointer to
//! the class of the error. MPICH's `MPIR_Err_return_comm(communicator, function, code)` is given each error, also those
//! that the program handles itself: there the communicator's error handler decides.

use std::fmt::Display;

use sdm_debug::Reply;
use sdm_inspect::mpi::{HANDLER_BYTES_MAX, pointers};
use sdm_mpi::{is_fatal_handler, mpich_error, open_mpi_error};

use super::language::IN_C;
use super::memory;
use super::values::evaluated;
use crate::gdb::Gdb;

/// The register with a function's second argument, on x86-64 and on AArch64.
const SECOND: [&str; 2] = ["$rsi", "$x1"];

/// The register with a function's first argument, on x86-64 and on AArch64.
const FIRST: [&str; 2] = ["$rdi", "$x0"];

/// The text for `_exit` before `MPI_Finalize`.
pub(crate) const EXIT_BEFORE_FINALIZE: &str = "_exit before MPI_Finalize";

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
        LastCall::ExitBeforeFinalize => (EXIT_BEFORE_FINALIZE, FIRST),
    };
    for register in registers {
        let code = evaluated(gdb, IN_C, &format!("(int) {register}")).await;
        if let Some(code) = code.ok().and_then(|it| it.text.parse::<i32>().ok()) {
            return with_code(what, code);
        }
    }
    what.to_owned()
}

/// Text for the stop at a call that ends the program with this code.
pub(crate) fn with_code(what: &str, code: i32) -> String {
    format!("{what} with code {code}")
}

/// Text for the stop in Open MPI's error handler, which is about to call `MPI_Abort`: that call, and the class of the
/// error.
pub(crate) async fn aborting(gdb: &Gdb) -> String {
    for register in SECOND {
        let class = evaluated(gdb, IN_C, &format!("*(int *) {register}")).await;
        if let Ok(class) = class.map_or(Ok(0), |value| value.text.parse::<usize>())
            && class > 0
        {
            return abort_for(open_mpi_error(class));
        }
    }
    abort_for("an unknown error")
}

/// Text for the stop in a call of `MPI_Abort` that the library makes for an error.
fn abort_for(error: impl Display) -> String {
    format!("MPI_Abort for {error}")
}

/// The registers with a function's first and third argument, on x86-64 and on AArch64.
const FIRST_AND_THIRD: [(&str, &str); 2] = [("$rdi", "$rdx"), ("$x0", "$x2")];

/// Text for the stop where MPICH is about to end the job for an error; `None` if the error is not fatal, or not known
/// to be so.
pub(crate) async fn of_mpich(gdb: &Gdb) -> Option<String> {
    for (object, code) in FIRST_AND_THIRD {
        let number = |register: &str| format!("(unsigned long) {register}");
        let Ok(object) = evaluated(gdb, IN_C, &number(object)).await else {
            continue;
        };
        let code = evaluated(gdb, IN_C, &format!("(unsigned int) {code}")).await;
        let code = code.ok()?.text.parse().ok()?;
        let address = object.text.parse::<u64>().ok().filter(|it| *it > 0)?;
        if !is_fatal(gdb, address).await {
            return None;
        }
        gdb.edit().breakpoints.mpi.aborting = true;
        return Some(abort_for(mpich_error(code)));
    }
    None
}

/// True if the object of MPICH's at an address has an error handler that ends the job, or none, which means the same. A
/// found position of the pointer to it is kept, as a program can handle many errors.
async fn is_fatal(gdb: &Gdb, address: u64) -> bool {
    let object = memory::read(gdb, &address.to_string(), HANDLER_BYTES_MAX).await;
    let Ok(Reply::Memory(blocks)) = object else {
        return false;
    };
    let bytes: Vec<u8> = blocks.into_iter().flat_map(|block| block.bytes).collect();
    let pointers: Vec<(usize, u64)> = pointers(&bytes).collect();
    let known = gdb.get().breakpoints.mpi.handler;
    let first = pointers.iter().filter(|(at, _)| Some(*at) == known);
    for (at, pointer) in first.chain(&pointers) {
        let line = format!("*(unsigned int *) {pointer}");
        let handle = evaluated(gdb, IN_C, &line).await.ok();
        let handle = handle.and_then(|handle| handle.text.parse().ok());
        if let Some(is_fatal) = handle.and_then(is_fatal_handler) {
            gdb.edit().breakpoints.mpi.handler = Some(*at);
            return is_fatal;
        }
    }
    true
}
