//! The verbs of clusters: resource managers, what they have, and jobs.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::LookArgs;

/// The resource managers to ask.
#[derive(Clone, Debug, Default, Args)]
pub struct ManagerArgs {
    /// This cluster only, by the name that `sdm cluster add` gave it.
    #[arg(short = 'M', long = "cluster", value_name = "NAME")]
    pub manager: Option<String>,
}

/// The form of a list.
#[derive(Clone, Debug, Default, Args)]
pub struct ListArgs {
    /// The cluster.
    #[command(flatten)]
    pub of: ManagerArgs,

    /// One JSON document instead of a table.
    #[arg(long)]
    pub json: bool,

    /// Show it again whenever it has changed, until Ctrl-C.
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
    /// Define a cluster and start its manager: `sdm cluster add here slurm`.
    Add(AddArgs),
    /// Stop a cluster's manager and forget its definition; its jobs run on.
    #[command(visible_alias = "rm")]
    Remove(NamesArgs),
    /// Change the definition of a cluster; it holds from the next start on.
    Edit(EditArgs),
    /// Start the managers of clusters.
    Start(StartArgs),
    /// Stop the managers of clusters; their jobs run on.
    Stop(NamesArgs),
    /// List the clusters that are defined, and their machines.
    #[command(visible_alias = "ls")]
    List(ListArgs),
}

/// `sdm cluster add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The name for it: letters, digits, `.`, `_` and `-`.
    pub name: String,

    /// The type of resource manager: slurm, gridengine, openmpi, hydra, prrte, ssh, local, or the NAME of a program `sdm-rm-NAME`.
    #[arg(value_name = "TYPE")]
    pub kind: String,

    /// The way to reach it.
    #[command(flatten)]
    pub there: ThereArgs,

    /// Define it only.
    #[arg(long)]
    pub no_start: bool,
}

/// `sdm cluster edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// The cluster.
    pub name: String,

    /// The type of resource manager.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,

    /// The way to reach it; an option that is not given changes nothing, an empty value removes the setting.
    #[command(flatten)]
    pub there: ThereArgs,
}

/// The host of a resource manager, and the agent that asks it.
#[derive(Clone, Debug, Default, Args)]
pub struct ThereArgs {
    /// The host of the resource manager, as a destination of ssh; this host unless given.
    #[arg(long, value_name = "[USER@]HOST")]
    pub host: Option<String>,

    /// An option for ssh, as one word: `--ssh-option=-p2222`. May be given again.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub ssh_option: Vec<String>,

    /// The path of `sdm-agent` there.
    #[arg(long, value_name = "PATH")]
    pub agent: Option<String>,

    /// An argument for the agent. May be given again.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub agent_arg: Vec<String>,

    /// A few words for people.
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

    /// Jobs of everybody, as far as the system shows them, and older ones.
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
    /// A job's number, the name of a node, a queue, a machine or a cluster; each also as CLUSTER:NAME.
    pub element: String,

    /// The form of the output.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `sdm submit`.
#[derive(Debug, Args)]
#[command(override_usage = "sdm submit [OPTIONS] [--] PROGRAM [ARGS]...")]
pub struct SubmitArgs {
    /// To whom.
    #[command(flatten)]
    pub to: ManagerArgs,

    /// The number of processes.
    #[arg(short = 'n', long = "processes", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(super::TASKS_MAX)))]
    pub count: u32,

    /// Into which queue; the manager's own unless given.
    #[arg(short, long, value_name = "QUEUE", visible_alias = "partition")]
    pub queue: Option<String>,

    /// The name of the job; its program's name unless given.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The folder that it runs in; the current one unless given, where the cluster is on this host.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<String>,

    /// A variable of its environment. May be given again.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,

    /// The time that it may run, as the manager's own command takes it: `1:30:00`, for example.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,

    /// The number of nodes that it is to have.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,

    /// An option for the manager's own command, as one word: `--option=--time=10`. May be given again.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub option: Vec<String>,

    /// Its number as JSON.
    #[arg(long)]
    pub json: bool,

    /// Hold it before `main`: `sdm attach JOB` is at its prompt.
    #[arg(long)]
    pub debug: bool,

    /// Options, program and arguments as `[profile.NAME]` of the settings' file has them, where the command line does not
    /// say otherwise.
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

    /// Go on until the job has ended.
    #[arg(short, long)]
    pub follow: bool,

    /// Show its standard error instead of its standard output.
    #[arg(long)]
    pub err: bool,
}

/// `sdm move`.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// The queue: its name.
    #[arg(value_name = "QUEUE")]
    pub queue: String,

    /// The jobs.
    #[command(flatten)]
    pub of: JobArgs,
}

/// `sdm priority`.
#[derive(Debug, Args)]
pub struct PriorityArgs {
    /// The priority, as the resource manager counts it.
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
