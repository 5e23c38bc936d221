//! Processes that run already: `sdm attach`, `stacks` and `diagnose`.

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
    /// The job: the pid of its mpirun, mpiexec, prterun or srun; a job of Slurm's: slurm:JOB,
    /// slurm:JOB.STEP, slurm:JOB_ELEMENT or slurm:JOB+COMPONENT, or its number where that is no pid here;
    /// CLUSTER:JOB of a cluster (`sdm cluster`); pmix:NAMESPACE; pids, with commas in between; or a program's name.
    #[arg(value_name = "TARGET", required_unless_present_any = ["pids", "matching"])]
    target: Option<Target>,

    /// The job: these pids, whatever they are of.
    #[arg(long, value_name = "P,P...", value_parser = pids, conflicts_with_all = ["target", "matching"])]
    pids: Option<Target>,

    /// The job: processes of this name.
    #[arg(long = "match", value_name = "NAME", value_parser = name, conflicts_with = "target")]
    matching: Option<Target>,

    /// The way to reach the job's other hosts.
    #[command(flatten)]
    pub reach: ReachArgs,

    /// These ranks only.
    #[arg(long, value_name = "SET")]
    pub ranks: Option<IdSet>,

    /// One record per event, as JSON lines, instead of text.
    #[arg(long)]
    pub json: bool,

    /// The gdb to use; found on PATH unless given.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The pretty printers that gdb loads.
    #[command(flatten)]
    pub printers: PrinterArgs,

    /// Attach also where a host seems to have too little memory for it.
    #[arg(long)]
    pub force: bool,

    /// Time limit for an answer of the processes, in seconds.
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

    /// At a prompt, by what they are looked at first: gdb attaches to those that a command needs it for, or to all at once.
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

    /// The number of samples; the processes run in between.
    #[arg(long, value_name = "N", default_value = "3",
          value_parser = clap::value_parser!(u32).range(2..=100))]
    pub samples: u32,

    /// For how many seconds they are looked at, where that is longer.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,

    /// By what they are looked at.
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    pub by: By,

    /// Writes who waits for whom into this file, as a graph for `dot` of Graphviz.
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,

    /// Writes what the verdict rests on into this file, for a report of a wrong one: functions, lines of source, processes,
    /// no data of the program's but the arguments of MPI's calls.
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,

    /// Judges what `--observations` has written anew, in place of a job.
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["target", "pids", "matching", "ranks", "samples", "seconds", "by", "observations"])]
    pub replay: Option<PathBuf>,
}

/// The rate at which a job is looked at over a while, and the files that are written of it.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// So often a second.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rate: u32,

    /// Writes a flame graph into this file: an SVG picture of all ranks, and of each class of them.
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,

    /// Writes the profile of all ranks, and of each class of them, into this file in the format of speedscope.
    #[arg(long, value_name = "FILE")]
    pub speedscope: Option<PathBuf>,
}

/// `sdm profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Unfolded, and every thread.
    #[arg(long)]
    pub full: bool,

    /// For how many seconds they are looked at; Ctrl-C ends it earlier.
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

    /// Unfolded, and every thread.
    #[arg(long)]
    pub full: bool,

    /// By what they are looked at.
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    pub by: By,

    /// Look again every S seconds (2) and show what differs, until Ctrl-C; the processes run in
    /// between.
    #[arg(long, value_name = "S", num_args = 0..=1, require_equals = true,
          default_missing_value = "2", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub watch: Option<u32>,

    /// Look many times a second for so long and show where they were, as `sdm profile` does; Ctrl-C ends it earlier.
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
    /// Each process stops only while its stacks are copied. gdb reads those whose stacks cannot be copied.
    #[default]
    Snapshot,
    /// gdb alone: each stands for seconds.
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
        _ => Err(ValueError::Wrong("expected pids, with commas in between")),
    }
}

fn name(text: &str) -> Result<Target, ValueError> {
    if text.is_empty() {
        return Err(ValueError::Wrong("expected a program's name"));
    }
    Ok(Target::Name(text.to_owned()))
}
