//! An error of Open MPI's that is fatal, at the beginning of the error handler that ends the job for it.
//!
//! `ompi_mpi_errors_are_fatal_comm_handler(communicator, error, ...)` and its kin have a pointer to the class of the error.

use super::values::evaluated;
use crate::gdb::Gdb;

/// The registers of the second argument, of processors that there are.
const SECOND: [&str; 2] = ["$rsi", "$x1"];

/// Classes of errors by their numbers in Open MPI's `mpi.h`, with what Open MPI says of each.
const CLASSES: [(&str, &str); 19] = [
    ("MPI_ERR_BUFFER", "invalid buffer pointer"),
    ("MPI_ERR_COUNT", "invalid count argument"),
    ("MPI_ERR_TYPE", "invalid datatype"),
    ("MPI_ERR_TAG", "invalid tag"),
    ("MPI_ERR_COMM", "invalid communicator"),
    ("MPI_ERR_RANK", "invalid rank"),
    ("MPI_ERR_REQUEST", "invalid request"),
    ("MPI_ERR_ROOT", "invalid root"),
    ("MPI_ERR_GROUP", "invalid group"),
    ("MPI_ERR_OP", "invalid reduce operation"),
    ("MPI_ERR_TOPOLOGY", "invalid communicator topology"),
    ("MPI_ERR_DIMS", "invalid topology dimension"),
    ("MPI_ERR_ARG", "invalid argument of some other kind"),
    ("MPI_ERR_UNKNOWN", "unknown error"),
    ("MPI_ERR_TRUNCATE", "message truncated"),
    ("MPI_ERR_OTHER", "known error not in list"),
    ("MPI_ERR_INTERN", "internal error"),
    ("MPI_ERR_IN_STATUS", "error code in status"),
    ("MPI_ERR_PENDING", "pending request"),
];

/// The call that is about to be made, in words.
pub(crate) async fn aborting(gdb: &Gdb) -> String {
    for register in SECOND {
        let class = evaluated(gdb, "", &format!("*(int *) {register}")).await;
        if let Ok(class) = class.map_or(Ok(0), |value| value.text.parse::<usize>())
            && class > 0
        {
            return format!("MPI_Abort for {}", named(class));
        }
    }
    "MPI_Abort for an error".to_owned()
}

/// A class of errors by its number.
fn named(class: usize) -> String {
    let known = class.checked_sub(1).and_then(|at| CLASSES.get(at));
    match known {
        Some((name, said)) => format!("{name} ({said})"),
        None => format!("error {class}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_error_numbers_have_names_and_texts() {
        assert_eq!(named(6), "MPI_ERR_RANK (invalid rank)");
        assert_eq!(named(15), "MPI_ERR_TRUNCATE (message truncated)");
        assert_eq!(named(0), "error 0");
        assert_eq!(named(77), "error 77");
    }
}
