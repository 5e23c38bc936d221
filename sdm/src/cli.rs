//! The command line.

mod batch;
mod check;
mod cluster;
mod core;
mod divide;
mod doctor;
mod emulate;
mod error;
mod gdb;
mod groups;
mod launch;
mod listen;
mod look;
#[cfg(test)]
mod option_list;
mod pmix;
mod printers;
mod programs;
mod run;
mod script;
mod target;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Command, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub use batch::BatchArgs;
pub use check::{CheckArgs, CheckHow};
pub use cluster::{
    AddArgs, ClusterArgs, ClusterVerb, EditArgs, JobArgs, JobsArgs, ListArgs, LogsArgs,
    ManagerArgs, MoveArgs, NamesArgs, PriorityArgs, PsArgs, ShowArgs, StartArgs, SubmitArgs,
    ThereArgs, TopArgs,
};
pub use core::CoreArgs;
pub use divide::divided;
pub use doctor::DoctorArgs;
pub use emulate::EmulateArgs;
pub use error::{HostFileError, ProgramsError, StdinError, ValueError};
pub use gdb::GdbArgs;
pub use launch::{LauncherArgs, ReachArgs, TreeArgs};
pub use listen::Listen;
use listen::listen;
pub use look::LookArgs;
pub use pmix::{
    PmixArgs, PmixChannel, PmixIoArgs, PmixJobArgs, PmixLogArgs, PmixQueryArgs, PmixServerArgs,
    PmixSignalArgs, PmixSpawnArgs, PmixVerb,
};
pub use printers::PrinterArgs;
pub use programs::ProgramPart;
pub use run::{Carrier, ControlBy, PmixUse, RunArgs, StdinSet};
pub use script::{CommandArgs, Commands, ScriptArgs};
pub use target::{AttachArgs, By, DiagnoseArgs, ProfileArgs, SamplingArgs, StacksArgs, TargetArgs};

/// The most tasks that one session can have.
pub const TASKS_MAX: u32 = 1 << 20;

/// A debugger for programs that run as many processes at once.
#[derive(Debug, Parser)]
#[command(name = "sdm", version, long_version = crate::build::description(), max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Verb,
}

/// The commands of `sdm`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a program as N processes, bring them to `main`, and debug them.
    Run(Box<RunArgs>),
    /// Try everything without a program: N real servers on this machine, with scripted tasks.
    Emulate(EmulateArgs),
    /// Debug processes that run already; at the end they run on as before.
    Attach(AttachArgs),
    /// Debug processes that run already on a page for a browser: `sdm attach --web`.
    #[command(mut_arg("web", |it| it.default_value("127.0.0.1:0")))]
    Web(AttachArgs),
    /// Say why a job is stuck, as far as a few looks at its stacks show, and leave it as it is.
    ///
    /// Exit code: 0 no hang seen, 1 deadlock, 2 cannot tell, or something went wrong, 3 cannot go on, 4 held up by some, 130 given up by
    /// Ctrl-C.
    Diagnose(DiagnoseArgs),
    /// Print the merged stacks of running processes, and leave them as they are.
    ///
    /// Exit code: 0 all are in the same place, 1 some differ, 2 something went wrong, 130 given up by Ctrl-C.
    Stacks(StacksArgs),
    /// Look at running processes many times a second for a while, and print where they were and who moves.
    ///
    /// Exit code: 0 it was seen, 2 something went wrong, 130 given up by Ctrl-C before anything was seen.
    Profile(ProfileArgs),
    /// Print the merged stacks of core files; with -i, -c or -x debug them.
    ///
    /// Exit code: 0 all are in the same place, 1 some differ, 2 something went wrong.
    Core(CoreArgs),
    /// Serve an editor by the Debug Adapter Protocol, on standard input and output.
    Dap(DapArgs),
    /// Say what here, on other hosts or in the way of a job would keep SDM from working, and what to do.
    ///
    /// Exit code: 0 nothing is bad, 1 something is, 2 it could not be looked at.
    Doctor(Box<DoctorArgs>),
    /// Take out what a debugger has left in processes of yours when it was killed, and let go on those that it has stopped.
    ///
    /// Breakpoints are found by comparing code with its files. Who was stopped by a terminal (Ctrl-Z) stays so.
    ///
    /// Exit code: 0 all run or stand as they should, 2 something went wrong.
    Rescue(RescueArgs),
    /// Show the settings: the defaults of options, and the files that set them.
    Settings(SettingsArgs),
    /// Write a shell's completions: `sdm completions bash > ...`.
    Completions(CompletionsArgs),
    /// Write manual pages into a folder.
    Man(ManArgs),
    /// List the sessions that are kept (`--keep`) on this machine.
    Sessions(SessionsArgs),
    /// Bring a kept session to this terminal.
    Resume(SessionArgs),
    /// Take a kept session from its terminal; it goes on.
    Detach(SessionArgs),
    /// Define clusters, and start and stop those who ask them: their resource managers.
    Cluster(ClusterArgs),
    /// List the nodes of the clusters that are started, those alike together.
    Nodes(ListArgs),
    /// List the queues.
    #[command(visible_alias = "partitions")]
    Queues(ListArgs),
    /// List jobs: your own, of those that have ended the last day's.
    Jobs(JobsArgs),
    /// List the processes of a job, those alike together.
    Ps(PsArgs),
    /// Show all attributes of a job, node, queue, machine or cluster.
    Show(ShowArgs),
    /// Look at clusters, machines, jobs and processes on a full screen.
    Top(TopArgs),
    /// Submit a job, and print its number: `sdm submit -n 8 ./app args`.
    Submit(SubmitArgs),
    /// Show what a job has written.
    Logs(LogsArgs),
    /// End jobs.
    Cancel(JobArgs),
    /// Keep pending jobs from being started.
    Hold(JobArgs),
    /// Let held jobs be started.
    Release(JobArgs),
    /// Move pending jobs to another queue: `sdm move QUEUE JOB`.
    Move(MoveArgs),
    /// Give pending jobs another priority: `sdm priority PRIORITY JOB`.
    Priority(PriorityArgs),
    /// Be a tool of a PMIx server (`prte`, `prterun`): list and query it, log, follow, start, signal and end jobs.
    Pmix(Box<PmixArgs>),
    /// Keep a session: started by `--keep`.
    #[command(hide = true)]
    Keeper(KeeperArgs),
}

