//! Options of the subcommands for clusters, their resource managers, elements and jobs.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::LookArgs;

/// The resource managers to ask.
#[derive(Clone, Debug, Default, Args)]
pub struct ManagerArgs {
    /// Only this cluster, by its name in `sdm cluster list`.
    #[arg(short = 'M', long = "cluster", value_name = "NAME")]
    pub manager: Option<String>,
}

/// The form of a list.
#[derive(Clone, Debug, Default, Args)]
pub struct ListArgs {
    /// The cluster.
    #[command(flatten)]
    pub of: ManagerArgs,

    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub json: bool,

    /// Print the list again after each change, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
}

/// `sdm top`.
#[derive(Clone, Debug, Default, Args)]
pub struct TopArgs {
    /// Colours, style and keys of the screen.
    #[command(flatten)]
    pub look: LookArgs,
}

/// `sdm cluster`.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The command.
    #[command(subcommand)]
    pub verb: ClusterVerb,
}

/// The commands for the definition of a cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterVerb {
    /// Define a cluster and connect to it.
    Add(AddArgs),
    /// Disconnect from a cluster and delete its definition; its jobs keep running.
    #[command(visible_alias = "rm")]
    Remove(NamesArgs),
    /// Change the definition of a cluster. The change takes effect at the next `sdm cluster start`.
    Edit(EditArgs),
    /// Connect to clusters.
    Start(StartArgs),
    /// Disconnect from clusters; their jobs keep running.
    Stop(NamesArgs),
    /// List the defined clusters and their machines.
    #[command(visible_alias = "ls")]
    List(ListArgs),
}

/// `sdm cluster add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// A name for the cluster: letters, digits, `.`, `_` and `-`.
    pub name: String,

    /// The type of resource manager: slurm, gridengine, openmpi, hydra, prrte, ssh, local, or the NAME of a program `sdm-rm-NAME`.
    #[arg(value_name = "TYPE")]
    pub kind: String,

    /// The way to reach it.
    #[command(flatten)]
    pub there: ThereArgs,

    /// Define the cluster without connecting to it.
    #[arg(long)]
    pub no_start: bool,
}

/// `sdm cluster edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// The cluster.
    pub name: String,

    /// The new type of resource manager.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,

    /// The new way to reach the cluster. An omitted option changes nothing, an empty value removes the setting.
    #[command(flatten)]
    pub there: ThereArgs,
}

/// The host of a resource manager, and the agent that asks it.
#[derive(Clone, Debug, Default, Args)]
pub struct ThereArgs {
    /// The host on which the resource manager's commands work, as a destination of ssh. Default: this host.
    #[arg(long, value_name = "[USER@]HOST")]
    pub host: Option<String>,

    /// An option for ssh, as one word: `--ssh-option=-p2222`. Can be repeated.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub ssh_option: Vec<String>,

    /// The path of `sdm-agent` on that host.
    #[arg(long, value_name = "PATH")]
    pub agent: Option<String>,

    /// An argument for `sdm-agent`. Can be repeated.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub agent_arg: Vec<String>,

    /// A description of the cluster, shown in lists.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// `sdm cluster remove` and `sdm cluster stop`.
#[derive(Debug, Args)]
pub struct NamesArgs {
    /// The clusters.
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
}

/// `sdm cluster start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The clusters.
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
}

/// `sdm jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// The form of the output.
    #[command(flatten)]
    pub list: ListArgs,

    /// Show the jobs of all users that the resource manager shows, and older ended jobs.
    #[arg(short, long)]
    pub all: bool,
}

/// `sdm ps`.
#[derive(Debug, Args)]
pub struct PsArgs {
    /// The job: its number, or CLUSTER:NUMBER.
    pub job: String,

    /// The form of the output.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `sdm show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A job number, or the name of a node, queue, machine or cluster. Put `CLUSTER:` before it if several clusters
    /// have one.
    pub element: String,

    /// The form of the output.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `sdm submit`.
#[derive(Debug, Args)]
#[command(override_usage = "sdm submit [OPTIONS] [--] PROGRAM [ARGS]...")]
pub struct SubmitArgs {
    /// The cluster that gets the job.
    #[command(flatten)]
    pub to: ManagerArgs,

    /// The number of processes.
    #[arg(short = 'n', long = "processes", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(super::TASKS_MAX)))]
    pub count: u32,

    /// The queue (in Slurm, the partition). Default: the resource manager's default queue.
    #[arg(short, long, value_name = "QUEUE", visible_alias = "partition")]
    pub queue: Option<String>,

    /// The name of the job. Default: the program's name.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The working folder of the job. Default: the current folder, if the cluster's resource manager is on this host.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<String>,

    /// An environment variable for the job. Can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,

    /// The time limit of the job, in the form of the resource manager's own command: for example `1:30:00`.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,

    /// The number of nodes for the job.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,

    /// An option for the resource manager's own submit command, as one word: `--option=--time=10`. Can be repeated.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub option: Vec<String>,

    /// Print the job number as JSON.
    #[arg(long)]
    pub json: bool,

    /// Start the job under the debugger and hold it at `main`; `sdm attach JOB` opens its prompt.
    #[arg(long)]
    pub debug: bool,

    /// Start the program under a debugger of your own, which gets the program and its arguments after its own ones.
    #[arg(long, value_name = "PATH")]
    pub debugger: Option<String>,

    /// An argument of the debugger of your own, as one word: `--debugger-arg=-q`. Can be repeated.
    #[arg(
        long,
        value_name = "ARG",
        requires = "debugger",
        allow_hyphen_values = true
    )]
    pub debugger_arg: Vec<String>,

    /// Take options, program and arguments from `[profile.NAME]` of the settings file. The command line takes
    /// precedence.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]")]
    pub program: Vec<OsString>,
}

/// `sdm logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The job: its number, or CLUSTER:NUMBER.
    pub job: String,

    /// The cluster.
    #[command(flatten)]
    pub of: ManagerArgs,

    /// Follow the output until the job has ended.
    #[arg(short, long)]
    pub follow: bool,

    /// Print the standard error instead of the standard output.
    #[arg(long)]
    pub err: bool,
}

/// `sdm move`.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// The name of the target queue.
    #[arg(value_name = "QUEUE")]
    pub queue: String,

    /// The jobs.
    #[command(flatten)]
    pub of: JobArgs,
}

/// `sdm priority`.
#[derive(Debug, Args)]
pub struct PriorityArgs {
    /// The new priority, as a number of the resource manager.
    #[arg(value_name = "PRIORITY", allow_negative_numbers = true)]
    pub priority: i64,

    /// The jobs.
    #[command(flatten)]
    pub of: JobArgs,
}

/// `sdm cancel`, `hold` and `release`.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// The jobs: their numbers, or CLUSTER:NUMBER.
    #[arg(value_name = "JOB", required = true)]
    pub jobs: Vec<String>,

    /// The cluster.
    #[command(flatten)]
    pub of: ManagerArgs,
}
