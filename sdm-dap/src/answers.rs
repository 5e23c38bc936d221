//! What has come of one command, put together over all tasks.

use sdm_debug::{Failure, Reply};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer};
use sdm_view::gather::join;
use sdm_view::item::Gathered;
use sdm_view::render::set_text;

/// The longest set in a message, in bytes.
const SET_BYTES_MAX: usize = 40;

/// What has come of one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers(pub(crate) Gathered);

impl Answers {
    /// Takes one class in.
    pub(crate) fn take(&mut self, class: Class) {
        let Class { tasks, answer } = class;
        let gathered = &mut self.0;
        match answer {
            ClassAnswer::Reply(reply) => join(&mut gathered.ok, &tasks, reply),
            ClassAnswer::Merged(bytes) => join(&mut gathered.merged, &tasks, bytes),
            ClassAnswer::Failed(failure) => join(&mut gathered.failed, &tasks, failure),
            ClassAnswer::Others => gathered.others.union_with(&tasks),
        }
    }

    /// Takes in who did not answer.
    pub(crate) fn miss(&mut self, missing: Vec<(IdSet, String)>, lost: &IdSet) {
        for (tasks, why) in missing {
            join(&mut self.0.missing, &tasks, why);
        }
        self.0.lost.union_with(lost);
    }

    /// The distinct replies and who gave each.
    pub(crate) fn replies(&self) -> impl Iterator<Item = (&IdSet, &Reply)> {
        self.0.ok.iter().map(|(tasks, reply)| (tasks, reply))
    }

    /// True where somebody did it.
    pub(crate) fn is_done_by_any(&self) -> bool {
        !self.0.ok.is_empty() || !self.0.merged.is_empty() || !self.0.others.is_empty()
    }

    /// Why it was not done, a sentence for each reason; nothing where all did it. One reason that all have is said
    /// without them.
    pub(crate) fn complaint(&self) -> Option<String> {
        let mut reasons: Vec<(&IdSet, String)> = Vec::new();
        let say = |failure: &Failure| failure.to_string();
        reasons.extend(self.0.failed.iter().map(|(tasks, why)| (tasks, say(why))));
        let missing = self.0.missing.iter();
        reasons.extend(missing.map(|(tasks, why)| (tasks, format!("no answer: {why}"))));
        if !self.0.lost.is_empty() {
            reasons.push((&self.0.lost, "its server is gone".to_owned()));
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
