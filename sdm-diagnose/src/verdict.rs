//! What is said in the end.

use sdm_idset::IdSet;

use super::Step;

/// What is said, and of whom.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) step: Step,
    pub(super) text: String,
    pub(super) suspects: IdSet,
    pub(super) held_up_by: IdSet,
}

impl Verdict {
    pub(super) fn new(step: Step, text: impl Into<String>) -> Self {
        Self {
            step,
            text: text.into(),
            suspects: IdSet::new(),
            held_up_by: IdSet::new(),
        }
    }

    pub(super) fn blaming(self, suspects: IdSet) -> Self {
        Self { suspects, ..self }
    }
}
