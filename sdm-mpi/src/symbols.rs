//! Symbols by which MPI's functions, and the objects of its libraries, are found in a program.

use std::fmt;

/// An MPI implementation, or a family of them, distinguished by the way in which its ranks find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mpi {
    /// Open MPI, whose ranks find each other by a PMIx server.
    OpenMpi,
    /// MPICH or a derivative. All of them have the same symbols, and Hydra starts them.
    Mpich,
}

impl Mpi {
    /// The name of the family.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        }
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => self.name(),
            Self::Mpich => "MPICH or a derivative",
        })
    }
}

/// The functions that initialize MPI.
pub const INIT: [&str; 2] = ["MPI_Init", "MPI_Init_thread"];
/// The names of the functions that initialize MPI, in Fortran programs, as most compilers write them.
pub const FORTRAN_INIT: [&str; 2] = ["mpi_init_", "mpi_init_thread_"];
/// The profiling name of `MPI_Init`. A library that defines it is an MPI implementation.
pub const PROFILED_INIT: &str = "PMPI_Init";
/// The function that ends the use of MPI.
pub const FINALIZE: &str = "MPI_Finalize";
/// Open MPI's functions that do the work of `MPI_Init` and of `MPI_Finalize`.
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
/// Open MPI's variable for the state of the process, from before `MPI_Init` to after `MPI_Finalize`; since version 3.
pub const OPEN_MPI_STATE: &str = "ompi_mpi_state";
/// The variable with all communicators in Open MPI.
pub const OPEN_MPI_COMMUNICATORS: &str = "ompi_mpi_communicators";
/// The variable with all windows in Open MPI.
pub const OPEN_MPI_WINDOWS: &str = "ompi_mpi_windows";
/// The variable of the null request in Open MPI.
pub const OPEN_MPI_NO_REQUEST: &str = "ompi_request_null";
/// Open MPI's number of communicators with processes of other jobs.
pub const OPEN_MPI_JOINED: &str = "ompi_comm_num_dyncomm";
/// Prefixes of the names of Open MPI's predefined objects, whose addresses programs use as handles.
pub const OPEN_MPI_PREFIXES: [&str; 2] = ["ompi_mpi_", "ompi_fortran_"];
/// Open MPI's default error handlers, which end the job: for communicators, windows and files.
pub const OPEN_MPI_FATAL: [&str; 3] = [
    "ompi_mpi_errors_are_fatal_comm_handler",
    "ompi_mpi_errors_are_fatal_win_handler",
    "ompi_mpi_errors_are_fatal_file_handler",
];
/// The functions of MPICH that are given each error of a communicator and of a window, fatal or not.
pub const MPICH_ERRORS: [&str; 2] = ["MPIR_Err_return_comm", "MPIR_Err_return_win"];
/// Symbols of MPICH. Every MPICH library defines one of them.
pub const MPICH_VERSIONS: [&str; 2] = ["MPII_Version_string", "MPIR_Version_string"];

/// Prefix of the file names of MPI libraries.
pub const LIBRARY_PREFIX: &str = "libmpi";
/// Prefixes of the file names of MPI libraries, each with its implementation. They show the implementation even if the
/// library is not on this machine.
pub const LIBRARIES: [(&str, Mpi); 10] = [
    ("libmpi.so.40", Mpi::OpenMpi),
    ("libmpi.so.20", Mpi::OpenMpi),
    ("libmpi_mpifh.so", Mpi::OpenMpi),
    ("libmpi_usempi", Mpi::OpenMpi),
    ("libmpi_cxx.so", Mpi::OpenMpi),
    ("libopen-rte.so", Mpi::OpenMpi),
    ("libmpich", Mpi::Mpich),
    ("libmpi.so.12", Mpi::Mpich),
    ("libmpifort.so", Mpi::Mpich),
    ("libmpicxx.so", Mpi::Mpich),
];
/// Prefixes of the file names of the libraries of MPI itself, in C: those that have the version.
pub const MAIN_LIBRARIES: [&str; 5] = [
    "libmpi.so",
    "libmpich.so",
    "libmpi_cray",
    "libmpi_ibm",
    "libmpi-",
];
/// Patterns of the file names of the libraries of MPI and OpenSHMEM, and of those below them: `*` matches any text.
pub const MODULES: [&str; 42] = [
    "libmpi.so*",
    "libmpi_*.so*",
    "libmpich*",
    "libmpicxx*",
    "libmpifort*",
    "libpmpi*",
    "liboshmem*",
    "libopen-rte*",
    "libopen-pal*",
    "libprrte*",
    "libpmix*",
    "libpmi.so*",
    "libpmi2.so*",
    "libompitrace*",
    "mca_*.so",
    "libmca_*.so*",
    "libevent*",
    "libev.so*",
    "libhwloc*",
    "libucp.so*",
    "libucs.so*",
    "libucs_*.so*",
    "libuct.so*",
    "libuct_*.so*",
    "libucm.so*",
    "libucm_*.so*",
    "libucc.so*",
    "libucc_*.so*",
    "libhcoll*",
    "libsharp*",
    "libfabric*",
    "libibverbs*",
    "librdmacm*",
    "libmlx*",
    "libpsm*",
    "libefa*",
    "libcxi*",
    "libxpmem*",
    "libnuma.so*",
    "libnl-*",
    "libmunge*",
    "libslurm*",
];

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
