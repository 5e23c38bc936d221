//! A parsed line with its target set, and its outcome.

use sdm_idset::IdSet;

/// A parsed line's text and target set.
pub(super) struct Invocation<'a> {
    /// The line, as written.
    pub(super) line: &'a str,
    /// The tasks named in front of the command, otherwise those in focus.
    pub(super) to: IdSet,
    /// True if the tasks are named in front of the command.
    pub(super) named: bool,
    /// Nesting depth of sourced files and user-defined commands around the line; 0 for lines of the user, of -x and of
    /// -c.
    pub(super) depth: u32,
}

/// The outcome of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Carried out.
    Done,
    /// Failed on some task, or not a command.
    Failed,
    /// The user stopped waiting for it.
    GivenUp,
}
