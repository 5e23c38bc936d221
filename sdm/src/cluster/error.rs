//! Errors of the commands for clusters.

use std::io;
use std::path::PathBuf;

use sdm_rm::RmError;
use sdm_text::{printable, printable_name};

/// Why a verb of clusters could not be carried out: each is a sentence for a person.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// A cluster cannot be asked, or its definition be read.
    #[error(transparent)]
    Rm(#[from] RmError),
    /// Nothing is defined.
    #[error("no cluster is defined; `sdm cluster add NAME TYPE` defines one")]
    NoneDefined,
    /// Nothing that is defined has been started; their names.
    #[error("no cluster is started; `sdm cluster start {}` starts one", .0.join(" "))]
    NoneStarted(Vec<String>),
    /// One cluster is needed, and there are several.
    #[error("say which cluster, with -M: {}", .0.join(", "))]
    WhichCluster(Vec<String>),
    /// No cluster has such a job.
    #[error("{}: no such job of {}", printable(.0.as_bytes()), .1.join(", "))]
    NoJob(String, Vec<String>),
    /// Several clusters have such a job.
    #[error("{} is a job of several clusters; say which: {}", .0, .1.join(", "))]
    WhichJob(String, Vec<String>),
    /// Nothing is called so.
    #[error("{}: neither job, node, queue, machine nor cluster of {}", printable(.0.as_bytes()), .1.join(", "))]
    NoElement(String, Vec<String>),
    /// The manager says no; what it says.
    #[error("{cluster}: {}", printable(said.as_bytes()))]
    Refused {
        /// Which cluster.
        cluster: String,
        /// The manager's words.
        said: String,
    },
    /// Nothing is known of a job's processes, or none runs.
    #[error("{}: no process of it runs, as far as its manager tells", printable(.0.as_bytes()))]
    NoProcesses(String),
    /// A job of another host is wanted where only those of this one are found.
    #[error("{}: its processes are on {host}; start `sdm` there", printable(job.as_bytes()))]
    Elsewhere {
        /// The name of the job, as given.
        job: String,
        /// The host of its cluster.
        host: String,
    },
    /// The job's output is in no file that is known.
    #[error("{0}: its manager does not say where its output is")]
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
        /// Its name.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An argument of the command line is no UTF-8.
    #[error("{}: no UTF-8", printable_name(.0))]
    NoText(std::ffi::OsString),
    /// A variable is set without a name or without a value.
    #[error("--env {}: expected NAME=VALUE", printable(.0.as_bytes()))]
    NoVariable(String),
    /// This folder has no name.
    #[error("this folder: {0}")]
    NoFolder(io::Error),
    /// There is no screen.
    #[error(transparent)]
    Screen(#[from] sdm_screen::TerminalError),
    /// The system says no.
    #[error("the system: {0}")]
    System(#[from] io::Error),
    /// Nobody reads any more.
    #[error("standard output: {0}")]
    Output(io::Error),
}
