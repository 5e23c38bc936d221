//! The command line.

mod gdb;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use sdm_core::topology::Topology;
use sdm_idset::IdSet;
use sdm_launch::HostShare;
use sdm_launch::job::Target;

pub use gdb::GdbArgs;

/// The most tasks that one session can have.
pub const TASKS_MAX: u32 = 1 << 20;

/// A debugger for programs that run as many processes at once.
#[derive(Debug, Parser)]
#[command(name = "sdm", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Verb,
}

/// What `sdm` can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a program as N processes, bring them to `main`, and debug them.
    Run(Box<RunArgs>),
    /// Try everything without a program: N real servers on this machine, with scripted tasks.
    Emulate(EmulateArgs),
    /// Debug processes that run already; at the end they run on as before.
    Attach(AttachArgs),
    /// Say why a job is stuck, as far as a few looks at its stacks show, and leave it as it is.
    ///
    /// Exit code: 0 nothing seems stuck, 1 something is, 2 something went wrong.
    Diagnose(DiagnoseArgs),
    /// Print the merged stacks of running processes, and leave them as they are.
    ///
    /// Exit code: 0 all are in the same place, 1 some differ, 2 something went wrong.
    Stacks(StacksArgs),
    /// List the sessions that are kept (`--keep`) on this machine.
    Sessions,
    /// Bring a kept session to this terminal.
    Resume(SessionArgs),
    /// Take a kept session from its terminal; it goes on.
    Detach(SessionArgs),
    /// Keep a session: started by `--keep`.
    #[command(hide = true)]
    Keeper(KeeperArgs),
}

/// Who starts the processes, and where.
#[derive(Clone, Debug, Args)]
pub struct LauncherArgs {
    /// Who starts them: auto (by what the program is linked with), local (this machine, no MPI), mpirun (Open MPI), mpiexec (Hydra), srun
    /// (Slurm), ssh, manual (you, by the commands that are shown), a path to mpirun or mpiexec, or
    /// NAME where sdm-launch-NAME is on PATH.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub launcher: String,

    /// An option for the launcher, passed on unchanged; may be repeated.
    #[arg(
        long = "launcher-option",
        value_name = "OPT",
        allow_hyphen_values = true
    )]
    pub launcher_options: Vec<OsString>,

    /// The hosts to start on, for ssh and manual: `a,b:4`, a number for how many processes.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// A file with hosts, one a line: `a`, `b:4` or `b slots=4`.
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    pub hostfile: Option<PathBuf>,

    /// The first port for the servers; each takes the next free one from there on.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Where sdm-server is on the servers' hosts; where it is here unless given.
    #[arg(long, value_name = "PATH")]
    pub server_path: Option<PathBuf>,
}

impl LauncherArgs {
    /// The hosts to start on, named or in a file.
    ///
    /// # Errors
    /// A file that cannot be read, or a line that names no host.
    pub fn hosts(&self) -> Result<Vec<HostShare>, String> {
        let Some(path) = &self.hostfile else {
            return Ok(self.hosts.clone());
        };
        let name = path.display();
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("read {name}: {error}"))?;
        HostShare::file(&text).map_err(|error| format!("{name}: {error}"))
    }
}

/// How the tree of servers is made.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct TreeArgs {
    /// How the servers are arranged: binomial, kary:K, flat or by-host.
    #[arg(long, value_name = "KIND", default_value_t)]
    pub topology: Topology,

    /// How long the servers may take to come, in seconds.
    #[arg(long, value_name = "S", default_value = "60",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub start_wait: u32,

    /// Go on where some of the servers have not come by then.
    #[arg(long)]
    pub partial: bool,
}

impl Default for TreeArgs {
    fn default() -> Self {
        Self {
            topology: Topology::default(),
            start_wait: 60,
            partial: false,
        }
    }
}

