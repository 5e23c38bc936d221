//! Why servers could not be started.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a launch could not begin. What goes wrong later is a [`crate::LaunchEvent`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No launcher has this name.
    #[error("launcher {name}: unknown (known: local, mpirun, mpiexec, or a path to either)")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The launcher's program is not there, or is something else.
    #[error("launcher {name}: not found: {tried}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// What was looked for, and what was found instead.
        tried: String,
    },
    /// A program answered `--version` in no known way.
    #[error("launcher {}: {what}", program.display())]
    Version {
        /// The program that was asked.
        program: PathBuf,
        /// What it did.
        what: String,
    },
    /// An option that would fight with what the launch itself says.
    #[error("launcher {launcher}: option {option}: {why}")]
    Option {
        /// The launcher's name.
        launcher: &'static str,
        /// The option as given.
        option: String,
        /// Why it is refused, and what to do instead.
        why: &'static str,
    },
    /// No servers, or more than a session can have.
    #[error("launcher {launcher}: {count} servers: must be 1 to {max}")]
    Count {
        /// The launcher's name.
        launcher: &'static str,
        /// How many were asked for.
        count: u32,
        /// How many there can be.
        max: u32,
    },
    /// The directory to start in is none.
    #[error("directory {}: no such directory", path.display())]
    Directory {
        /// The directory asked for.
        path: PathBuf,
    },
    /// The process could not be started.
    #[error("start {who}: {}: {source}", program.display())]
    Spawn {
        /// Which process.
        who: String,
        /// Its program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process was started but cannot be watched.
    #[error("watch {who}: {op}: {source}")]
    Watch {
        /// Which process.
        who: String,
        /// What was tried.
        op: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
