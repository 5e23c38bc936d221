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

    /// JSON instead of text: one document, or a line for each event.
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
    /// The server in this process.
    #[arg(long, value_name = "PID", global = true)]
    pub pid: Option<i32>,

    /// The server of this name: the namespace that it has itself.
    #[arg(long, value_name = "NAMESPACE", global = true)]
    pub server: Option<String>,

    /// The server of this rendezvous file.
    #[arg(long, value_name = "FILE", global = true)]
    pub file: Option<PathBuf>,

    /// The server at this address: `tcp4://IP:PORT`.
    #[arg(long, value_name = "URI", global = true)]
    pub uri: Option<String>,

    /// The server of the whole machine.
    #[arg(long, global = true)]
    pub system: bool,
}

/// The commands for a PMIx server.
#[derive(Debug, Subcommand)]
pub enum PmixVerb {
    /// List servers, their jobs and processes.
    List,
    /// Ask for one key: `status`, `memory`, `keys` and the like, or a key of the standard's.
    Query(PmixQueryArgs),
    /// Have the server write a text: to its standard output or error, or to the system's log.
    Log(PmixLogArgs),
    /// Show what happens to jobs, until all have ended or Ctrl-C.
    Events,
    /// Start a program under the server, and be its terminal: `sdm pmix spawn -n 4 -- ./app args`.
    Spawn(PmixSpawnArgs),
    /// Show what a job writes, and with --stdin write to it.
    Io(PmixIoArgs),
    /// Send a signal to a job, or to a rank of it: `sdm pmix signal NAMESPACE:3 USR1`.
    Signal(PmixSignalArgs),
    /// End a job.
    Kill(PmixJobArgs),
}

/// `sdm pmix query`.
#[derive(Debug, Args)]
pub struct PmixQueryArgs {
    /// The query: `namespaces`, `jobs`, `processes`, `local-processes`, `status`, `memory`, `queues`, `queue-status`, `spawn`, `debug`, `keys`,
    /// or a key of the standard's (`pmix.qry.ptable`).
    pub key: String,
    /// The job, and the rank in it: `NAMESPACE` or `NAMESPACE:RANK`.
    pub job: Option<String>,
    /// It is an error that the server passes over the job or rank.
    #[arg(long)]
    pub required: bool,
    /// The value that the job or rank has of this key (`PMIx_Get`), and no query.
    #[arg(long)]
    pub get: bool,
}

/// The channel of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PmixChannel {
    /// The server's standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// The system's log.
    Syslog,
}

/// `sdm pmix log`.
#[derive(Debug, Args)]
pub struct PmixLogArgs {
    /// The channel.
    pub channel: PmixChannel,
    /// The text.
    pub text: String,
    /// Fail if the server has no such channel.
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
    /// Say the job's name once it runs, and leave it to the server: its output is the server's.
    #[arg(long)]
    pub detach: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub words: Vec<OsString>,
}

/// `sdm pmix io`.
#[derive(Debug, Args)]
pub struct PmixIoArgs {
    /// The job, and the rank in it: `NAMESPACE` or `NAMESPACE:RANK`.
    pub job: String,
    /// Pass standard input to it.
    #[arg(long)]
    pub stdin: bool,
}

/// `sdm pmix signal`.
#[derive(Debug, Args)]
pub struct PmixSignalArgs {
    /// The job, and the rank in it: `NAMESPACE` or `NAMESPACE:RANK`.
    pub job: String,
    /// The signal: `USR1`, `SIGUSR1` or a number.
    pub signal: String,
}

/// A job of a PMIx server.
#[derive(Debug, Args)]
pub struct PmixJobArgs {
    /// Its namespace.
    pub job: String,
}
