//! `sdm emulate`.

use std::path::PathBuf;

use clap::Args;

use super::{ScriptArgs, TASKS_MAX, TreeArgs};

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

    /// Spread them over this many hosts: names, each with a loopback address of its own.
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub hosts: Option<u32>,

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
