//! Errors of the commands for clusters.

use std::io;
use std::path::PathBuf;

use sdm_rm::RmError;
use sdm_text::{printable, printable_name};

/// An error of a cluster command: a sentence for a person.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// A cluster cannot be queried, or its definition cannot be read.
    #[error(transparent)]
    Rm(#[from] RmError),
    /// No cluster is defined.
    #[error("no cluster is defined; `sdm cluster add NAME TYPE` defines one")]
    NoneDefined,
    /// None of the defined clusters is started. The field has the names of the defined clusters.
    #[error("no cluster is connected; `sdm cluster start {names}` connects to one", names = .0.join(" "))]
    NoneStarted(Vec<String>),
    /// There are several clusters, and none was given.
    #[error("several clusters are defined; select one with -M: {names}", names = .0.join(", "))]
    WhichCluster(Vec<String>),
    /// No cluster has a job of this number.
    #[error("{job}: no such job in {clusters}", job = printable(.0.as_bytes()), clusters = .1.join(", "))]
    NoJob(String, Vec<String>),
    /// Several clusters have a job of this number.
    #[error("several clusters have a job {number}; select one: {jobs}", number = .0, jobs = .1.join(", "))]
    WhichJob(String, Vec<String>),
    /// There is no element of this name.
    #[error("{name}: no job, node, queue, machine or cluster of this name in {clusters}", name = printable(.0.as_bytes()), clusters = .1.join(", "))]
    NoElement(String, Vec<String>),
    /// The manager has refused, with its reason.
    #[error("{cluster}: {}", printable(said.as_bytes()))]
    Refused {
        /// The name of the cluster.
        cluster: String,
        /// The manager's message.
        said: String,
    },
    /// The job's processes are unknown, or none runs.
    #[error("{job}: its resource manager reports no running process", job = printable(.0.as_bytes()))]
    NoProcesses(String),
    /// The job is on another host, and only jobs of this host are supported.
    #[error("{}: its processes are on {host}; start `sdm` there", printable(job.as_bytes()))]
    Elsewhere {
        /// The name of the job, as given.
        job: String,
        /// The host of its cluster.
        host: String,
    },
    /// The file of the job's output is unknown.
    #[error("{job}: its resource manager does not report where the output is", job = .0)]
    NoOutput(String),
    /// A file cannot be read.
    #[error("{}: {source}", printable_name(path))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A program cannot be run.
    #[error("{program}: {source}")]
    Program {
        /// The name of the program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An argument of the command line is not UTF-8.
    #[error("{argument}: the argument is not UTF-8", argument = printable_name(.0))]
    NoText(std::ffi::OsString),
    /// A variable is given without a name or value.
    #[error("--env {}: expected NAME=VALUE", printable(.0.as_bytes()))]
    NoVariable(String),
    /// A line with options in a batch script has a quote that is not closed.
    #[error("{line}: a quote is not closed", line = printable(.0.as_bytes()))]
    NoDirective(String),
    /// The type of resource manager does not know the limit that an option of `sdm submit` sets.
    #[error(
        "{option}: {cluster} is of type {rm_type}, which does not support this limit; --option passes options to its own submit command"
    )]
    NoLimit {
        /// The option of `sdm submit`.
        option: &'static str,
        /// The cluster's name.
        cluster: String,
        /// The cluster's type of resource manager.
        rm_type: String,
    },
    /// The job has ended, so that it has no process to attach to or to sample.
    #[error("{}: the job has ended ({}); `sdm logs` shows its output", printable(job.as_bytes()), printable(how.as_bytes()))]
    Ended {
        /// The job, as the user named it.
        job: String,
        /// The job's state and the reason for it, in its manager's words.
        how: String,
    },
    /// The job has not started, so that it has no process to attach to or to sample.
    #[error("{}: the job has not started ({})", printable(job.as_bytes()), printable(how.as_bytes()))]
    NotBegun {
        /// The job, as the user named it.
        job: String,
        /// The job's state, in its manager's words.
        how: String,
    },
    /// A session debugs the job. Its processes cannot be inspected from outside, and commands are typed at the prompt
    /// of that session.
    #[error("{job}: a session debugs this job; `sdm attach {job}` opens its prompt", job = printable(.0.as_bytes()))]
    InSession(String),
    /// The job names a cluster that is not defined.
    #[error("{}: no cluster is called {}{}", printable(job.as_bytes()), printable(cluster.as_bytes()), defined_clusters(.defined))]
    NoCluster {
        /// The job, as the user named it.
        job: String,
        /// The name before the colon.
        cluster: String,
        /// The names of the defined clusters.
        defined: Vec<String>,
    },
    /// The working directory is unknown.
    #[error("cannot determine the current folder: {0}")]
    NoFolder(io::Error),
    /// The full screen cannot be shown.
    #[error(transparent)]
    Screen(#[from] sdm_screen::TerminalError),
    /// A system call has failed.
    #[error("a system call failed: {0}")]
    System(#[from] io::Error),
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

/// The end of an error message about an undefined cluster: the names of the defined ones, or that there are none.
fn defined_clusters(names: &[String]) -> String {
    match names {
        [] => "; no cluster is defined".to_owned(),
        names => format!("; defined: {}", names.join(", ")),
    }
}