/// Commands instead of a person, and whether the session outlives its terminal.
#[derive(Clone, Debug, Args)]
pub struct CommandArgs {
    /// Commands from a file; may be repeated and mixed with -c. The session ends after them.
    #[arg(short = 'x', long = "command-file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A command; may be repeated and mixed with -x. The session ends after the last.
    #[arg(
        short = 'c',
        long = "command",
        value_name = "CMD",
        allow_hyphen_values = true
    )]
    pub commands: Vec<String>,

    /// Give the prompt after the commands of -x and -c.
    #[arg(short = 'i', long)]
    pub interactive: bool,

    /// Keep the session when the terminal goes: Ctrl-\ detaches it, `sdm resume` brings it back.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub keep: Option<String>,
}

/// Commands, and how what comes of them is shown.
#[derive(Clone, Debug, Args)]
pub struct ScriptArgs {
    /// Commands, and whether the session is kept.
    #[command(flatten)]
    pub commands: CommandArgs,

    /// One record per event, as JSON lines, instead of text.
    #[arg(long)]
    pub json: bool,

    /// How long a question to the processes may take, in seconds.
    #[arg(long, value_name = "S", default_value = "30",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

/// `sdm run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// How many processes.
    #[arg(short = 'n', long = "processes", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASKS_MAX)))]
    pub count: u32,

    /// Who starts them, and where.
    #[command(flatten)]
    pub launch: LauncherArgs,

    /// Commands, and how what comes of them is shown.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// How the session's tree is made.
    #[command(flatten)]
    pub tree: TreeArgs,

    /// What is done without anybody at the prompt.
    #[command(flatten)]
    pub batch: BatchArgs,

    /// Let the processes run instead of holding them at `main`.
    #[arg(long)]
    pub no_stop: bool,

    /// The gdb to use; found on PATH unless given.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// How gdb is used.
    #[command(flatten)]
    pub gdb_use: Box<GdbArgs>,

    /// Where the processes start.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// A variable of the processes' environment; without a value it is removed.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = environment)]
    pub environment: Vec<(String, Option<String>)>,

    /// Whose standard input `send` feeds: a set of ranks, `all` or `none`. The others read an
    /// empty one.
    #[arg(long, value_name = "SET", default_value = "0", value_parser = stdin_set)]
    pub stdin: StdinSet,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]")]
    pub program: Vec<OsString>,
}

/// A run to the end without anybody.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// Let the program run to its end after the commands of -x and -c, and look at what goes wrong.
    ///
    /// Exit code: 0 all ended with 0; the program's own where there is one other; 128 and the signal
    /// of a crash; 120 time-out or hang; 121 abort; 122 ranks lost; 123 a command failed.
    #[arg(long, conflicts_with = "interactive")]
    pub batch: bool,

    /// A command at the first crash or abort, instead of `bt`, `info locals` and `stacks`; may be
    /// repeated.
    #[arg(
        long,
        value_name = "CMD",
        requires = "batch",
        allow_hyphen_values = true
    )]
    pub on_crash: Vec<String>,

    /// A command when the time is over or nothing goes on, instead of `diagnose` and `stacks`; may be
    /// repeated.
    #[arg(
        long,
        value_name = "CMD",
        requires = "batch",
        allow_hyphen_values = true
    )]
    pub on_timeout: Vec<String>,

    /// How long the program may take, in seconds.
    #[arg(long, value_name = "S", requires = "batch",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub time_limit: Option<u32>,

    /// How long it may print nothing and stop nowhere, in seconds.
    #[arg(long, value_name = "S", requires = "batch",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub hang_timeout: Option<u32>,
}

/// `sdm emulate`.
#[derive(Debug, Args)]
pub struct EmulateArgs {
    /// How many servers, with one scripted task each.
    #[arg(short = 'n', long = "processes", value_name = "N", default_value = "16",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASKS_MAX)))]
    pub count: u32,

    /// Commands, and how what comes of them is shown.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// How the session's tree is made.
    #[command(flatten)]
    pub tree: TreeArgs,

    /// What the tasks do; the guide has the words. Without it they stop at `main`, and `continue`
    /// ends them.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Measure instead: the time from a command to all until their merged answer is here, R times.
    #[arg(long, value_name = "R", conflicts_with_all = ["files", "commands", "interactive", "json"],
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub roundtrips: Option<u32>,

