//! What a command is: its names, its help, what completes it, how its arguments are read.

use super::cursor::Cursor;
use super::{CommandError, UserCommand};

/// Reads what follows the command's word; the name is given for errors.
pub(super) type Parse =
    fn(name: &'static str, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError>;

/// One command. `help`, completion and the parser all take it from here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    /// Its full name.
    pub(super) name: &'static str,
    /// gdb's abbreviations that are no unique prefix.
    pub(super) short: &'static [&'static str],
    /// How it is written, at most 33 characters.
    pub(super) usage: &'static str,
    /// What it does, in a few words.
    pub(super) what: &'static str,
    /// Examples and what is worth knowing beside it; can be empty.
    pub(super) more: &'static str,
    /// What its arguments can be.
    pub(super) completes: Completes,
    /// True where an empty line after it says it again.
    pub(super) repeats: bool,
    /// Reads its arguments.
    pub(super) parse: Parse,
}

/// What completes a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completes {
    /// No word is offered.
    Nothing,
    /// One of these words is offered.
    Words(&'static [&'static str]),
    /// The words of `info`.
    Info,
    /// Names of commands are offered.
    Commands,
    /// Sets of tasks.
    Sets,
    /// Names of files are offered.
    Files,
    /// What gdb finds: functions, variables, files of the program.
    Program,
}

/// What a command has that says nothing else.
pub(super) const PLAIN: Spec = Spec {
    name: "",
    short: &[],
    usage: "",
    what: "",
    more: "",
    completes: Completes::Nothing,
    repeats: false,
    parse: |_, _| Ok(UserCommand::Nothing { comment: true }),
};
