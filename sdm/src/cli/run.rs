//! Options of `sdm run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sdm_idset::IdSet;
use sdm_launch::Control;

use super::groups;
use super::programs::{self, ProgramPart};
use super::{BatchArgs, CheckArgs, GdbArgs, LauncherArgs, ScriptArgs, TASKS_MAX, TreeArgs};
use super::{ProgramsError, StdinError, ValueError};

/// `sdm run`.
#[derive(Debug, Args)]
#[command(override_usage = "sdm run [OPTIONS] [--] PROGRAM [ARGS]...", mut_args = groups::of_run)]
pub struct RunArgs {
    /// The number of processes.
    #[arg(short = 'n', long = "processes", aliases = ["np", "ntasks"], value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASKS_MAX)))]
    pub count: u32,

    /// The launcher of the processes, and their hosts.
    #[command(flatten)]
    pub launch: LauncherArgs,

    /// Commands, and how what comes of them is shown.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// The tree of servers.
    #[command(flatten)]
    pub tree: TreeArgs,

    /// Runs without a user at the prompt.
    #[command(flatten)]
    pub batch: BatchArgs,

    /// Let the processes run instead of holding them at `main`.
    #[arg(long, conflicts_with = "control")]
    pub no_stop: bool,

    /// The way in which the processes come under gdb: plain (the launcher starts servers, each has gdb start its process), or
    /// the launcher starts the processes and holds them, and one gdb on each host attaches to all there: by
    /// mpir (Open MPI 4's mpirun, srun) or by pmix (Open MPI 5's mpirun). srun and pmix hold them before their
    /// first instruction, Open MPI 4 in MPI_Init.
    #[arg(long, value_name = "HOW", default_value = "plain", value_enum)]
    pub control: ControlBy,

    /// PMIx server of SDM for the processes, by which Open MPI programs are one job without mpirun: auto (where
    /// the launcher is local or ssh and the program is linked with Open MPI), on (nothing is started without; srun, too), system (as
    /// on, and tools find it as that of the node, by the file pmix.sys.HOST, where the node has none) or off.
    #[arg(long, value_name = "WHEN", default_value = "auto", value_enum)]
    pub pmix: PmixUse,

    /// The gdb to use; found on PATH unless given.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The use of gdb.
    #[command(flatten)]
    pub gdb_use: Box<GdbArgs>,

    /// Checks of their use of MPI.
    #[command(flatten)]
    pub check: Box<CheckArgs>,

    /// The working directory of the processes.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// A variable of the processes' environment; without a value it is removed.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = environment)]
    pub environment: Vec<(String, Option<String>)>,

    /// The program that carries input and output of the processes: sdm, which merges equal output, or the launcher
    /// (mpirun, mpiexec, srun), as without a debugger. With `launcher` nothing is merged or kept for the
    /// report, and `send` feeds the ranks that the launcher feeds.
    #[arg(long, value_name = "WHO", default_value = "sdm", value_enum)]
    pub output: Carrier,

    /// The ranks that read the standard input of sdm, or, at a prompt, what `send` feeds: a set of ranks, `all` or
    /// `none`. The others read an empty one.
    #[arg(long, value_name = "SET", default_value = "0", value_parser = stdin_set)]
    pub stdin: StdinSet,

    /// Options, program and arguments as `[profile.NAME]` of the settings' file has them, where the command line does not
    /// say otherwise.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// The program and its arguments: all that follows the first word that is no option of sdm, with a `--` in front or without. Further programs of the same job stand behind it, each with its
    /// number of processes: `: -n 3 ./b y`, or `: -n 3 LAUNCHER-OPTIONS -- ./b y`.
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]")]
    pub program: Vec<OsString>,
}

impl RunArgs {
    /// The programs, in the order of their ranks: at least one.
    ///
    /// # Errors
    /// [`ProgramsError`]: a further program without a number of processes or a name, or more processes than there can be.
    pub fn programs(&self) -> Result<Vec<ProgramPart>, ProgramsError> {
        programs::split(self.count, &self.program)
    }
}

/// The way in which processes come under gdb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ControlBy {
    /// gdb starts them.
    Plain,
    /// Their launcher holds them by MPIR.
    Mpir,
    /// Their launcher holds them by PMIx.
    Pmix,
}

impl ControlBy {
    /// The interface by which the launcher holds the processes. None where gdb starts them.
    #[must_use]
    pub fn held(self) -> Option<Control> {
        match self {
            Self::Plain => None,
            Self::Mpir => Some(Control::Mpir),
            Self::Pmix => Some(Control::Pmix),
        }
    }
}

/// The use of SDM's PMIx server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PmixUse {
    /// If the programs can use one.
    Auto,
    /// In any case: nothing is started where there can be none.
    On,
    /// As `on`. Tools also find the server as that of the node, if the node has none.
    System,
    /// Never.
    Off,
}

/// The program that carries input and output of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Carrier {
    /// The tree of servers.
    Sdm,
    /// The launcher of the servers.
    Launcher,
}

/// The ranks that get standard input.
#[derive(Clone, Debug, PartialEq)]
pub enum StdinSet {
    /// All ranks.
    All,
    /// These ranks.
    Tasks(IdSet),
}

impl StdinSet {
    /// The tasks meant among `count`.
    ///
    /// # Errors
    /// [`StdinError`]: a set that names tasks beyond them.
    pub fn among(&self, count: u32) -> Result<IdSet, StdinError> {
        let all = IdSet::all_below(count);
        match self {
            Self::All => Ok(all),
            Self::Tasks(tasks) if tasks.is_subset(&all) => Ok(tasks.clone()),
            Self::Tasks(tasks) => Err(StdinError {
                tasks: sdm_idset::set_text(tasks, 60),
                all: sdm_idset::set_text(&all, 60),
            }),
        }
    }
}

fn environment(text: &str) -> Result<(String, Option<String>), ValueError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() || text.contains('\0') {
        return Err(ValueError::Wrong("expected NAME=VALUE, or NAME"));
    }
    Ok((name.to_owned(), value))
}

fn stdin_set(text: &str) -> Result<StdinSet, ValueError> {
    match text {
        "all" => Ok(StdinSet::All),
        "none" => Ok(StdinSet::Tasks(IdSet::new())),
        text => Ok(StdinSet::Tasks(text.parse()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_goes_only_to_existing_ranks() {
        let set = |text| stdin_set(text).unwrap();
        assert_eq!(set("all").among(4).unwrap().to_string(), "0-3");
        assert_eq!(set("1-2").among(4).unwrap().to_string(), "1-2");
        assert!(set("none").among(4).unwrap().is_empty());
        let error = set("3-5").among(4).unwrap_err().to_string();
        assert!(error.contains("--stdin 3-5"), "{error}");
    }
}
