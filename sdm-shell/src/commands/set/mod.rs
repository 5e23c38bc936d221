//! Sets of tasks as a command line names them: `0-3,7`, `0..7`, `0-998/2`, `all`, `@stopped!3`,
//! `(@1&@host:n[01-04])^7`, `3.2`.
//!
//! ```text
//! set     = element *( operator element ) [ "." thread ]
//! operator= "," either | "!" left without right | "&" both | "^" one of both      from left to right
//! element = range | "all" | "@" name | "(" set ")" | "!" element                  "!3" is "all!3"
//! range   = id [ ("-" | "..") id [ "/" step ] ]
//! name    = number                 a class of the last answer, 1 is the first one shown
//!         | "host:" pattern        n1, n[01-04], login*
//!         | "at:" function         stopped in it
//!         | file ":" line          stopped there
//!         | "bp:" number           stopped at this breakpoint
//!         | "if:(" expression ")"  where it holds: the tasks are asked
//!         | word                   stopped, running, ...; or a set of `defset`
//! ```
//!
//! Operators as in ClusterShell: all bind alike, from left to right.

mod parse;
#[cfg(test)]
mod tests;

use sdm_hosts::hostlist::HostPattern;
use sdm_idset::{IdSet, set_text};
use sdm_text::agree;

use super::CommandError;
use super::cursor::Cursor;

/// The predefined names after `@`, with their descriptions.
pub const PREDEFINED: &[(&str, &str)] = &[
    (
        "crashed",
        "ranks that a signal has ended or is about to end",
    ),
    ("exited", "ranks that have exited"),
    ("focus", "ranks in focus"),
    ("lost", "ranks whose sdm-server is lost"),
    ("prev", "ranks of the previous focus"),
    ("running", "running tasks"),
    ("silent", "ranks whose sdm-server does not answer"),
    ("stopped", "stopped tasks"),
];

/// The prefixes of names that select tasks by a property.
pub(super) const PREFIXES: &[&str] = &["at:", "bp:", "host:", "if:("];

/// A set of tasks as it was written. Its value can depend on the session.
#[derive(Clone, Debug, PartialEq)]
pub struct SetExpr {
    text: String,
    at: usize,
    node: Node,
    thread: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    All,
    Ids { ids: IdSet, at: usize },
    Named { name: SetName, at: usize },
    Chain(Box<Node>, Vec<(Operator, Node)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Either,
    Without,
    Both,
    OneOf,
}

/// A name that follows an `@`.
#[derive(Clone, Debug, PartialEq)]
pub enum SetName {
    /// `@stopped`, a set that `defset` defined, or the name of a program.
    Word(String),
    /// `@1`: a class of the last answer, numbered from 1.
    Class(u32),
    /// `@host:n[01-04]`.
    Host(HostPattern),
    /// `@at:exchange`.
    At(String),
    /// `@halo.c:120`.
    Place {
        /// The file, with as much of its path as the user wrote.
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// `@bp:3`.
    Breakpoint(u32),
    /// `@if:(x > 3)`.
    If(String),
}

/// The meaning of set names in a session.
pub trait Scope {
    /// The tasks in the session: `all`.
    fn tasks(&self) -> &IdSet;

    /// The tasks that a name refers to.
    ///
    /// # Errors
    /// A [`NameError`] if the name refers to nothing at present.
    fn named(&self, name: &SetName) -> Result<IdSet, NameError>;
}

/// The reason why a set name cannot be resolved now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no set of this name.
    #[error("no set has the name `@{0}`; `info sets` shows all")]
    Unknown(String),
    /// The last answer has fewer classes; their number, 0 without an answer.
    #[error("{}", classes(*.0))]
    NoClass(usize),
    /// No task is on a host that matches the pattern.
    #[error("no rank runs on this host; `info nodes` shows all hosts")]
    NoHost,
}

fn classes(count: usize) -> String {
    match count {
        0 => "no command has given classes of equal answers yet".to_owned(),
        1 => "the last answer has only one class of equal answers: @1".to_owned(),
        count => format!("the last answer has the classes @1 to @{count}"),
    }
}

/// The end of a set inside its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The end of the line.
    End,
    /// The next blank outside of parentheses.
    Blank,
    /// The `]` that closes the set.
    Bracket,
}

impl SetExpr {
    /// Parses a text that is a set as a whole. `at` is its offset in the line, for errors.
    ///
    /// # Errors
    /// The text is not a valid set. The error points at the invalid character.
    pub fn parse(text: &str, at: usize) -> Result<Self, CommandError> {
        parse::parse(text, Until::End)
            .map(|(set, _)| set)
            .map_err(|error| CommandError::at(at + error.at, error.what))
            .map(|set| set.moved(at))
    }

