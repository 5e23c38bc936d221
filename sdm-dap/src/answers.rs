//! The answers to one command, merged over all tasks.

use sdm_debug::{Failure, Reply};
use sdm_idset::{IdSet, set_text};
use sdm_session::Class;
use sdm_view::coalesce::{Distinct, join};
use sdm_view::item::Gathered;

/// Maximum length of a task set in a message, in bytes.
const SET_BYTES_MAX: usize = 40;

/// The answers to one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    /// The answers, merged over all tasks.
    pub(crate) all: Gathered,
    /// Index of each distinct reply.
    replies: Distinct,
}

impl Answers {
    /// Adds the equal answers of one class of tasks.
    pub(crate) fn take(&mut self, class: Class) {
        self.all.add(class, &mut self.replies);
    }

    /// Adds tasks that did not answer.
    pub(crate) fn miss(&mut self, missing: Vec<(IdSet, String)>, lost: &IdSet) {
        for (tasks, why) in missing {
            join(&mut self.all.missing, &tasks, why);
        }
        self.all.lost.union_with(lost);
    }

    /// The distinct replies, each with its tasks.
    pub(crate) fn replies(&self) -> impl Iterator<Item = (&IdSet, &Reply)> {
        self.all.ok.iter().map(|(tasks, reply)| (tasks, reply))
    }

    /// True if at least one task succeeded.
    pub(crate) fn is_done_by_any(&self) -> bool {
        !self.all.ok.is_empty() || !self.all.merged.is_empty() || !self.all.others.is_empty()
    }

    /// The reasons of failures, a sentence for each; `None` if all tasks succeeded. A reason that all tasks share is
    /// given without tasks.
    pub(crate) fn complaint(&self) -> Option<String> {
        let mut reasons: Vec<(&IdSet, String)> = Vec::new();
        let say = |failure: &Failure| failure.to_string();
        reasons.extend(self.all.failed.iter().map(|(tasks, why)| (tasks, say(why))));
        let missing = self.all.missing.iter();
        reasons.extend(missing.map(|(tasks, why)| (tasks, format!("no answer: {why}"))));
        if !self.all.lost.is_empty() {
            reasons.push((&self.all.lost, "no answer: sdm-server was lost".to_owned()));
        }
        match reasons.as_slice() {
            [] => None,
            [(_, why)] if !self.is_done_by_any() => Some(why.clone()),
            several => {
                let said = several.iter().map(|(tasks, why)| {
                    let tasks = set_text(tasks, SET_BYTES_MAX);
                    format!("[{tasks}] {why}")
                });
                Some(said.collect::<Vec<_>>().join("; "))
            }
        }
    }
}
