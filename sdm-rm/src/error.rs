//! Errors about clusters, and about the programs of their agents.

use std::io;
use std::path::PathBuf;

use sdm_text::{printable, printable_name};

use crate::name::NAME_BYTES_MAX;

/// An error about a cluster; each is a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum RmError {
    /// A text that is not a valid name of a cluster.
    #[error(
        "cluster '{}': a name has 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' or '-', and does not begin with '.' or '-'",
        printable(.0.as_bytes())
    )]
    Name(String),
    /// A text that is not a valid type of a resource manager.
    #[error("type '{}': expected slurm, gridengine, openmpi, hydra, prrte, local, or NAME if a program sdm-rm-NAME exists", printable(.0.as_bytes()))]
    Type(String),
    /// A host that is no destination for ssh: it is empty, contains a blank, or would be taken for an option.
    #[error("host '{}': expected [USER@]HOST", printable(.0.as_bytes()))]
    Host(String),
    /// No cluster has this name; the defined names follow.
    #[error("cluster '{name}': not defined; {defined}", name = printable(.0.as_bytes()), defined = known(.1))]
    Undefined(String, Vec<String>),
    /// A cluster of this name exists.
    #[error("cluster '{0}': already defined; `sdm cluster edit` changes it")]
    Defined(String),
    /// The file of the definitions cannot be used.
    #[error("{}: {what}", printable_name(path))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the file, with the line.
        what: String,
    },
    /// There is no folder for the definitions: neither HOME nor XDG_CONFIG_HOME is set.
    #[error("no folder for clusters.toml: set HOME or XDG_CONFIG_HOME")]
    NoFolder,
    /// A file or folder cannot be read or written.
    #[error("{what}: {error}")]
    Io {
        /// The file or folder.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The cluster is not started.
    #[error("cluster '{0}': not connected; `sdm cluster start {0}` connects to it")]
    NotStarted(String),
    /// The background process could not be started.
    #[error("cluster '{name}': {}", printable(said.as_bytes()))]
    NoStart {
        /// The cluster.
        name: String,
        /// The last line of the process's error output, or the error that prevented its start.
        said: String,
    },
    /// The background process has not answered in time.
    #[error("cluster '{name}': its background process has not answered within {seconds} s")]
    NoAnswer {
        /// The cluster.
        name: String,
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// The background process has sent a line that is not an answer.
    #[error("cluster '{name}': {what}")]
    BadAnswer {
        /// The cluster.
        name: String,
        /// Fault of the answer.
        what: String,
    },
    /// The program of the agent is not trusted, does not exist, or cannot be read or run.
    #[error("{0}")]
    Agent(#[from] AgentError),
}

/// Reason for which there is no agent for a type.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A site's own type without a program on `PATH`: the program, and the types that need none.
    #[error("{0}: not found on PATH; the built-in types are {1}")]
    NoType(String, String),
    /// The agent's program is neither in the folder of `sdm` nor on `PATH`.
    #[error("{0}: found neither in the folder of sdm nor on PATH")]
    Missing(String),
    /// The program belongs to another user, or another user could change it.
    #[error("the agent {} is not run: {what}", printable_name(path))]
    Foreign {
        /// Path of the program.
        path: PathBuf,
        /// Owner of the program, or its fault.
        what: String,
    },
    /// The program cannot be read or run.
    #[error("{program}: {error}")]
    Io {
        /// The program.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl RmError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

fn known(names: &[String]) -> String {
    match names.is_empty() {
        true => "`sdm cluster add NAME TYPE` defines a cluster".to_owned(),
        false => format!("there are: {}", names.join(", ")),
    }
}
