//! Errors in values of options.

use std::io;
use std::path::PathBuf;

use sdm_hosts::HostShareError;
use sdm_hosts::job::JobError;
use sdm_idset::ParseError;
use sdm_text::printable_name;

/// An error in the value of an option.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A description of the allowed values.
    #[error("{0}")]
    Wrong(&'static str),
    /// The value is not a duration.
    #[error(transparent)]
    Duration(#[from] humantime::DurationError),
    /// The value is not a set of ranks.
    #[error(transparent)]
    Set(#[from] ParseError),
    /// The value does not name a job or process.
    #[error(transparent)]
    Target(#[from] JobError),
}

/// An unknown rank in `--stdin`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--stdin {tasks}: the job has only ranks {all}")]
pub struct StdinError {
    /// The ranks that the option names.
    pub tasks: String,
    /// The ranks of the job.
    pub all: String,
}

/// The reason why the words after `--` are not a list of programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramsError {
    /// The list has too many processes.
    #[error("{count} processes: the maximum is {max}")]
    TooMany {
        /// Number of processes.
        count: u64,
        /// Maximum number of processes.
        max: u32,
    },
    /// The first program is missing.
    #[error("expected a program before the first colon")]
    NoFirst,
    /// No number of processes follows a colon.
    #[error("`: -n {0}`: expected a number of processes, then a program")]
    NoNumber(String),
    /// A `--` is missing between the launcher's options and the program.
    #[error("`: -n {count} {option}`: expected `--` between launcher options and program")]
    NoEnd {
        /// The number of processes.
        count: u32,
        /// The first of the options.
        option: String,
    },
    /// No program follows a number of processes.
    #[error("`: -n {0}`: expected a program")]
    NoProgram(u32),
}

/// The reason why a host file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostFileError {
    /// The host file cannot be read.
    #[error("cannot read {}: {source}", printable_name(path))]
    Read {
        /// The path of the host file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line of the host file names no host.
    #[error("{}: {source}", printable_name(path))]
    Host {
        /// The path of the host file.
        path: PathBuf,
        /// The error in the value.
        source: HostShareError,
    },
}
