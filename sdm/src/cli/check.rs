//! Options for checks of the use of MPI.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Checks of the processes' use of MPI.
#[derive(Clone, Debug, Default, Args)]
pub struct CheckArgs {
    /// Check the arguments and the order of MPI calls. A rank stops before a wrong call, and `continue` lets it make
    /// the call. With `strict`, each MPI_Send also waits for its receive, so that deadlocks hidden by MPI's buffering
    /// show.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "errors",
          value_enum, help_heading = "Checking MPI")]
    pub check: Option<CheckHow>,

    /// A file of errors that --check does not report. Each line is a rule of M301 (an error number), function=NAME,
    /// file=NAME or line=FILE:LINE.
    #[arg(
        long,
        value_name = "FILE",
        requires = "check",
        help_heading = "Checking MPI"
    )]
    pub check_suppress: Option<PathBuf>,

    /// A compiled check library to use. Without this option sdm compiles one with the mpicc of the program's MPI.
    #[arg(
        long,
        value_name = "FILE",
        requires = "check",
        help_heading = "Checking MPI"
    )]
    pub check_library: Option<PathBuf>,
}

/// The strictness of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckHow {
    /// Report only calls that are wrong by the MPI standard.
    Errors,
    /// Also report sends that deadlock if MPI does not buffer the message.
    Strict,
}
