//! The command language of the prompt: gdb's commands, unchanged, and a few of SDM's own.
//!
//! [`parse`] turns a line of text into a [`Line`]: a set of tasks and a command. Nothing here talks to a
//! session.

mod args;
mod complete;
mod cursor;
mod help;
mod parse;
mod set;
mod spec;
mod table;
mod words;

pub use complete::{CompletionKind, completed, completions, ended, is_plain};
pub use help::{Chapter, chapters, help};
pub use parse::{CommandLine, called, parse, spelled_out};
pub use set::{NameError, PREDEFINED, Scope, SetExpr, SetName, fuzz_set_expr, resolve};
pub use table::is_command;

use sdm_debug::Command;
use sdm_debug::command::PointSpec;

/// A parsed line: the target set and the command.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The target set in front of the command: `[0-3] print x`. None if the focus is meant.
    pub to: Option<SetExpr>,
    /// The command to carry out.
    pub command: UserCommand,
    /// True if an empty line after this one repeats the command.
    pub repeats: bool,
}

/// A parsed command.
#[derive(Clone, Debug, PartialEq)]
pub enum UserCommand {
    /// An empty line or a comment.
    Nothing {
        /// True for a comment. A comment does not repeat the last command.
        comment: bool,
    },
    /// A query that every task answers. The answers are shown unchanged.
    Ask(Command),
    /// A command that resumes tasks: `continue`, `next`, `finish`, ... `[&]`.
    Run {
        /// The protocol command that resumes the tasks.
        command: Command,
        /// True for `&`: the shell does not wait for the run.
        background: bool,
    },
    /// `break`, `watch`, `catch` and their variants.
    Point(PointSpec),
    /// `condition N [COND]`.
    Condition {
        /// The breakpoint's number; 0 for the last one made.
        number: u32,
        /// The condition. None removes the condition.
        condition: Option<String>,
    },
    /// `ignore N COUNT`.
    Ignore {
        /// The breakpoint's number; 0 for the last one made.
        number: u32,
        /// Number of hits to skip.
        count: u32,
    },
    /// `commands [N...]`: collects the lines up to `end`.
    Commands(Vec<u32>),
    /// `more`.
    More,
    /// `report FILE`.
    Report(String),
    /// `save FILE`: saves breakpoints and sets.
    Save(String),
    /// `load FILE`.
    Load(String),
    /// `display[/FORMAT] [EXPR]`: shows an expression after each stop. None: shows all displays.
    Display(Option<Displayed>),
    /// `info display`.
    Displays,
    /// `thread apply N... COMMAND`, `thread apply all COMMAND`.
    ThreadApply {
        /// The threads' numbers; empty for all.
        threads: Vec<u32>,
        /// The command to carry out for each thread.
        command: Box<UserCommand>,
    },
    /// `thread`: shows the selected thread.
    SelectedThread,
    /// `shell COMMAND`, `make`: a command for the local shell.
    System(String),
    /// `define NAME`: collects the lines up to `end`.
    Define(String),
    /// `show user [NAME]`.
    ShowDefined(Option<String>),
    /// `echo TEXT`.
    Echo(String),
    /// `undisplay [N...]`. Without numbers: all displays.
    Undisplay(Vec<u32>),
    /// `gcore FILE`: writes a core file of each task.
    Dump(String),
    /// `clear LOCATION`: deletes the breakpoints at a location.
    Clear(String),
    /// `delete [N...]`. Without numbers: all breakpoints.
    Delete(Vec<u32>),
    /// `enable [N...]`, `disable [N...]`. Without numbers: all breakpoints.
    Enable {
        /// The numbers; empty for all.
        numbers: Vec<u32>,
        /// True for `enable`.
        enabled: bool,
    },
    /// `interrupt`.
    Interrupt,
    /// `info breakpoints`, `info watchpoints`.
    Breakpoints {
        /// True if only watchpoints are listed.
        watchpoints: bool,
    },
    /// `set breakpoint pending on|off|auto`.
    SetPending(Option<bool>),
    /// `tui enable` and `tui disable`.
    FullScreen(bool),
    /// `set pagination on|off`. None: `show pagination`.
    Pagination(Option<bool>),
    /// `kill`.
    Kill,
    /// `detach [SET]`.
    Detach(Option<SetExpr>),
    /// `attach SET`: attaches to further tasks of a running job.
    Attach(SetExpr),
    /// `quit`.
    Quit,
    /// A command for the job as a whole.
    Job(JobCommand),
    /// A command that is carried out in `sdm` itself, not by the tasks.
    Outside(Outside),
    /// `help [COMMAND]`.
    Help(Option<String>),
    /// `info sharedlibrary`.
    Libraries,
    /// `info memory`.
    Memory,
    /// `info nodes|tree|links|sets`.
    About(Topic),
    /// `focus [SET]`: sets the target set of later commands. Without a set it is shown.
    Focus(Option<SetExpr>),
    /// `defset NAME SET`.
    DefineSet {
        /// The name, without the `@`.
        name: String,
        /// The definition of the set.
        set: SetExpr,
    },
    /// `undefset NAME`.
    ForgetSet(String),
    /// `freeze [SET]`, `thaw [SET]`.
    Hold {
        /// The tasks. None: the focus.
        to: Option<SetExpr>,
        /// True for `freeze`.
        on: bool,
    },
    /// `ranks [SET]`: the states of tasks.
    Ranks(Option<SetExpr>),
    /// `stacks [--full]`.
    Stacks {
        /// True for unfolded stacks of every thread.
        full: bool,
    },
    /// `profile [SECONDS]`.
    Profile(u32),
    /// `queues`.
    Queues,
    /// `diagnose [SAMPLES] [for SECONDS]`: number of samples, and the time that they cover if it is given.
    Diagnose(u32, Option<u32>),
    /// `list [WHAT]`: the argument, in gdb's syntax.
    List(String),
    /// A command on the values of one expression in all tasks.
    Values(ValuesCommand),
    /// `send SET TEXT`, `send SET --eof`.
    Send {
        /// The tasks whose programs get the input.
        to: SetExpr,
        /// The text, without a newline.
        text: String,
        /// True to close the stream.
        eof: bool,
    },
    /// `output on|off`. None: show the current setting.
    Output(Option<bool>),
    /// `wait [SET] [SECONDS]`.
    Wait {
        /// The tasks to wait for. None: the focus.
        to: Option<SetExpr>,
        /// The time limit, in seconds. None: no limit.
        seconds: Option<u32>,
    },
    /// `source FILE`.
    Source(String),
}

