//! Checking a program's use of MPI, from inside the program.
//!
//! [`library`] builds the library that is loaded into ranks. Its source is in this crate. Its wrappers are generated
//! from the `mpi.h` of the program's own MPI, and the compiler of that MPI compiles them once. A rank reports an error
//! by a call of [`ERROR_FUNCTION`], at which a debugger stops. [`Error`] parses the report. [`Suppressions`] selects
//! the errors that are not reported.
//!
//! This crate contains nothing about debuggers or sessions.

#![forbid(unsafe_code)]

mod buffers;
mod compiler;
mod error;
mod library;
mod library_error;
mod life;
mod matching;
mod prototypes;
mod suppressions;
mod windows;
mod wrappers;

pub use error::Error;
pub use library::{Source, library};
pub use library_error::LibraryError;
pub use suppressions::{BadSuppression, Suppressions};

/// The function of the checking library that is called for each error. Its argument is the text of the error.
pub const ERROR_FUNCTION: &str = "sdm_check_error";
/// The variable of the checking library with the program's progress: 1 from `MPI_Init` on, 2 from `MPI_Finalize` on.
pub const STAGE_VARIABLE: &str = "sdm_check_stage";
/// The environment variable with the path of the checking library, which ranks then load.
pub const LIBRARY_VARIABLE: &str = "SDM_CHECK";
/// The environment variable of strict mode, in which standard sends wait for their receivers. A barrier then precedes
/// collective operations in which not every rank waits for all others.
pub const STRICT_VARIABLE: &str = "SDM_CHECK_STRICT";
/// The environment variable with the rules for errors that are not reported.
pub const SUPPRESS_VARIABLE: &str = "SDM_CHECK_SUPPRESS";
