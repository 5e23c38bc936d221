//! Errors of starting servers.

use sdm_text::printable_name;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Error of a launch that could not begin. Later errors are a [`crate::LaunchEvent`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No launcher has this name.
    #[error(
        "launcher {}: unknown (known: local, mpirun, mpiexec, srun, ssh, manual, a path to mpirun or \
         mpiexec, or NAME where sdm-launch-NAME is on PATH)",
        printable_name(name)
    )]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The launcher's program was not found, or its `--version` shows no known launcher.
    #[error("launcher {} was not found: {tried}", printable_name(name))]
    NotFound {
        /// The requested name.
        name: String,
        /// The programs that were searched for, each with the reason for which it was not taken.
        tried: String,
    },
    /// A program's `--version` failed, or its output is not that of a known launcher.
    #[error("launcher {}: {what}", printable_name(program))]
    Version {
        /// Path of the program.
        program: PathBuf,
        /// The output of the program, or the error.
        what: String,
    },
    /// An option that the launcher does not take, or that conflicts with those that the launch itself sets.
    #[error("launcher {launcher}: option {option}: {why}")]
    Option {
        /// The launcher's name.
        launcher: String,
        /// The option as given.
        option: String,
        /// Reason for which the option is refused, and advice.
        why: &'static str,
    },
    /// The launcher has no such interface to hold its processes for a debugger.
    #[error("{launcher}: --control {control}: {why}")]
    Control {
        /// Display name of the launcher.
        launcher: String,
        /// The interface that `--control` requests: `mpir` or `pmix`.
        control: &'static str,
        /// Reason for the refusal, and advice.
        why: String,
    },
    /// The launcher cannot start the servers with the given hosts, programs or options.
    #[error("launcher {launcher}: {what}")]
    Hosts {
        /// The launcher's name.
        launcher: String,
        /// The fault, and advice.
        what: String,
    },
    /// The number of servers is 0, or more than a session can have.
    #[error("launcher {launcher}: {count} servers were requested: expected 1 to {max}")]
    Count {
        /// The launcher's name.
        launcher: String,
        /// Requested number of servers.
        count: u32,
        /// Maximum number of servers.
        max: u32,
    },
    /// The working directory does not exist, or is no directory.
    #[error("directory {}: no such directory", printable_name(path))]
    Directory {
        /// Path of the requested directory.
        path: PathBuf,
    },
    /// The process could not be started.
    #[error("cannot start {who}: {}: {source}", printable_name(program))]
    Spawn {
        /// Display name of the process: `server 3`, `mpirun`, `ssh node7`.
        who: String,
        /// The program that was to be started.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A started process cannot be watched, or the pipe or memory file for it cannot be made.
    #[error("cannot watch {who}: {op}: {source}")]
    Watch {
        /// Display name of the process: `server 3`, `mpirun`, `ssh node7`.
        who: String,
        /// The operation that failed.
        op: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The launch needs more descriptors than this process, or one that it starts, is allowed.
    #[error("{who} needs {needed} file descriptors, but only {allowed} are allowed (`ulimit -n`)")]
    Descriptors {
        /// Display name of the process: `server 3`, `mpirun`, `ssh node7`.
        who: String,
        /// Number of descriptors that the launch would need.
        needed: u64,
        /// Number of descriptors that are allowed.
        allowed: u64,
    },
    /// The system does not allow as many processes as would be started.
    #[error(
        "this host allows too few processes for {count} more: {limit} is {allowed}, {needed} are needed"
    )]
    Processes {
        /// Number of processes that would be started.
        count: u64,
        /// Name of the limit that prevents them.
        limit: String,
        /// Number of processes that the limit allows.
        allowed: u64,
        /// Total number of processes that would be needed.
        needed: u64,
    },
    /// The memory that would be needed exceeds a limit of this machine.
    #[error(
        "at least {needed} MiB of memory are needed on this host, but {limit} is {allowed} MiB; --force starts the ranks anyway"
    )]
    Memory {
        /// The memory that would be needed, in MiB.
        needed: u64,
        /// Name of the limit.
        limit: String,
        /// The memory that the limit allows, in MiB.
        allowed: u64,
    },
    /// The resource limits of this process cannot be read.
    #[error("cannot read the resource limits of this process: {source}")]
    Limits {
        /// The error of the system.
        source: io::Error,
    },
}
