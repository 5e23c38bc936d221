//! Errors of queries and commands to a resource manager.

use std::io;

use sdm_text::without_numbers;

use crate::gridengine::UnreadableXml;
use crate::slurm::Unreadable;

/// Cause of a failed query or command to a manager.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// None of these programs, of which one is needed, is on `PATH`.
    #[error("{0} is not on PATH")]
    NoProgram(String),
    /// One of the manager's programs has failed, or its output is unusable.
    #[error("{program}: {words}")]
    Program {
        /// Name of the program.
        program: String,
        /// Error message of the program, or its exit status.
        words: String,
    },
    /// The output of one of Slurm's programs cannot be parsed: the program, and the fault.
    #[error("{0}: {1}")]
    Unreadable(&'static str, #[source] Unreadable),
    /// The output of one of Grid Engine's programs cannot be parsed.
    #[error(transparent)]
    Xml(UnreadableXml),
    /// A system call failed: its subject, and the error.
    #[error("{0}: {why}", why = without_numbers(&.1.to_string()))]
    System(String, #[source] io::Error),
    /// A job cannot be submitted.
    #[error(transparent)]
    Submission(#[from] SubmissionError),
    /// The command about a job is impossible: the job, and the reason.
    #[error("job {0} {1}")]
    Job(String, String),
}

/// Fault of a submission from which no job can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    /// A value with a zero byte, which cannot be passed to a program.
    #[error("{0} contains a zero byte")]
    ZeroByte(String),
    /// The number of processes is not a number of 1 or more.
    #[error("jobNumProcs is `{0}`: expected a number of 1 or more")]
    NoCount(String),
    /// The submission has no program.
    #[error("no program: execName is missing")]
    NoProgram,
    /// An environment variable that is not `NAME=value`.
    #[error("env `{0}`: expected NAME=value")]
    NoVariable(String),
    /// The working directory is not a folder.
    #[error("workingDir `{0}` is not a folder")]
    NoFolder(String),
    /// The manager has no queue of this name.
    #[error("queue `{0}` does not exist: the only queue is `{1}`")]
    NoQueue(String, &'static str),
    /// The submission names a host that does not belong to the manager.
    #[error(
        "submitOptions names the host `{0}`, which is not one of this resource manager's hosts"
    )]
    NoHost(String),
}

impl ManagerError {
    /// Makes [`Self::System`] of an [`io::Error`]; `what` names the file or step that failed.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |why| Self::System(what, why)
    }

    pub(crate) fn program(program: &str, words: impl ToString) -> Self {
        Self::Program {
            program: program.to_owned(),
            words: words.to_string(),
        }
    }

    pub(crate) fn job(job: &str, why: impl Into<String>) -> Self {
        Self::Job(job.to_owned(), why.into())
    }
}
