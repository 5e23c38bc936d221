//! Options of `sdm pmix`, the tool for foreign PMIx servers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `sdm pmix`.
#[derive(Debug, Args)]
pub struct PmixArgs {
    /// The PMIx server to which the command connects.
    #[command(flatten)]
    pub server: PmixServerArgs,

    /// Print JSON instead of text: one document, or one line per event.
    #[arg(long, global = true)]
    pub json: bool,

    /// The command.
    #[command(subcommand)]
    pub verb: PmixVerb,
}

/// The PMIx server; by default the system's, else the only one of a session.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub struct PmixServerArgs {
    /// The PMIx server with this pid.
    #[arg(long, value_name = "PID", global = true)]
    pub pid: Option<i32>,

    /// The PMIx server with this namespace of its own.
    #[arg(long, value_name = "NAMESPACE", global = true)]
    pub server: Option<String>,

    /// The PMIx server of this rendezvous file.
    #[arg(long, value_name = "FILE", global = true)]
    pub file: Option<PathBuf>,

    /// The PMIx server at this address: `tcp4://IP:PORT`.
    #[arg(long, value_name = "URI", global = true)]
    pub uri: Option<String>,

    /// The system's PMIx server on this host.
    #[arg(long, global = true)]
    pub system: bool,
}

/// The commands for a PMIx server.
#[derive(Debug, Subcommand)]
pub enum PmixVerb {
    /// List PMIx servers, their jobs and processes.
    List,
    /// Query one key: `status`, `memory`, `keys` or another of sdm's names, or a key of the PMIx standard.
    Query(PmixQueryArgs),
    /// Have the server write a text to its standard output or error, or to syslog.
    Log(PmixLogArgs),
    /// Print the events of jobs until all have ended, or until Ctrl-C.
    Events,
    /// Start a program under the server and show its output here.
    Spawn(PmixSpawnArgs),
    /// Print the output of a job as it is written; with --stdin also send it standard input.
    Io(PmixIoArgs),
    /// Send a signal to a job or to one of its ranks.
    Signal(PmixSignalArgs),
    /// End a job.
    Kill(PmixJobArgs),
}

/// `sdm pmix query`.
#[derive(Debug, Args)]
pub struct PmixQueryArgs {
    /// The key to query: `namespaces`, `jobs`, `processes`, `local-processes`, `status`, `memory`, `queues`,
    /// `queue-status`, `spawn`, `debug`, `keys`, or a key of the PMIx standard (`pmix.qry.ptable`).
    pub key: String,
    /// The job, or one of its ranks: `NAMESPACE` or `NAMESPACE:RANK`.
    pub job: Option<String>,
    /// Fail if the server ignores the given job or rank in its answer.
    #[arg(long)]
    pub required: bool,
    /// Read the value of this key that the job or rank has published (`PMIx_Get`), instead of querying.
    #[arg(long)]
    pub get: bool,
}

/// The channel of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PmixChannel {
    /// Write to the server's standard output.
    Stdout,
    /// Write to the server's standard error.
    Stderr,
    /// Write to syslog.
    Syslog,
}

/// `sdm pmix log`.
#[derive(Debug, Args)]
pub struct PmixLogArgs {
    /// The channel.
    pub channel: PmixChannel,
    /// The text to write.
    pub text: String,
    /// Fail if the server cannot write to that place.
    #[arg(long)]
    pub required: bool,
}

/// `sdm pmix spawn`.
#[derive(Debug, Args)]
pub struct PmixSpawnArgs {
    /// The number of processes.
    #[arg(short = 'n', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub count: u32,
    /// Spawn even if the server is a `prterun` or `mpirun`, whose own job ends if the spawned program fails.
    #[arg(long)]
    pub into_job: bool,
    /// Print the job's namespace once it runs, and exit. Its output then goes to the server.
    #[arg(long)]
    pub detach: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub words: Vec<OsString>,
}

/// `sdm pmix io`.
#[derive(Debug, Args)]
pub struct PmixIoArgs {
    /// The job, or one of its ranks: `NAMESPACE` or `NAMESPACE:RANK`.
    pub job: String,
    /// Pass the standard input of sdm to the job or rank.
    #[arg(long)]
    pub stdin: bool,
}

/// `sdm pmix signal`.
#[derive(Debug, Args)]
pub struct PmixSignalArgs {
    /// The job, or one of its ranks: `NAMESPACE` or `NAMESPACE:RANK`.
    pub job: String,
    /// The signal: `USR1`, `SIGUSR1` or a number.
    pub signal: String,
}

/// A job of a PMIx server.
#[derive(Debug, Args)]
pub struct PmixJobArgs {
    /// The namespace of the job.
    pub job: String,
}
