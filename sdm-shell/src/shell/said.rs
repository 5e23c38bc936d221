//! What a line said, and what became of it.

use sdm_idset::IdSet;

/// To whom a line goes, and how it was written.
pub(super) struct Said<'a> {
    /// The line as it was written.
    pub(super) line: &'a str,
    /// Those in front of the command, or those in focus.
    pub(super) to: IdSet,
    /// True where they stood in front of the command.
    pub(super) named: bool,
    /// How many files and commands of the user's own the line stands in; 0 for lines of a person.
    pub(super) depth: u32,
}

/// What became of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was done.
    Done,
    /// It failed on some task, or was no command.
    Failed,
    /// A person gave up waiting for it.
    GivenUp,
}
