//! Options that give commands in place of a user at the prompt.

use std::path::PathBuf;

use clap::{ArgMatches, Args};

use super::{Listen, LookArgs, listen};

/// Commands instead of a person, and whether the session outlives its terminal.
#[derive(Clone, Debug, Args)]
pub struct CommandArgs {
    /// Run the debugger commands in this file, then end the session (see -i). Can be repeated and mixed with -c.
    #[arg(short = 'x', long = "command-file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Run this debugger command, then end the session (see -i). Can be repeated and mixed with -x.
    #[arg(
        short = 'c',
        long = "command",
        value_name = "CMD",
        allow_hyphen_values = true
    )]
    pub commands: Vec<String>,

    /// Open the prompt after the commands of -x and -c.
    #[arg(short = 'i', long)]
    pub interactive: bool,

    /// Start with the full screen (source, stacks, ranks) instead of the prompt alone. Ctrl-X A switches between both.
    #[arg(long, conflicts_with = "json")]
    pub tui: bool,

    /// Colours, style and keys of the full screen.
    #[command(flatten)]
    pub look: LookArgs,

    /// Serve the session as a web page, at a loopback address or at `unix:PATH`. Default: 127.0.0.1 and any free port;
    /// the address is printed.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0", value_parser = listen)]
    pub web: Option<Listen>,

    /// Open the page of --web in a browser.
    #[arg(long)]
    pub browser: bool,

    /// Keep the session running when its terminal closes. Ctrl-\ detaches from it, `sdm resume` reattaches.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub keep: Option<String>,
}

impl CommandArgs {
    /// True if the options ask for a prompt after the commands.
    #[must_use]
    pub fn wants_prompt(&self) -> bool {
        self.interactive || self.tui || self.web.is_some()
    }
}

/// Commands, and how what comes of them is shown.
#[derive(Clone, Debug, Args)]
pub struct ScriptArgs {
    /// Commands, and whether the session is kept.
    #[command(flatten)]
    pub commands: CommandArgs,

    /// Print one JSON record per line for each event, instead of text.
    #[arg(long)]
    pub json: bool,

    /// The time limit for the answer to a command, in seconds. Ranks that have not answered by then are listed.
    #[arg(long, value_name = "S", default_value = "30",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

/// A command of -c, or a file of -x.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// `-x FILE`.
    File(PathBuf),
    /// `-c CMD`.
    Line(String),
}

pub(super) fn in_order(given: &CommandArgs, matches: &ArgMatches) -> Vec<Commands> {
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
