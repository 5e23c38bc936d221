//! The report of a session: an HTML page, one screen of text, JSON, and JUnit XML.
//!
//! A [`Recorder`] receives every [`crate::Item`] that a session shows and keeps a bounded part of it. A
//! [`Report`] is a snapshot of it, a plain value; [`html`], [`text`], [`json`] and [`junit`] are pure
//! functions of it.
//!
//! The caller writes each file as a whole, so that the last state survives the session.

mod exceptions;
mod html;
mod json;
mod junit;
mod mpi_errors;
mod output;
mod places;
mod record;
#[cfg(test)]
mod tests;
mod text;

use std::time::{Duration, SystemTime};

use sdm_diagnose::Diagnosis;
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::is_waiting;

use crate::item::{MergedStacks, RankRow};
use crate::render::{Names, Sentence, sentence, stack_frame};

pub use html::html;
pub use json::{VERSION, json};
pub use junit::junit;
pub use mpi_errors::MpiError;
pub use output::{OutputClass, OutputLine};
pub use places::outliers;
pub use record::Recorder;
pub use text::text;

/// A snapshot of a session. Its texts are unescaped; each format escapes them itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The session's name. Empty without a session.
    pub session: String,
    /// Time of the session's beginning.
    pub began: SystemTime,
    /// Duration of the session at the time of the snapshot.
    pub took: Duration,
    /// All tasks of the session.
    pub tasks: IdSet,
    /// The names of tasks.
    pub names: Names,
    /// The program and its arguments; `:` separates several programs. Empty if tasks were attached to.
    pub program: Vec<String>,
    /// The end of the session. None while the session runs.
    pub end: Option<End>,
    /// The command line, the machine, versions.
    pub facts: Vec<Fact>,
    /// The states of tasks, most frequent first.
    pub states: Vec<RankRow>,
    /// The first crash or abort; None if there is none.
    pub first: Option<Moment>,
    /// The stacks with variables of tasks that crashed or were about to abort, the first one first.
    pub crashed: Vec<Look>,
    /// The diagnosis of a hang. None if none was made.
    pub diagnosis: Option<Diagnosis>,
    /// The stacks of tasks that were stopped or ran without a gdb; None if they were not read.
    pub stacks: Option<MergedStacks>,
    /// The stacks with variables of tasks with rare call stacks, or of all if there are few call stacks.
    pub outliers: Vec<Look>,
    /// The output of the program, grouped by tasks with equal output.
    pub output: Vec<OutputClass>,
    /// The events, in order.
    pub timeline: Vec<Moment>,
    /// The commands with their output, as on a screen.
    pub commands: String,
    /// Errors in the use of MPI, in order of occurrence.
    pub mpi_errors: Vec<MpiError>,
    /// Tasks whose server was lost, with the reason.
    pub lost: Vec<(IdSet, String)>,
    /// Omissions: a sentence for each kind of data of which only part is kept.
    pub cut: Vec<String>,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit code of `sdm`.
    pub code: u8,
    /// The reason, where the end was not requested.
    pub reason: Option<String>,
}

/// A property of the run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name of the fact, such as `command line`.
    pub name: String,
    /// The value of the fact, as text for the user.
    pub value: String,
}

impl Fact {
    /// A fact with this name and value.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
        }
    }
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time of the event since the session began.
    pub at: Duration,
    /// The tasks of the event; empty if it concerns none.
    pub tasks: IdSet,
    /// The event, one line for a person.
    pub what: String,
    /// Further lines: the line of source.
    pub below: Vec<String>,
    /// True for an error or crash.
    pub bad: bool,
}

/// The stack of one task with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The task whose stack it is.
    pub task: TaskId,
    /// All tasks with the same call stack.
    pub tasks: IdSet,
    /// The frames that are shown, innermost first.
    pub frames: Vec<LookFrame>,
    /// True if there are further frames.
    pub more: bool,
}

/// A frame of a [`Look`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookFrame {
    /// The frame's number as in `bt`, which counts omitted runtime frames. 0 is the innermost.
    pub level: u32,
    /// The text of the frame: `solve (rod=0x..., steps=3) at halo.c:111`.
    pub place: String,
    /// The source line. Empty if unknown.
    pub source: String,
    /// The frame's variables. None if they were not queried.
    pub locals: Option<Vec<(String, String)>>,
}

impl Report {
    /// The report of a session that could not be opened.
    #[must_use]
    pub fn of_no_session(facts: Vec<Fact>, code: u8, reason: String) -> Self {
        let mut recorder = Recorder::new(facts, Names::ranks());
        recorder.end(code, Some(reason));
        recorder.report(&IdSet::new(), Vec::new(), Duration::ZERO)
    }

    /// The outcome in one sentence.
    #[must_use]
    pub fn outcome(&self) -> String {
        match &self.end {
            None => "still running when this report was written".to_owned(),
            Some(End {
                code: 0,
                reason: None,
            }) => "ended well".to_owned(),
            Some(End { code, reason: None }) => format!("ended with exit code {code}"),
            Some(End {
                reason: Some(reason),
                ..
            }) => reason.clone(),
        }
    }

    /// True if the session has ended successfully.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.code == 0)
    }
}

/// The state of a row's tasks, and their last event or their place.
fn state_of(row: &RankRow) -> (&'static str, Option<Sentence>) {
    let state = row.health.unwrap_or_else(|| row.state.name());
    let Some(place) = row.place.as_ref() else {
        return (state, row.last.as_ref().map(sentence));
    };
    let state = match is_waiting(&place.function) {
        true => "waiting",
        false => state,
    };
    let at = Sentence {
        line: format!("in {}", stack_frame(place)),
        below: Vec::new(),
        bad: false,
    };
    (state, Some(at))
}