    /// How large the command and each task's answer are, in bytes.
    #[arg(long, value_name = "B", default_value = "200", requires = "roundtrips",
          value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub bytes: u32,
}

/// Which processes are attached to, and how.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// The job: the pid of its mpirun, mpiexec, prterun or srun; slurm:JOB or slurm:JOB.STEP; pids,
    /// with commas in between; or a program's name.
    #[arg(value_name = "TARGET", required_unless_present_any = ["pids", "matching"])]
    target: Option<Target>,

    /// The job: these pids, whatever they are of.
    #[arg(long, value_name = "P,P...", value_parser = pids, conflicts_with_all = ["target", "matching"])]
    pids: Option<Target>,

    /// The job: processes of this name.
    #[arg(long = "match", value_name = "NAME", value_parser = name, conflicts_with = "target")]
    matching: Option<Target>,

    /// An option for what starts servers on the job's other hosts (ssh, or srun for a job of
    /// Slurm's), passed on unchanged; may be repeated.
    #[arg(
        long = "launcher-option",
        value_name = "OPT",
        allow_hyphen_values = true
    )]
    pub launcher_options: Vec<OsString>,

    /// Where sdm-server is on the job's other hosts; where it is here unless given.
    #[arg(long, value_name = "PATH")]
    pub server_path: Option<PathBuf>,

    /// Go on with the hosts that can be reached.
    #[arg(long)]
    pub partial: bool,

    /// These ranks only.
    #[arg(long, value_name = "SET")]
    pub ranks: Option<IdSet>,

    /// One record per event, as JSON lines, instead of text.
    #[arg(long)]
    pub json: bool,

    /// The gdb to use; found on PATH unless given.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// How long a question to the processes may take, in seconds.
    #[arg(long, value_name = "S", default_value = "60",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

impl TargetArgs {
    /// Which job is meant.
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
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Commands, and whether the session is kept.
    #[command(flatten)]
    pub commands: CommandArgs,
}

/// Which kept session.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// Its name; not needed where there is only one.
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
}

/// `sdm keeper`.
#[derive(Debug, Args)]
pub struct KeeperArgs {
    /// The session's name.
    pub name: String,
    /// The command line that is kept, without its program.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// `sdm diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// How often they are looked at; they run in between.
    #[arg(long, value_name = "N", default_value = "3",
          value_parser = clap::value_parser!(u32).range(2..=100))]
    pub samples: u32,
}

/// `sdm stacks`.
#[derive(Debug, Args)]
pub struct StacksArgs {
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Unfolded, and every thread.
    #[arg(long)]
    pub full: bool,
}

/// Whose standard input is fed.
#[derive(Clone, Debug, PartialEq)]
pub enum StdinSet {
    /// Everybody's.
    All,
    /// These tasks'.
    Tasks(IdSet),
}

impl StdinSet {
    /// The tasks meant among `count`.
    ///
    /// # Errors
    /// A set that names tasks beyond them.
    pub fn among(&self, count: u32) -> Result<IdSet, String> {
        let all = IdSet::all_below(count);
        match self {
            Self::All => Ok(all),
            Self::Tasks(tasks) if tasks.is_subset(&all) => Ok(tasks.clone()),
            Self::Tasks(tasks) => Err(format!(
                "--stdin {}: there are only the ranks {}",
                crate::render::set_text(tasks, 60),
                crate::render::set_text(&all, 60)
            )),
        }
    }
}

/// A command of -c, or a file of -x.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// `-x FILE`.
    File(PathBuf),
    /// `-c CMD`.
    Line(String),
}

/// Reads the command line; the commands of -x and -c in their order.
///
/// # Errors
/// A wrong command line, or `--help` and `--version`: clap's error says which.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
) -> Result<(Cli, Vec<Commands>), clap::Error> {
    let matches = Cli::command().try_get_matches_from(args)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let given = match &cli.command {
        Verb::Run(args) => Some(&args.script.commands),
        Verb::Emulate(args) => Some(&args.script.commands),
        Verb::Attach(args) => Some(&args.commands),
        _ => None,
    };
    let commands = match (given, matches.subcommand()) {
        (Some(given), Some((_, matches))) => in_order(given, matches),
        _ => Vec::new(),
    };
    Ok((cli, commands))
}

