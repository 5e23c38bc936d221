//! Destinations of a command that have not answered in time, by reason, in as many reasons as one message carries.

use sdm_idset::IdSet;

use crate::limits::MISSING_REASONS_MAX;

/// Reason that replaces those that do not fit into one message.
const MANY_REASONS: &str = "no answer in time, for too many different reasons to list";

/// Missing tasks that have not been reported to the parent yet. No task is dropped for want of room: once all but one
/// of [`MISSING_REASONS_MAX`] reasons are taken, all tasks with another reason share the last one.
#[derive(Default)]
pub(super) struct Missing {
    /// Disjoint sets, none empty, each with a reason that no other has; at most [`MISSING_REASONS_MAX`].
    reasons: Vec<(IdSet, String)>,
}

impl Missing {
    /// Adds tasks with the reason for which they are missing. None of them is contained yet.
    pub(super) fn add(&mut self, tasks: IdSet, why: String) {
        if tasks.is_empty() {
            return;
        }
        let known = |reasons: &[(IdSet, String)], why: &str| {
            reasons.iter().rposition(|(_, known)| known == why)
        };
        let mut at = known(&self.reasons, &why);
        let mut why = why;
        if at.is_none() && self.reasons.len() >= MISSING_REASONS_MAX - 1 {
            MANY_REASONS.clone_into(&mut why);
            at = known(&self.reasons, MANY_REASONS);
        }
        match at {
            Some(at) => self.reasons[at].0.union_with(&tasks),
            None => self.reasons.push((tasks, why)),
        }
    }

    /// Removes tasks that are not missing any more.
    pub(super) fn forget(&mut self, tasks: &IdSet) {
        self.change(|set| set.subtract(tasks));
    }

    /// Removes all tasks that are not in `tasks`.
    pub(super) fn keep(&mut self, tasks: &IdSet) {
        self.change(|set| set.intersect_with(tasks));
    }

    fn change(&mut self, change: impl Fn(&mut IdSet)) {
        self.reasons.iter_mut().for_each(|(set, _)| change(set));
        self.reasons.retain(|(set, _)| !set.is_empty());
    }

    /// True if no task is missing.
    pub(super) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Removes and returns the missing tasks with their reasons, for the parent.
    pub(super) fn take(&mut self) -> Vec<(IdSet, String)> {
        std::mem::take(&mut self.reasons)
    }

    /// True if all missing tasks are among these.
    pub(super) fn is_within(&self, tasks: &IdSet) -> bool {
        self.reasons.iter().all(|(set, _)| set.is_subset(tasks))
    }
}

#[cfg(test)]
mod tests {
    use sdm_idset::TaskId;

    use super::*;

    #[test]
    fn equal_reasons_are_merged() {
        let mut missing = Missing::default();
        for (id, why) in [(1, "a"), (2, "b"), (3, "a")] {
            missing.add(IdSet::single(TaskId(id)), why.to_owned());
        }
        missing.add(IdSet::new(), "c".to_owned());
        missing.forget(&IdSet::single(TaskId(2)));
        let a: IdSet = "1,3".parse().unwrap();
        assert_eq!(missing.take(), [(a, "a".to_owned())]);
        assert!(missing.is_empty());
    }

    #[test]
    fn missing_reasons_above_the_bound_share_one_entry() {
        let mut missing = Missing::default();
        let count = 5000;
        for id in 0..count {
            missing.add(IdSet::single(TaskId(id)), format!("server {id}: quiet"));
        }
        let named = missing.take();
        assert_eq!(named.len(), MISSING_REASONS_MAX);
        let (rest, why) = named.last().expect("there are some");
        assert_eq!(why, MANY_REASONS);
        let own = u32::try_from(MISSING_REASONS_MAX).unwrap() - 1;
        assert_eq!(*rest, IdSet::from_range(own..=count - 1));
        // At the next member those of several children meet: again no task gets lost.
        let mut above = Missing::default();
        for (tasks, why) in named {
            above.add(tasks, why);
        }
        above.add(IdSet::single(TaskId(count)), "another".to_owned());
        above.add(IdSet::single(TaskId(count + 1)), MANY_REASONS.to_owned());
        let named = above.take();
        assert_eq!(named.len(), MISSING_REASONS_MAX);
        let sets = named.iter().map(|(set, _)| set);
        assert_eq!(IdSet::union_all(sets), IdSet::all_below(count + 2));
    }
}
