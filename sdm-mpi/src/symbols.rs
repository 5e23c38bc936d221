//! Symbols by which MPI's functions, and the objects of its libraries, are found in a program.

/// The functions that initialize MPI.
pub const INIT: [&str; 2] = ["MPI_Init", "MPI_Init_thread"];
/// The same functions as Fortran compilers call them.
pub const FORTRAN_INIT: [&str; 2] = ["mpi_init_", "mpi_init_thread_"];
/// The first of them as tools call it. A library that defines it is an implementation of MPI.
pub const PROFILED_INIT: &str = "PMPI_Init";
/// The function that ends the use of MPI.
pub const FINALIZE: &str = "MPI_Finalize";
/// The functions of Open MPI that do the work of the first of [`INIT`], and of [`FINALIZE`].
pub const OPEN_MPI_INNER: [&str; 2] = ["ompi_mpi_init", "ompi_mpi_finalize"];
/// The function that returns a process's rank.
pub const COMM_RANK: &str = "MPI_Comm_rank";
/// The function that ends the job.
pub const ABORT: &str = "MPI_Abort";
/// The variable of `MPI_COMM_WORLD` in Open MPI.
pub const OPEN_MPI_WORLD: &str = "ompi_mpi_comm_world";
/// The variable of `MPI_COMM_SELF` in Open MPI.
pub const OPEN_MPI_SELF: &str = "ompi_mpi_comm_self";
/// The variable of the group without processes in Open MPI.
pub const OPEN_MPI_EMPTY_GROUP: &str = "ompi_mpi_group_empty";
/// The variable of the progress of a process in Open MPI from version 3 on.
pub const OPEN_MPI_STATE: &str = "ompi_mpi_state";
/// Prefixes of Open MPI's own objects, which programs use in place of handles.
pub const OPEN_MPI_PREFIXES: [&str; 2] = ["ompi_mpi_", "ompi_fortran_"];
/// Open MPI's handlers of fatal errors: of communicators, windows and files.
pub const OPEN_MPI_FATAL: [&str; 3] = [
    "ompi_mpi_errors_are_fatal_comm_handler",
    "ompi_mpi_errors_are_fatal_win_handler",
    "ompi_mpi_errors_are_fatal_file_handler",
];
/// Symbols of which every MPICH library has one.
pub const MPICH_VERSIONS: [&str; 2] = ["MPII_Version_string", "MPIR_Version_string"];

/// True for a file of an MPI library, or of a library that only MPI libraries use.
#[must_use]
pub fn is_of_mpi(file: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "libmpi.so",
        "libmpich",
        "libopen-pal",
        "libopen-rte",
        "libpmix",
        "libucp",
        "libucs",
        "libuct",
        "mca_",
    ];
    BEGINNINGS.iter().any(|part| file.starts_with(part))
}