fn in_order(given: &CommandArgs, matches: &ArgMatches) -> Vec<Commands> {
    let places = |name| matches.indices_of(name).into_iter().flatten();
    let files = given.files.iter().cloned().map(Commands::File);
    let lines = given.commands.iter().cloned().map(Commands::Line);
    let mut all: Vec<_> = places("files")
        .zip(files)
        .chain(places("commands").zip(lines))
        .collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, command)| command).collect()
}

fn environment(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() || text.contains('\0') {
        return Err("expected NAME=VALUE, or NAME".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn pids(text: &str) -> Result<Target, String> {
    match text.parse() {
        Ok(target @ Target::Pids(_)) => Ok(target),
        Ok(_) => Err("expected pids, with commas in between".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn name(text: &str) -> Result<Target, String> {
    if text.is_empty() {
        return Err("expected a program's name".to_owned());
    }
    Ok(Target::Name(text.to_owned()))
}

fn stdin_set(text: &str) -> Result<StdinSet, String> {
    match text {
        "all" => Ok(StdinSet::All),
        "none" => Ok(StdinSet::Tasks(IdSet::new())),
        text => text
            .parse()
            .map(StdinSet::Tasks)
            .map_err(|error: sdm_idset::ParseError| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Cli, Vec<Commands>), clap::Error> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_keep_their_order() {
        let line = "sdm run -n 4 -c bt -x a.sdm -c continue --launcher mpirun -- ./app -n 3";
        let (cli, commands) = read(line).unwrap();
        let expect = [
            Commands::Line("bt".to_owned()),
            Commands::File("a.sdm".into()),
            Commands::Line("continue".to_owned()),
        ];
        assert_eq!(commands, expect);
        let Verb::Run(run) = cli.command else {
            panic!("{cli:?}");
        };
        assert_eq!((run.count, &*run.launch.launcher), (4, "mpirun"));
        assert_eq!(run.program, ["./app", "-n", "3"]);
        let (_, commands) = read("sdm attach -x a.sdm 4711 -c bt").unwrap();
        let expect = [
            Commands::File("a.sdm".into()),
            Commands::Line("bt".to_owned()),
        ];
        assert_eq!(commands, expect);
    }

    #[test]
    fn a_wrong_command_line_is_refused_with_2() {
        for (line, part) in [
            ("sdm run -n 0 -- ./app", "0 is not in 1..="),
            ("sdm run -n 4", "<PROGRAM [ARGS]>"),
            ("sdm run --env =x -- ./app", "expected NAME=VALUE"),
            ("sdm run --stdin 3- -- ./app", "--stdin"),
            ("sdm run --host a: -- ./app", "a number from 1"),
            ("sdm run --host a --hostfile b -- ./app", "cannot be used"),
            ("sdm stacks", "<TARGET>"),
            ("sdm stacks 1,,2", "pids are numbers"),
            ("sdm attach 7 --ranks 3-", "--ranks"),
            ("sdm stacks --pids x", "expected pids"),
            ("sdm stacks --pids 7 8", "cannot be used"),
            ("sdm stacks --pids 7 --match a", "cannot be used"),
            ("sdm attach 7 8", "unexpected argument"),
            ("sdm run --topology ring -- ./app", "expected binomial"),
            ("sdm emulate -n 0", "0 is not in 1..="),
            ("sdm emulate --bytes 200", "--roundtrips"),
            ("sdm emulate --roundtrips 5 -c bt", "cannot be used"),
            ("sdm emulate --roundtrips 0", "0 is not in 1..="),
            ("sdm frobnicate", "frobnicate"),
        ] {
            let error = read(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn standard_input_goes_to_ranks_that_there_are() {
        let set = |text| stdin_set(text).unwrap();
        assert_eq!(set("all").among(4).unwrap().to_string(), "0-3");
        assert_eq!(set("1-2").among(4).unwrap().to_string(), "1-2");
        assert!(set("none").among(4).unwrap().is_empty());
        assert!(set("3-5").among(4).unwrap_err().contains("--stdin 3-5"));
    }
}
