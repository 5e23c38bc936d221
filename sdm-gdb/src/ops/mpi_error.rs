//! An error of Open MPI's that is fatal, at the beginning of the error handler that ends the job for it.
//!
//! `ompi_mpi_errors_are_fatal_comm_handler(communicator, error, ...)` and its kin have a pointer to the class of the error.

use sdm_mpi::open_mpi_error;

use super::values::evaluated;
use crate::gdb::Gdb;

/// The register with a function's second argument, on x86-64 and on AArch64.
const SECOND: [&str; 2] = ["$rsi", "$x1"];

/// Text for the stop: `MPI_Abort`, which Open MPI's error handler is about to call, and the class of the error.
pub(crate) async fn aborting(gdb: &Gdb) -> String {
    for register in SECOND {
        let class = evaluated(gdb, "", &format!("*(int *) {register}")).await;
        if let Ok(class) = class.map_or(Ok(0), |value| value.text.parse::<usize>())
            && class > 0
        {
            return format!("MPI_Abort for {}", open_mpi_error(class));
        }
    }
    "MPI_Abort for an error".to_owned()
}
