//! Number of samples in which tasks were at one place, per task and over time.

use std::collections::BTreeMap;

use sdm_idset::IdSet;

/// The samples with one call stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// Disjoint sets of tasks, by the number of their samples.
    tasks: BTreeMap<u64, IdSet>,
    /// Number of samples of all tasks in each part of the time, up to the last part with one.
    parts: Vec<u64>,
}

impl Tally {
    /// Adds a number of samples to each of these tasks.
    pub(super) fn add(&mut self, times: u64, tasks: &IdSet) {
        let mut new = tasks.clone();
        let mut more = Vec::new();
        for (before, who) in &mut self.tasks {
            let both = who.intersection(&new);
            if !both.is_empty() {
                who.subtract(&both);
                new.subtract(&both);
                more.push((before.saturating_add(times), both));
            }
        }
        more.push((times, new));
        for (times, who) in more {
            self.tasks.entry(times).or_default().union_with(&who);
        }
        self.tasks.retain(|_, who| !who.is_empty());
    }

    /// Adds a number of samples to each of these tasks, in one part of the time.
    pub(super) fn add_in(&mut self, part: usize, times: u64, tasks: &IdSet) {
        self.add(times, tasks);
        self.parts.resize(self.parts.len().max(part + 1), 0);
        self.parts[part] = self.parts[part].saturating_add(times.saturating_mul(tasks.len()));
    }

    /// Number of samples of all tasks in each part of the time.
    pub(super) fn parts(&self) -> &[u64] {
        &self.parts
    }

    /// Joins neighbouring parts of the time in pairs.
    pub(super) fn join_parts(&mut self) {
        let sum = |two: &[u64]| two.iter().copied().fold(0, u64::saturating_add);
        self.parts = self.parts.chunks(2).map(sum).collect();
    }

    /// Each number of samples, with the tasks that have it.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &IdSet)> {
        self.tasks.iter().map(|(times, who)| (*times, who))
    }

    /// The tasks with samples.
    pub(super) fn tasks(&self) -> IdSet {
        IdSet::union_all(self.tasks.values())
    }

    /// Number of samples, summed over these tasks.
    pub(super) fn times(&self, tasks: &IdSet) -> u64 {
        let each = |(times, who): (u64, &IdSet)| times.saturating_mul(who.intersection_len(tasks));
        self.entries().map(each).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sdm_idset::TaskId;

    use super::*;

    proptest! {
        #[test]
        fn each_task_has_the_sum_of_its_samples(
            added in proptest::collection::vec((1u64..5, proptest::collection::btree_set(0u32..9, 1..6)), 0..12),
        ) {
            let mut tally = Tally::default();
            let mut expect = [0; 9];
            for (times, tasks) in &added {
                tally.add(*times, &tasks.iter().copied().map(TaskId).collect());
                tasks.iter().for_each(|task| expect[*task as usize] += times);
            }
            for (task, times) in (0..).zip(expect) {
                prop_assert_eq!(tally.times(&IdSet::single(TaskId(task))), times);
                prop_assert_eq!(tally.tasks().contains(TaskId(task)), times > 0);
            }
            let members: u64 = tally.entries().map(|(_, who)| who.len()).sum();
            prop_assert_eq!(members, tally.tasks().len());
        }
    }
}
