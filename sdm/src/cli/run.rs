//! Options of `sdm run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sdm_idset::IdSet;
use sdm_launch::Control;

use super::programs::{self, ProgramPart};
use super::{BatchArgs, CheckArgs, GdbArgs, LauncherArgs, ScriptArgs, TASKS_MAX, TreeArgs};
use super::{ProgramsError, StdinError, ValueError};

/// `sdm run`.
#[derive(Debug, Args)]
#[command(override_usage = "sdm run [OPTIONS] [--] PROGRAM [ARGS]...")]
pub struct RunArgs {
    /// The number of processes.
    #[arg(short = 'n', long = "processes", aliases = ["np", "ntasks"], value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASKS_MAX)))]
    pub count: u32,

    /// The launcher of the processes, and their hosts.
    #[command(flatten)]
    pub launch: LauncherArgs,

    /// The commands to carry out, and the form of their output.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// The tree of servers.
    #[command(flatten)]
    pub tree: TreeArgs,

    /// Runs without a user at the prompt.
    #[command(flatten)]
    pub batch: BatchArgs,

    /// Let the processes run at once instead of stopping them at `main`.
    #[arg(long, conflicts_with = "control")]
    pub no_stop: bool,

    /// The way in which gdb gets the processes. plain: the launcher starts debug servers, and each rank is started by
    /// its own gdb. mpir (mpirun of Open MPI 4, srun) and pmix (mpirun of Open MPI 5): the launcher starts the ranks
    /// and holds them, and one gdb per host attaches to them. srun and pmix hold ranks before their first instruction,
    /// Open MPI 4 in MPI_Init.
    #[arg(long, value_name = "HOW", default_value = "plain", value_enum)]
    pub control: ControlBy,

    /// SDM's own PMIx server, which connects the ranks of an Open MPI program without mpirun. auto: with the launchers
    /// local and ssh, if the program is linked with Open MPI. on: always, also with srun; the start fails if it cannot
    /// run. system: as on, and PMIx tools find it as the node's system server (file pmix.sys.HOST), if the node has
    /// none. off: never.
    #[arg(long, value_name = "WHEN", default_value = "auto", value_enum)]
    pub pmix: PmixUse,

    /// The gdb to use. Default: `gdb` on PATH.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The use of gdb.
    #[command(flatten)]
    pub gdb_use: Box<GdbArgs>,

    /// Checks of the processes' use of MPI.
    #[command(flatten)]
    pub check: Box<CheckArgs>,

    /// The working directory of the processes. Default: the current one.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Set an environment variable of the processes, or remove it (NAME alone). Can be repeated.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = environment)]
    pub environment: Vec<(String, Option<String>)>,

    /// The program that passes on the output and input of the processes. sdm merges equal lines of several ranks.
    /// launcher (mpirun, mpiexec or srun) passes on as without a debugger: nothing is merged or stored for the report,
    /// and input from `send` goes to the ranks to which the launcher passes it.
    #[arg(long, value_name = "WHO", default_value = "sdm", value_enum)]
    pub output: Carrier,

    /// The ranks that read the standard input of sdm (at a prompt: the input from `send`): a set of ranks, `all` or
    /// `none`. The other ranks read an empty standard input.
    #[arg(long, value_name = "SET", default_value = "0", value_parser = stdin_set)]
    pub stdin: StdinSet,

    /// Take options, program and arguments from `[profile.NAME]` of the settings file. The command line takes
    /// precedence.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// The program and its arguments. The first word that is not an option of sdm is the program, and everything after
    /// it belongs to the program; put `--` before it in scripts. Add further programs of the same job (MPMD) after a
    /// colon, each with its number of processes: `: -n 3 ./b y`, or `: -n 3 LAUNCHER-OPTIONS -- ./b y`.
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
    /// Each rank is started by its own gdb.
    Plain,
    /// The launcher starts and holds the ranks by MPIR.
    Mpir,
    /// The launcher starts and holds the ranks by PMIx.
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
    /// If the launcher is local or ssh and the program is linked with Open MPI.
    Auto,
    /// Always. The start fails if the server cannot run.
    On,
    /// As `on`, and PMIx tools find it as the system server of the node, if the node has none.
    System,
    /// Never.
    Off,
}

/// The program that carries input and output of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Carrier {
    /// SDM's servers.
    Sdm,
    /// The launcher that started the servers.
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
    /// The tasks meant among `count` tasks.
    ///
    /// # Errors
    /// [`StdinError`]: the set names a task that does not exist.
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
