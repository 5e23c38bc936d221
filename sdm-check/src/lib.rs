//! Checking a program's use of MPI, from inside the program.
//!
//! [`library`] makes the library that is loaded into ranks: its source is here, its wrappers are made of the header of the program's own
//! MPI, and that MPI's compiler compiles both, once. A rank says what is wrong by a call of [`ERROR_FUNCTION`], at which a debugger
//! stops. [`Error`] reads the line, and [`Suppressions`] says which errors nobody wants to hear of.
//!
//! Nothing here knows debuggers or sessions.

#![forbid(unsafe_code)]

mod compiler;
mod error;
mod library;
mod library_error;
mod life;
mod prototypes;
mod suppressions;
mod wrappers;

pub use error::Error;
pub use library::{Source, library};
pub use library_error::{Family, LibraryError};
pub use suppressions::{BadSuppression, Suppressions};

/// The function that the library calls with what is wrong.
pub const ERROR_FUNCTION: &str = "sdm_check_error";
/// The variable that has a rank load the library, by its path.
pub const LIBRARY_VARIABLE: &str = "SDM_CHECK";
/// The variable that has standard sends wait for their receivers.
pub const STRICT_VARIABLE: &str = "SDM_CHECK_STRICT";
/// The variable with what is not to be told.
pub const SUPPRESS_VARIABLE: &str = "SDM_CHECK_SUPPRESS";