/// `sdm dap`.
#[derive(Debug, Args)]
pub struct DapArgs {
    /// Wait for one editor there, in place of standard input and output: an address of the loopback (`127.0.0.1:0` takes
    /// any free port, and says which), or `unix:PATH`.
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub listen: Option<Listen>,
    /// Say which jobs of this user's run here, as JSON for an editor that lets a person pick one; nothing is served.
    #[arg(long, conflicts_with = "listen")]
    pub jobs: bool,
}

/// `sdm rescue`.
#[derive(Debug, Args)]
pub struct RescueArgs {
    /// The processes.
    #[arg(value_name = "PID", required = true, value_parser = clap::value_parser!(i32).range(1..))]
    pub pids: Vec<i32>,
}

/// `sdm settings`.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// All settings of this command, also those that are as they are by default.
    #[arg(value_name = "COMMAND")]
    pub verb: Option<String>,
}

/// `sdm completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell.
    pub shell: Shell,
}

/// `sdm man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder for the pages: sdm.1, sdm-run.1, ...
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// `sdm sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// One JSON document instead of lines.
    #[arg(long)]
    pub json: bool,
}

/// The kept session.
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

/// Reads the command line by its definition; the commands of -x and -c in their order.
///
/// # Errors
/// A wrong command line, or `--help` and `--version`: clap's error says which.
pub fn parse(
    definition: Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<(Cli, Vec<Commands>), clap::Error> {
    let matches = definition.try_get_matches_from(args)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let given = match &cli.command {
        Verb::Run(args) => Some(&args.script.commands),
        Verb::Emulate(args) => Some(&args.script.commands),
        Verb::Attach(args) | Verb::Web(args) => Some(&args.commands),
        Verb::Core(args) => Some(&args.script.commands),
        _ => None,
    };
    let commands = match (given, matches.subcommand()) {
        (Some(given), Some((_, matches))) => script::in_order(given, matches),
        _ => Vec::new(),
    };
    Ok((cli, commands))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn read(line: &str) -> Result<(Cli, Vec<Commands>), clap::Error> {
        let words = line.split_whitespace().map(OsString::from);
        parse(Cli::command(), words)
    }

    #[test]
    fn command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn order_of_c_and_x_options_is_kept() {
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
    fn invalid_command_line_exits_with_2() {
        for (line, part) in [
            ("sdm run -n 0 -- ./app", "0 is not in 1..="),
            ("sdm run -n 4", "<PROGRAM [ARGS]>"),
            ("sdm run --env =x -- ./app", "expected NAME=VALUE"),
            ("sdm run --stdin 3- -- ./app", "--stdin"),
            ("sdm run --host a: -- ./app", "a number from 1"),
            ("sdm run --host a --hostfile b -- ./app", "cannot be used"),
            ("sdm stacks", "<TARGET>"),
            ("sdm stacks 1,,2", "expected pids"),
            ("sdm attach 7 --ranks 3-", "--ranks"),
            ("sdm stacks --pids x", "expected pids"),
            ("sdm stacks --pids 7 8", "cannot be used"),
            ("sdm stacks --pids 7 --match a", "cannot be used"),
            ("sdm attach 7 8", "unexpected argument"),
            ("sdm run --topology ring -- ./app", "expected by-host"),
            ("sdm emulate -n 0", "0 is not in 1..="),
            ("sdm emulate --bytes 200", "--roundtrips"),
            ("sdm emulate --roundtrips 5 -c bt", "cannot be used"),
            ("sdm emulate --roundtrips 0", "0 is not in 1..="),
            ("sdm core ./app", "<CORE>"),
            ("sdm core ./app c --server-path /x", "--host"),
            ("sdm dap --listen 0.0.0.0:4711", "expected 127.0.0.1"),
            ("sdm dap --listen unix:", "unix:PATH"),
            ("sdm frobnicate", "frobnicate"),
        ] {
            let error = read(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(part), "{line}: {error}");
        }
    }
}
