//! Errors outside of a session, such as those that prevent its start.

use std::io;
use std::path::PathBuf;

use sdm_diagnose::ObservationsError;
use sdm_hosts::job::JobError;
use sdm_keep::PlaceError;
use sdm_launch::HoldError;
use sdm_session::{EndError, SessionError};
use sdm_shell::NotOpened;
use sdm_text::printable_name;

/// An error outside of a session: a sentence for a person.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// A session could not be started.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A session could not be ended.
    #[error(transparent)]
    End(#[from] EndError),
    /// A running job was not found.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A started job could not be held.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The launcher of a job cannot be watched by the session.
    #[error("cannot watch the launcher: {0}")]
    Adopt(io::Error),
    /// The directory of kept sessions cannot be used, or it has no session of this name.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Signals cannot be handled.
    #[error("cannot set up signal handling: {0}")]
    Signals(io::Error),
    /// No process, or not all requested ones, can be attached to: a sentence for each obstacle.
    #[error("{}", .0.join("; "))]
    LeftOut(Vec<String>),
    /// Ranks are given for processes without ranks.
    #[error("--ranks: {0} has no MPI ranks")]
    Unranked(String),
    /// Some of the given ranks do not exist.
    #[error("--ranks {asked}: the job has only ranks {all} ({of})")]
    NoSuchRanks {
        /// The requested ranks.
        asked: String,
        /// The existing ranks.
        all: String,
        /// The job, and the source of its ranks.
        of: String,
    },
    /// The program does not exist.
    #[error("{}: no such program", printable_name(.0))]
    NoProgram(PathBuf),
    /// There are more compressed core files than are unpacked at once.
    #[error("more than {max} compressed core files: give fewer, or decompress them first")]
    ManyPacked {
        /// The maximum number of compressed core files.
        max: usize,
    },
    /// A file cannot be used.
    #[error("{}: {source}", printable_name(path))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file does not contain observations of a diagnosis.
    #[error("{}: {source}", printable_name(path))]
    Observations {
        /// The path of the file.
        path: PathBuf,
        /// The error in the file.
        source: ObservationsError,
    },
    /// There is no kept session.
    #[error("no kept session on this host; `--keep` starts one")]
    NoneKept,
    /// Several sessions are kept, with these names, and none was given.
    #[error("several sessions are kept; give the name of one: {}", .0.join(", "))]
    WhichKept(Vec<String>),
    /// The session has ended during a measurement, with the reason.
    #[error("{0}")]
    Ended(String),
    /// Tasks gave no answer or a wrong one during a measurement.
    #[error("{command}: tasks {tasks} did not answer as expected")]
    Unanswered {
        /// The command.
        command: &'static str,
        /// The tasks without a correct answer.
        tasks: String,
    },
}

impl From<AppError> for NotOpened {
    fn from(error: AppError) -> Self {
        Self {
            reason: error.to_string(),
        }
    }
}
