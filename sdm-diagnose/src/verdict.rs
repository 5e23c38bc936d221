//! The verdict: its strength, cause and text, and the ranks it names.

use sdm_idset::IdSet;

use super::{Cause, Step};

/// A verdict with the ranks that it names.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) step: Step,
    pub(super) cause: Cause,
    pub(super) text: String,
    pub(super) suspects: IdSet,
    /// The ranks between which the error is, where no single one is to blame.
    pub(super) between: IdSet,
    pub(super) held_up_by: IdSet,
}

impl Verdict {
    /// A verdict of this strength with its most frequent cause.
    pub(super) fn new(step: Step, text: impl Into<String>) -> Self {
        let cause = match step {
            Step::Deadlock | Step::CannotGoOn => Cause::CallOrdering,
            Step::HeldUp | Step::CannotTell => Cause::Unknown,
            Step::NoHangSeen => Cause::None,
        };
        Self {
            step,
            cause,
            text: text.into(),
            suspects: IdSet::new(),
            between: IdSet::new(),
            held_up_by: IdSet::new(),
        }
    }

    pub(super) fn of(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    pub(super) fn blaming(self, suspects: IdSet) -> Self {
        Self { suspects, ..self }
    }

    pub(super) fn between(self, between: IdSet) -> Self {
        Self { between, ..self }
    }
}
