//! Errors of queries and commands to a resource manager.

use std::io;

use crate::gridengine::UnreadableXml;
use crate::slurm::Unreadable;

/// Cause of a failed query or command to a manager.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Programs of which one is needed are not on `PATH`.
    #[error("{0} is not on PATH")]
    NoProgram(String),
    /// One of its programs has failed, or has said nothing of use.
    #[error("{program}: {words}")]
    Program {
        /// Name of the program.
        program: String,
        /// Its error message, or its exit status.
        words: String,
    },
    /// The output of one of Slurm's programs cannot be parsed.
    #[error("{0}: {1}")]
    Unreadable(&'static str, #[source] Unreadable),
    /// The output of one of Grid Engine's programs cannot be parsed.
    #[error(transparent)]
    Xml(UnreadableXml),
    /// The system refuses something.
    #[error("{0}: {1}")]
    System(String, #[source] io::Error),
    /// A job cannot be submitted.
    #[error(transparent)]
    Submission(#[from] SubmissionError),
    /// A job is not such that it could be done: the job, and why.
    #[error("job {0} {1}")]
    Job(String, String),
}

/// Fault of a submission from which no job can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    /// A value no program can be given.
    #[error("{0} has a zero byte in it")]
    ZeroByte(String),
    /// No number of processes.
    #[error("jobNumProcs is `{0}`: 1 or more is needed")]
    NoCount(String),
    /// The submission has no program.
    #[error("no program: execName is missing")]
    NoProgram,
    /// A variable of no form.
    #[error("env `{0}` is not NAME=value")]
    NoVariable(String),
    /// A folder that is none.
    #[error("workingDir `{0}` is no folder")]
    NoFolder(String),
    /// A queue that the manager has not.
    #[error("queue `{0}`: the only one is `{1}`")]
    NoQueue(String, &'static str),
    /// A host that is not one of the manager's.
    #[error("submitOptions `{0}`: none of the hosts has this name")]
    NoHost(String),
}

impl ManagerError {
    /// An error of the system about `what`.
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
