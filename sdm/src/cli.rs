//! The command line of `sdm`: its subcommands, and the options of those that have no module of their own.

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
mod pages;
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
pub(crate) use pages::Page;
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

/// A debugger for parallel programs, MPI jobs above all: gdb's commands for any set of ranks, with equal answers shown
/// once.
#[derive(Debug, Parser)]
#[command(name = "sdm", version, long_version = crate::build::description(), max_term_width = 100)]
#[command(mut_subcommands = pages::with_pages, help_template = Page::SDM.template(),
          after_long_help = Page::SDM.exit_status())]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Verb,
}

/// The commands of `sdm`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a program as N processes, stop each at `main`, and debug them.
    Run(Box<RunArgs>),
    /// Try SDM without a program: N debug servers on this machine answer as N ranks would.
    Emulate(EmulateArgs),
    /// Debug processes that are already running, and leave them running at the end.
    Attach(AttachArgs),
    /// Debug running processes in a browser; the same as `sdm attach --web`.
    #[command(mut_arg("web", |it| it.default_value("127.0.0.1:0")))]
    Web(AttachArgs),
    /// Explain why a running job hangs, from a few samples of its stacks; the job keeps running.
    Diagnose(DiagnoseArgs),
    /// Print the stacks of running processes, equal stacks once; the processes keep running.
    Stacks(StacksArgs),
    /// Sample the stacks of running processes for some seconds, and print where they spent the time and which made
    /// progress.
    Profile(ProfileArgs),
    /// Print the stacks in core files, equal stacks once; debug the files with -i, -c or -x.
    Core(CoreArgs),
    /// Debug from an editor: serve the Debug Adapter Protocol (DAP) on standard input and output.
    Dap(DapArgs),
    /// Check whether SDM can work on this host, on other hosts or with a job, and say how to fix what is wrong.
    Doctor(Box<DoctorArgs>),
    /// Repair processes whose debugger was killed: remove its breakpoints from them, and continue those it left
    /// stopped.
    ///
    /// Breakpoints are found by comparing the code in memory with its file. A process that a terminal stopped (Ctrl-Z)
    /// stays stopped.
    Rescue(RescueArgs),
    /// Show the default values of options, and the settings file that sets each.
    Settings(SettingsArgs),
    /// Print the completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder.
    Man(ManArgs),
    /// List the kept sessions on this host (those started with `--keep`).
    Sessions(SessionsArgs),
    /// Reattach to a kept session from this terminal.
    Resume(SessionArgs),
    /// Detach a kept session from its terminal; the session keeps running.
    Detach(SessionArgs),
    /// Define clusters (Slurm, Grid Engine, ...), and connect to them or disconnect.
    Cluster(ClusterArgs),
    /// List the nodes of the connected clusters, equal nodes on one line.
    Nodes(ListArgs),
    /// List the queues (in Slurm, partitions).
    #[command(visible_alias = "partitions")]
    Queues(ListArgs),
    /// List your jobs, including those that ended within the last day.
    Jobs(JobsArgs),
    /// List the processes of a job, equal processes on one line.
    Ps(PsArgs),
    /// Show all attributes of a job, node, queue, machine or cluster.
    Show(ShowArgs),
    /// Watch clusters, machines, jobs and processes on the full screen, as `top` does.
    Top(TopArgs),
    /// Submit a job, and print its number.
    Submit(SubmitArgs),
    /// Print the output of a job.
    Logs(LogsArgs),
    /// Cancel jobs.
    Cancel(JobArgs),
    /// Hold pending jobs: they do not start until `sdm release`.
    Hold(JobArgs),
    /// Release held jobs, so that they can start.
    Release(JobArgs),
    /// Move pending jobs to another queue.
    Move(MoveArgs),
    /// Change the priority of pending jobs.
    Priority(PriorityArgs),
    /// Connect to a PMIx server (`prte`, `prterun`) as a tool: list, query, start, follow, signal and end its jobs.
    Pmix(Box<PmixArgs>),
    /// Hold a kept session. `sdm run --keep` starts this command itself.
    #[command(hide = true)]
    Keeper(KeeperArgs),
}

/// `sdm dap`.
#[derive(Debug, Args)]
pub struct DapArgs {
    /// Listen for one editor at this address instead of standard input and output: a loopback address (with port 0, as
    /// in `127.0.0.1:0`, any free port is taken and printed), or `unix:PATH`.
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub listen: Option<Listen>,
    /// Print your running jobs on this host as JSON, for an editor's job list, and exit.
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
    /// The sdm command whose settings to show, including those with default values.
    #[arg(value_name = "COMMAND")]
    pub verb: Option<String>,
}

/// `sdm completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

/// `sdm man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder to write the pages sdm.1, sdm-run.1 and so on into.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// `sdm sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Print one JSON document instead of lines.
    #[arg(long)]
    pub json: bool,
}

/// The kept session.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The name of the kept session. It can be omitted if there is only one.
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
}

/// `sdm keeper`.
#[derive(Debug, Args)]
pub struct KeeperArgs {
    /// The session's name.
    pub name: String,
    /// The command line of the kept session, without `sdm`.
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
