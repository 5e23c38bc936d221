//! What a session leaves behind for a person who was not there: one page, one screen of text, JSON,
//! and JUnit's XML.
//!
//! A [`Recorder`] is told every [`crate::Item`] that a session shows and keeps a bounded part
//! of it. What it knows at some moment is a [`Report`], a plain value; [`html`], [`text`], [`json`]
//! and [`junit`] are pure functions of it. Whoever writes them to files writes each as a whole, so that what was known last is
//! there whatever becomes of the session.

mod html;
mod json;
mod junit;
mod output;
mod places;
mod record;
#[cfg(test)]
mod tests;
mod text;

use std::time::{Duration, SystemTime};

use sdm_diagnose::Diagnosis;
use sdm_idset::{IdSet, TaskId};

use crate::item::{MergedStacks, RankRow};
use crate::render::Names;

pub use html::html;
pub use json::{VERSION, json};
pub use junit::junit;
pub use output::{OutputClass, OutputLine};
pub use places::outliers;
pub use record::Recorder;
pub use text::text;

/// What is known of a session at some moment. Its texts are as they came: each format makes them
/// harmless itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The session's name; empty where there was none.
    pub session: String,
    /// When it began.
    pub began: SystemTime,
    /// How long it had taken when this was known.
    pub took: Duration,
    /// All tasks of the session.
    pub tasks: IdSet,
    /// What tasks are called.
    pub names: Names,
    /// The program and its arguments; empty where tasks were attached to.
    pub program: Vec<String>,
    /// How it ended; absent while it goes on.
    pub end: Option<End>,
    /// The command line, the machine, versions.
    pub facts: Vec<Fact>,
    /// Who is in which state, most first.
    pub states: Vec<RankRow>,
    /// The first crash or abort.
    pub first: Option<Moment>,
    /// Those that crashed or were about to abort: their stacks with variables, the first one first.
    pub crashed: Vec<Look>,
    /// Why it is stuck, where that was looked at.
    pub diagnosis: Option<Diagnosis>,
    /// Where everybody who stood was.
    pub stacks: Option<MergedStacks>,
    /// Those who were where few are: their stacks with variables.
    pub outliers: Vec<Look>,
    /// What was printed, by those who printed the same.
    pub output: Vec<OutputClass>,
    /// What happened, in order.
    pub timeline: Vec<Moment>,
    /// The commands and what came of them, as on a screen.
    pub commands: String,
    /// Errors in the use of MPI, those that came first in front.
    pub mpi_errors: Vec<MpiError>,
    /// Whose server is gone, and why.
    pub lost: Vec<(IdSet, String)>,
    /// What there was more of than is kept here.
    pub cut: Vec<String>,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit code of `sdm`.
    pub code: u8,
    /// Why, where it was not asked for.
    pub reason: Option<String>,
}

/// Something known of the run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is: `command line`.
    pub name: String,
    /// The value, as text for a person.
    pub value: String,
}

impl Fact {
    /// A fact of this name and value.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, since the session began.
    pub at: Duration,
    /// To whom; empty where it concerns no task.
    pub tasks: IdSet,
    /// What happened, one line for a person.
    pub what: String,
    /// More of it: the line of source.
    pub below: Vec<String>,
    /// True where it is bad news.
    pub bad: bool,
}

/// An error in the use of MPI, at one place of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiError {
    /// All who have made it.
    pub tasks: IdSet,
    /// The error and its place, as where it was told.
    pub what: String,
    /// The line of source, where known.
    pub below: Vec<String>,
}

/// The stack of one task with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whose it is.
    pub task: TaskId,
    /// All who are in the same place.
    pub tasks: IdSet,
    /// The frames that are shown, innermost first.
    pub frames: Vec<LookFrame>,
    /// True where there are further frames.
    pub more: bool,
}

/// A frame of a [`Look`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookFrame {
    /// Its number, as `bt` has it: frames of runtimes that are left out count. 0 is the innermost.
    pub level: u32,
    /// `solve (rod=0x..., steps=3) at halo.c:111`.
    pub place: String,
    /// The line of source; empty where unknown.
    pub source: String,
    /// Its variables; absent where they were not asked for.
    pub locals: Option<Vec<(String, String)>>,
}

impl Report {
    /// What is known of a session that could not be opened.
    #[must_use]
    pub fn of_no_session(facts: Vec<Fact>, code: u8, reason: String) -> Self {
        let mut recorder = Recorder::new(facts, Names::ranks());
        recorder.end(code, Some(reason));
        recorder.report(&IdSet::new(), Vec::new(), Duration::ZERO)
    }

    /// How it came out, in one sentence.
    #[must_use]
    pub fn outcome(&self) -> String {
        match &self.end {
            None => "not ended yet when this was written".to_owned(),
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

    /// True where it ended, and well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.code == 0)
    }
}
