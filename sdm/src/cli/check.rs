//! Options for checks of the use of MPI.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Checks of the processes' use of MPI.
#[derive(Clone, Debug, Default, Args)]
pub struct CheckArgs {
    /// Check each MPI call: an error is a stop of those who make it, before the call, and they can go on. `strict`: standard
    /// sends also wait for their receivers, so that what MPI's buffers hide shows as the deadlock that it is.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "errors",
          value_enum, help_heading = "Checking MPI")]
    pub check: Option<CheckHow>,

    /// Errors that are not told: a rule in each line, of M301 (a number), function=NAME, file=NAME, line=FILE:LINE.
    #[arg(
        long,
        value_name = "FILE",
        requires = "check",
        help_heading = "Checking MPI"
    )]
    pub check_suppress: Option<PathBuf>,

    /// The library that checks, where it was compiled before; made by the MPI's own mpicc unless given.
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
    /// Errors only.
    Errors,
    /// Also calls that deadlock where MPI does not buffer their messages.
    Strict,
}
