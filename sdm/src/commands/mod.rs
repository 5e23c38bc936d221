//! What a person can say: gdb's words, unchanged, and the few new ones.
//!
//! [`parse`] makes a [`Line`] of a line of text: to whom, and what. Nothing here talks to a
//! session.

mod args;
mod complete;
mod cursor;
mod help;
mod info;
mod parse;
mod set;
mod table;

pub use complete::candidates;
pub use help::help;
pub use parse::{parse, spelled_out};
pub use set::{SetExpr, resolve};

use sdm_debug::command::{FrameSelect, StepKind};

/// One line: to whom, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// To whom, where the line says so: `[0-3] print x`.
    pub to: Option<SetExpr>,
    /// What.
    pub command: UserCommand,
}

/// A command as the person meant it.
#[derive(Clone, Debug, PartialEq)]
pub enum UserCommand {
    /// An empty line or a comment.
    Nothing {
        /// True for a comment, which does not repeat the last command.
        comment: bool,
    },
    /// `break LOCATION [if COND]`, `tbreak ...`.
    Break(BreakRequest),
    /// `delete [N...]`: these, or all.
    Delete(Vec<u32>),
    /// `enable [N...]`, `disable [N...]`: these, or all.
    Enable {
        /// Which; empty for all.
        numbers: Vec<u32>,
        /// On or off.
        enabled: bool,
    },
    /// `continue [&]`.
    Continue {
        /// Does not wait.
        background: bool,
    },
    /// `next`, `step`, `nexti`, `stepi` `[COUNT] [&]`.
    Step {
        /// Which kind.
        kind: StepKind,
        /// How many.
        count: u32,
        /// Does not wait.
        background: bool,
    },
    /// `finish [&]`.
    Finish {
        /// Does not wait.
        background: bool,
    },
    /// `interrupt`.
    Interrupt,
    /// `bt [N] [--full]`.
    Backtrace {
        /// At most this many frames; 0 for all.
        limit: u32,
        /// With the frames inside runtimes.
        full: bool,
    },
    /// `frame [N]`, `up [N]`, `down [N]`.
    Frame(FrameSelect),
    /// `info locals`.
    Locals,
    /// `info args`.
    Arguments,
    /// `info threads`.
    Threads,
    /// `info breakpoints`.
    Breakpoints,
    /// `thread N`.
    Thread(u32),
    /// `print EXPR`, `call EXPR`.
    Print {
        /// What follows the slash: `x`, `d`, `4x`.
        format: Option<String>,
        /// The expression.
        expression: String,
    },
    /// `set var EXPR`.
    SetVariable(String),
    /// `set breakpoint pending on|off`.
    SetPending(bool),
    /// `kill`.
    Kill,
    /// `detach`.
    Detach,
    /// `quit`.
    Quit,
    /// `help [COMMAND]`.
    Help(Option<String>),
    /// A line for each gdb's own command line, unchanged.
    Gdb(String),
    /// `focus [SET]`: to whom commands go from now on; without a set it is shown.
    Focus(Option<SetExpr>),
    /// `ranks`: who is in which state.
    Ranks,
    /// `stacks [--full]`.
    Stacks {
        /// Unfolded, and every thread.
        full: bool,
    },
    /// `send SET TEXT`, `send SET --eof`.
    Send {
        /// To whom.
        to: SetExpr,
        /// The text, without its line end.
        text: String,
        /// True where the stream ends instead.
        eof: bool,
    },
    /// `output on|off`; without a word it is shown.
    Output(Option<bool>),
    /// `wait [SET] [SECONDS]`.
    Wait {
        /// For whom; the focus where absent.
        to: Option<SetExpr>,
        /// At most this long.
        seconds: Option<u32>,
    },
    /// `source FILE`.
    Source(String),
}

/// A breakpoint as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakRequest {
    /// Where, in gdb's words.
    pub location: String,
    /// Only where this holds.
    pub condition: Option<String>,
    /// Gone after the first stop.
    pub temporary: bool,
    /// With the processor's help.
    pub hardware: bool,
}

impl UserCommand {
    /// True where an empty line after this one says it again.
    #[must_use]
    pub fn repeats(&self) -> bool {
        matches!(
            self,
            Self::Continue { .. }
                | Self::Step { .. }
                | Self::Finish { .. }
                | Self::Backtrace { .. }
                | Self::Frame(_)
                | Self::Locals
                | Self::Arguments
                | Self::Threads
                | Self::Print { .. }
                | Self::Ranks
                | Self::Stacks { .. }
                | Self::Wait { .. }
        )
    }
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// What is wrong.
    pub message: String,
    /// Where in the line, in bytes from 0, where one place is to blame.
    pub at: Option<usize>,
}

impl CommandError {
    /// An error about the whole line.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: None,
        }
    }

    /// An error at one place of the line, in bytes from 0.
    pub fn at(at: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Some(at),
        }
    }
}
