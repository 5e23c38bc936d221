//! The specification of a command: its names, help text, completion and argument parser.

use super::cursor::Cursor;
use super::{CommandError, UserCommand};

/// The argument parser of a command. It gets the command's name for errors.
pub(super) type Parse =
    fn(name: &'static str, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError>;

/// The specification of one command, which `help`, completion and the parser use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    /// The full name.
    pub(super) name: &'static str,
    /// Other names, such as gdb's abbreviations, that are not unique prefixes.
    pub(super) short: &'static [&'static str],
    /// The usage line, at most 33 characters.
    pub(super) usage: &'static str,
    /// A summary of a few words for `help`.
    pub(super) what: &'static str,
    /// Examples and remarks for `help COMMAND`; can be empty.
    pub(super) more: &'static str,
    /// The kind of completion for its arguments.
    pub(super) completes: Completes,
    /// True if an empty line after it repeats it.
    pub(super) repeats: bool,
    /// The parser of the command's arguments.
    pub(super) parse: Parse,
}

/// The kind of completion for a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completes {
    /// No completion.
    Nothing,
    /// One of these words.
    Words(&'static [&'static str]),
    /// The words that follow `info`: SDM's own, and those that gdb completes.
    Info,
    /// Names of commands.
    Commands,
    /// Sets of tasks.
    Sets,
    /// Names of files.
    Files,
    /// Symbols and files of the program, as gdb completes them.
    Program,
}

/// A specification without any content, for use as `..PLAIN`.
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
