//! The ranks of a job: those that can go on, and those that cannot.

use sdm_idset::IdSet;

/// The ranks of the job by their state.
pub(super) struct Members<'a> {
    /// All ranks of the job, sampled or not.
    pub(super) all: &'a IdSet,
    /// Ranks that can go on, as far as is known.
    pub(super) live: &'a IdSet,
    /// Ranks that cannot go on.
    pub(super) never: &'a IdSet,
    /// True if the tasks' numbers are not ranks, so that a rank in a call's arguments does not name a task.
    pub(super) unranked: bool,
}

impl Members<'_> {
    /// The ranks of `all` that can end the wait of the ranks `who`, which all wait for the same. These are the ranks
    /// outside `who`, and those of `who` in which another thread can go on.
    pub(super) fn others(&self, all: &IdSet, who: &IdSet) -> IdSet {
        all.difference(&who.difference(self.live))
    }
}