/// An expression of `display`, which is shown after each stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displayed {
    /// The letters of gdb's `/FORMAT`. Empty if there are none.
    pub format: String,
    /// The expression, in the program's language.
    pub expression: String,
}

/// A command that is carried out in `sdm` itself, not by the tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// `pwd`.
    WhereAmI,
    /// `cd [DIR]`; empty for the home directory.
    GoTo(String),
}

/// A command on the values of one expression in all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuesCommand {
    /// `outliers EXPR`.
    Outliers(String),
    /// `stats EXPR`.
    Stats(String),
    /// `compare EXPR`.
    Compare(String),
    /// `plot EXPR`.
    Plot(String),
    /// `export EXPR FILE`.
    Export {
        /// The expression, which may have slices.
        expression: String,
        /// The output file. Its name ends with `.npy` or `.csv`.
        file: String,
    },
}

/// A command for the job as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum JobCommand {
    /// `run [ARGS]`, `start [ARGS]`: restarts the whole job.
    Run {
        /// New arguments. None: the previous ones.
        arguments: Option<Vec<String>>,
        /// True if all tasks stop at `main`.
        to_main: bool,
        /// True if the command does not wait.
        background: bool,
    },
    /// `set args [ARGS]`: the arguments of the next `run`.
    Arguments(Vec<String>),
    /// `show args`.
    ShowArguments,
    /// `set confirm on|off`.
    Confirm(bool),
}

/// A part of the session that `info` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The hosts, with the tasks on each.
    Nodes,
    /// The tree of servers.
    Tree,
    /// The links of the tree.
    Links,
    /// The named sets.
    Sets,
}

/// An error in a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// The error message.
    pub message: String,
    /// Position of the error, in bytes from the line's start. None if no single position is at fault.
    pub at: Option<usize>,
}

impl CommandError {
    /// An error that concerns the whole line.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: None,
        }
    }

    /// An error at a position in the line, in bytes from 0.
    pub fn at(at: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Some(at),
        }
    }
}
