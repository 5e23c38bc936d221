//! Options of `--batch`: a run without a user, with a report.

use std::path::PathBuf;

use clap::Args;

/// A run to the end without anybody.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// Let the program run to its end after the commands of -x and -c, look at what goes wrong, and
    /// leave a report.
    ///
    /// Exit code: 0 all ended with 0; the program's own where there is one other; 128 and the signal
    /// of a crash; 120 time-out or hang; 121 abort; 122 ranks lost; 123 a command failed.
    #[arg(long, conflicts_with_all = ["interactive", "web"])]
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

    /// Time limit of the program, in seconds.
    #[arg(long, value_name = "S", requires = "batch",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub time_limit: Option<u32>,

    /// Time limit without output and without a stop, in seconds.
    #[arg(long, value_name = "S", requires = "batch",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub hang_timeout: Option<u32>,

    /// The file for the report, an HTML page; one screen of text (.txt) and JSON (.json) are written beside it.
    #[arg(
        long,
        value_name = "FILE",
        requires = "batch",
        default_value = "report.html"
    )]
    pub report: PathBuf,

    /// A shell's command line that is carried out once the report is written, with the report's path behind it: `mail -s done me
    /// <`, for example. `SDM_REPORT` and `SDM_EXIT_CODE` are in its environment; it has a minute.
    #[arg(
        long,
        value_name = "CMD",
        requires = "batch",
        conflicts_with = "no_report",
        allow_hyphen_values = true
    )]
    pub notify: Option<String>,

    /// Leave no report.
    #[arg(long, requires = "batch", conflicts_with_all = ["report", "junit"])]
    pub no_report: bool,

    /// The report as JUnit's XML, too.
    #[arg(long, value_name = "FILE", requires = "batch")]
    pub junit: Option<PathBuf>,
}
