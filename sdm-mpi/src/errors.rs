//! MPI error classes by their numbers in Open MPI, and by the error codes of MPICH.

/// Classes of errors in the order of their numbers in Open MPI's `mpi.h`, from 1 on, with the texts of Open MPI.
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

/// An error class by its number in Open MPI, with Open MPI's text; `error NUMBER` if the number has no class.
#[must_use]
pub fn open_mpi_error(number: usize) -> String {
    let known = number.checked_sub(1).and_then(|at| CLASSES.get(at));
    match known {
        Some((name, text)) => format!("{name} ({text})"),
        None => format!("error {number}"),
    }
}

/// The numbers in Open MPI of MPICH's classes, in the order of their numbers in MPICH's `mpi.h`.
const OF_MPICH: [usize; 19] = [
    1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 7,
];
/// The bits of MPICH's error codes that are the class.
const CLASS_OF_MPICH: usize = 0x7f;

/// The class of an error code of MPICH, in the form of [`open_mpi_error`]; `error class NUMBER` if the class is
/// unknown.
#[must_use]
pub fn mpich_error(code: usize) -> String {
    let class = code & CLASS_OF_MPICH;
    let known = class.checked_sub(1).and_then(|at| OF_MPICH.get(at));
    match known {
        Some(number) => open_mpi_error(*number),
        None => format!("error class {class}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpich_error_codes_have_names_of_their_classes() {
        assert_eq!(mpich_error(0x0760_0406), "MPI_ERR_RANK (invalid rank)");
        assert_eq!(mpich_error(7), "MPI_ERR_ROOT (invalid root)");
        assert_eq!(mpich_error(14), "MPI_ERR_TRUNCATE (message truncated)");
        assert_eq!(mpich_error(19), "MPI_ERR_REQUEST (invalid request)");
        assert_eq!(mpich_error(45), "error class 45");
    }

    #[test]
    fn open_mpi_error_numbers_have_names_and_texts() {
        assert_eq!(open_mpi_error(6), "MPI_ERR_RANK (invalid rank)");
        assert_eq!(open_mpi_error(15), "MPI_ERR_TRUNCATE (message truncated)");
        assert_eq!(open_mpi_error(0), "error 0");
        assert_eq!(open_mpi_error(77), "error 77");
    }
}