    /// Parses a set at the current position of a line.
    pub(super) fn take(rest: &mut Cursor<'_>, until: Until) -> Result<Self, CommandError> {
        let at = rest.at();
        let (set, taken) = parse::parse(rest.rest(), until)
            .map_err(|error| CommandError::at(at + error.at, error.what))?;
        rest.skip(taken);
        Ok(set.moved(at))
    }

    /// The text of the set, as the user wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The thread after the dot: `3.2` is thread 2 of rank 3. None without a dot.
    #[must_use]
    pub fn thread(&self) -> Option<u32> {
        self.thread
    }

    /// The expressions that the tasks have to evaluate before the set can be resolved.
    #[must_use]
    pub fn conditions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        conditions(&self.node, &mut found);
        found
    }

    fn moved(mut self, by: usize) -> Self {
        self.at = by;
        move_by(&mut self.node, by);
        self
    }
}

fn conditions<'a>(node: &'a Node, found: &mut Vec<&'a str>) {
    match node {
        Node::Named {
            name: SetName::If(expression),
            ..
        } => found.push(expression),
        Node::Chain(first, rest) => {
            conditions(first, found);
            for (_, node) in rest {
                conditions(node, found);
            }
        }
        Node::All | Node::Ids { .. } | Node::Named { .. } => {}
    }
}

fn move_by(node: &mut Node, by: usize) {
    match node {
        Node::All => {}
        Node::Ids { at, .. } | Node::Named { at, .. } => *at += by,
        Node::Chain(first, rest) => {
            move_by(first, by);
            for (_, node) in rest {
                move_by(node, by);
            }
        }
    }
}

/// Resolves a set to its tasks, which can be none.
///
/// # Errors
/// The set contains tasks that the session does not have, or a name that refers to nothing.
pub fn resolve(set: &SetExpr, scope: &dyn Scope) -> Result<IdSet, CommandError> {
    eval(&set.node, scope)
}

fn eval(node: &Node, scope: &dyn Scope) -> Result<IdSet, CommandError> {
    match node {
        Node::All => Ok(scope.tasks().clone()),
        Node::Ids { ids, at } => within(ids, scope.tasks(), *at),
        Node::Named { name, at } => {
            let found = scope.named(name);
            found.map_err(|error| CommandError::at(*at, error.to_string()))
        }
        Node::Chain(first, rest) => {
            let mut so_far = eval(first, scope)?;
            for (operator, node) in rest {
                let next = eval(node, scope)?;
                match operator {
                    Operator::Either => so_far.union_with(&next),
                    Operator::Without => so_far.subtract(&next),
                    Operator::Both => so_far.intersect_with(&next),
                    Operator::OneOf => {
                        let both = so_far.intersection(&next);
                        so_far.union_with(&next);
                        so_far.subtract(&both);
                    }
                }
            }
            Ok(so_far)
        }
    }
}

fn within(ids: &IdSet, tasks: &IdSet, at: usize) -> Result<IdSet, CommandError> {
    let beyond = ids.difference(tasks);
    if beyond.is_empty() {
        return Ok(ids.clone());
    }
    let noun = |set: &IdSet| agree(set.len(), "rank", "ranks");
    let (unknown, known) = (set_text(&beyond, 60), set_text(tasks, 60));
    let (one, other) = (noun(&beyond), noun(tasks));
    let text = format!("no such {one}: {unknown} (this session has {other} {known})");
    Err(CommandError::at(at, text))
}

/// The reason why `defset` cannot use a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SetNameError {
    /// The name is malformed.
    #[error("`{0}` is not a valid name: expected a letter, then letters, digits, `_` and `-`")]
    Malformed(String),
    /// The name is predefined.
    #[error("`@{0}` is a predefined set: choose another name")]
    Taken(String),
}

/// Checks that `defset` can use a name.
///
/// # Errors
/// [`SetNameError`] gives the reason.
pub(super) fn check_name(word: &str) -> Result<(), SetNameError> {
    let letters = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !letters || !begins {
        return Err(SetNameError::Malformed(word.to_owned()));
    }
    if word == "all" || PREDEFINED.iter().any(|(known, _)| *known == word) {
        return Err(SetNameError::Taken(word.to_owned()));
    }
    Ok(())
}

/// Feeds arbitrary bytes to the parser. It must not panic, errors must point into the text, and a parsed
/// set must survive a round trip.
pub fn fuzz_set_expr(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for until in [Until::End, Until::Blank, Until::Bracket] {
        match parse::parse(&text, until) {
            Ok((set, taken)) => {
                assert!(taken <= text.len() && text.is_char_boundary(taken));
                let blanks = text.len() - text.trim_start().len();
                let again = parse::parse(&set.text, Until::End);
                assert!(again.is_ok_and(|(again, _)| again.moved(blanks).node == set.node));
            }
            Err(error) => assert!(error.at <= text.len() && text.is_char_boundary(error.at)),
        }
    }
}
