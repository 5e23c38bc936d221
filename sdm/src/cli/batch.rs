//! Options of `--batch`: a run without a user, with a report.

use std::path::PathBuf;

use clap::Args;

/// A run to the end without anybody.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// Run without a prompt: after the commands of -x and -c the program runs to its end, crashes and hangs are
    /// examined, and a report is written. Ranks start without gdb, unless the commands need one.
    #[arg(long, conflicts_with_all = ["interactive", "web"])]
    pub batch: bool,

    /// A debugger command to run at the first crash or abort, instead of `bt`, `info locals` and `stacks`. Can be
    /// repeated.
    #[arg(
        long,
        value_name = "CMD",
        requires = "batch",
        allow_hyphen_values = true
    )]
    pub on_crash: Vec<String>,

    /// A debugger command to run at a hang or when the time limit is reached, instead of `diagnose` and `stacks`. Can
    /// be repeated.
    #[arg(
        long,
        value_name = "CMD",
        requires = "batch",
        allow_hyphen_values = true
    )]
    pub on_timeout: Vec<String>,

    /// The time limit of the whole run, in seconds.
    #[arg(long, value_name = "S", requires = "batch",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub time_limit: Option<u32>,

    /// With --batch, treat the program as hanging after this many seconds without output and without a stop.
    #[arg(long, value_name = "S", requires = "batch",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub hang_timeout: Option<u32>,

    /// The HTML file for the report of --batch. A one-screen text (.txt) and a JSON file (.json) are written beside it.
    #[arg(
        long,
        value_name = "FILE",
        requires = "batch",
        default_value = "report.html"
    )]
    pub report: PathBuf,

    /// A shell command to run when the report is written, with the report's path appended: for example `mail -s done me
    /// <`. It finds SDM_REPORT and SDM_EXIT_CODE in its environment, and is killed after a minute.
    #[arg(
        long,
        value_name = "CMD",
        requires = "batch",
        conflicts_with = "no_report",
        allow_hyphen_values = true
    )]
    pub notify: Option<String>,

    /// Do not write a report.
    #[arg(long, requires = "batch", conflicts_with_all = ["report", "junit"])]
    pub no_report: bool,

    /// Also write the report as JUnit XML, into this file.
    #[arg(long, value_name = "FILE", requires = "batch")]
    pub junit: Option<PathBuf>,
}
