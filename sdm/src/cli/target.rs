//! Options of the commands on running processes: `sdm attach`, `web`, `stacks`, `profile` and `diagnose`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sdm_hosts::job::Target;
use sdm_idset::IdSet;
use sdm_shell::LookBy;

use super::ValueError;
use super::{CommandArgs, PrinterArgs, ReachArgs};

/// The processes to attach to, and the way to attach.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// The job, as one of: the pid of its mpirun, mpiexec, prterun or srun; a Slurm job (slurm:JOB, slurm:JOB.STEP,
    /// slurm:JOB_ELEMENT for an array, slurm:JOB+COMPONENT for a heterogeneous job, or JOB alone if no process on this
    /// host has that pid); a job of a cluster (CLUSTER:JOB, see `sdm cluster`); pmix:NAMESPACE; pids separated by
    /// commas; or a program's name.
    #[arg(value_name = "TARGET", required_unless_present_any = ["pids", "matching"])]
    target: Option<Target>,

    /// Take exactly these processes as the job.
    #[arg(long, value_name = "P,P...", value_parser = pids, conflicts_with_all = ["target", "matching"])]
    pids: Option<Target>,

    /// Take your processes with this program name as the job.
    #[arg(long = "match", value_name = "NAME", value_parser = name, conflicts_with = "target")]
    matching: Option<Target>,

    /// The way to reach the job's other hosts.
    #[command(flatten)]
    pub reach: ReachArgs,

    /// Only these ranks, as in 0-3,7.
    #[arg(long, value_name = "SET")]
    pub ranks: Option<IdSet>,

    /// Print one JSON record per line for each event, instead of text.
    #[arg(long)]
    pub json: bool,

    /// The gdb to use. Default: `gdb` on PATH.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The pretty printers that gdb loads.
    #[command(flatten)]
    pub printers: PrinterArgs,

    /// Attach even if a host seems to have too little memory for its gdb processes.
    #[arg(long)]
    pub force: bool,

    /// The time limit for the answer to a command, in seconds. Ranks that have not answered by then are listed.
    #[arg(long, value_name = "S", default_value = "60",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

impl TargetArgs {
    /// A target of all processes of the job whose launcher has this pid.
    #[must_use]
    pub fn of_starter(pid: i32, reach: ReachArgs, gdb: Option<PathBuf>) -> Self {
        Self {
            target: Some(Target::Pids(vec![pid])),
            pids: None,
            matching: None,
            reach,
            ranks: None,
            json: false,
            gdb,
            printers: PrinterArgs::default(),
            force: false,
            timeout: 60,
        }
    }

    /// The target if it is a plain name, which can stand for a job of a cluster. None for other targets.
    #[must_use]
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.target {
            Some(Target::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// Replaces the target of the command line by this one.
    pub(crate) fn choose(&mut self, target: Target) {
        self.target = Some(target);
    }

    /// The target, from the argument, `--pids` or `--match`.
    #[must_use]
    pub fn job(&self) -> &Target {
        let given = self.target.as_ref().or(self.pids.as_ref());
        let given = given.or(self.matching.as_ref());
        given.expect("the command line demands one of the three")
    }
}

/// `sdm attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Commands, and whether the session is kept.
    #[command(flatten)]
    pub commands: CommandArgs,

    /// The way in which stacks are read at the prompt. With snapshot, gdb attaches only to ranks for which a command
    /// needs it; with gdb, it attaches to all ranks at the start.
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    pub by: By,
}

/// `sdm diagnose`.
#[derive(Debug, Args)]
#[command(mut_arg("target", |target| target.required_unless_present("replay")))]
pub struct DiagnoseArgs {
    /// The processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// The number of samples of the stacks. The processes run between them.
    #[arg(long, value_name = "N", default_value = "3",
          value_parser = clap::value_parser!(u32).range(2..=100))]
    pub samples: u32,

    /// Spread the samples over at least this many seconds.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,

    /// The way in which stacks are read.
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    pub by: By,

    /// Write the graph of which ranks wait for which into this file, for Graphviz's `dot`.
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,

    /// Write the observations behind the verdict into this file, to report a wrong verdict. The file has names of
    /// functions, source lines and processes; of the program's data it has only arguments of MPI calls.
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,

    /// Judge the observations in this file (written by `--observations`) instead of a running job.
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["target", "pids", "matching", "ranks", "samples", "seconds", "by", "observations"])]
    pub replay: Option<PathBuf>,
}

/// The rate at which a job is looked at over a while, and the files that are written of it.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// The number of samples per second.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rate: u32,

    /// Write a flame graph (SVG) of all ranks, and of each group of ranks that behave alike, into this file.
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,

    /// Write the profile of all ranks, and of each group of ranks that behave alike, into this file, in the format of
    /// speedscope.
    #[arg(long, value_name = "FILE")]
    pub speedscope: Option<PathBuf>,
}

/// `sdm profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Show all frames, including those inside MPI and other runtimes, of every thread.
    #[arg(long)]
    pub full: bool,

    /// The duration of the sampling, in seconds. Ctrl-C ends it earlier.
    #[arg(long = "for", value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,

    /// The rate, and the files that are written.
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

/// `sdm stacks`.
#[derive(Debug, Args)]
#[command(
    mut_arg("rate", |it| it.requires("seconds")),
    mut_arg("flame", |it| it.requires("seconds")),
    mut_arg("speedscope", |it| it.requires("seconds"))
)]
pub struct StacksArgs {
    /// The processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Show all frames, including those inside MPI and other runtimes, of every thread.
    #[arg(long)]
    pub full: bool,

    /// The way in which stacks are read.
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    pub by: By,

    /// Sample again every S seconds (default 2) and print the changes, until Ctrl-C. The processes run between samples.
    #[arg(long, value_name = "S", num_args = 0..=1, require_equals = true,
          default_missing_value = "2", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub watch: Option<u32>,

    /// Sample many times a second for this many seconds, and print a profile as `sdm profile` does. Ctrl-C ends it
    /// earlier.
    #[arg(long = "for", value_name = "SECONDS", conflicts_with_all = ["watch", "by"],
          value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,

    /// The rate, and the files that are written.
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

/// The way in which processes are inspected: without gdb where that is possible, or only by gdb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Copy the stacks without gdb; each process stops only meanwhile. gdb reads only processes whose stacks cannot be
    /// copied.
    #[default]
    Snapshot,
    /// Read all stacks with gdb; each process stops for some seconds.
    Gdb,
}

impl From<By> for LookBy {
    fn from(by: By) -> Self {
        match by {
            By::Snapshot => Self::Snapshot,
            By::Gdb => Self::Gdb,
        }
    }
}

fn pids(text: &str) -> Result<Target, ValueError> {
    match text.parse()? {
        target @ Target::Pids(_) => Ok(target),
        Target::Number(pid) => Ok(Target::Pids(vec![pid])),
        _ => Err(ValueError::Wrong("expected pids separated by commas")),
    }
}

fn name(text: &str) -> Result<Target, ValueError> {
    if text.is_empty() {
        return Err(ValueError::Wrong("expected a program's name"));
    }
    Ok(Target::Name(text.to_owned()))
}
