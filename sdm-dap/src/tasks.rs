//! The state of each task, as last reported.

use sdm_debug::reply::Stop;
use sdm_idset::IdSet;
use sdm_view::coalesce::{Distinct, hash_of};

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    /// The task has not started yet, or is on its way to `main`.
    Starting,
    /// The task runs.
    Running,
    /// The task is stopped.
    CommonStop(Box<Stop>),
    /// The task has ended with this exit code; 128 and more for a signal.
    Ended(i64),
    /// The task was started here, was detached, and runs on.
    Left,
    /// The task was detached, or cannot be reached any more.
    Gone,
}

/// All tasks, grouped by state; every task is in one entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    all: IdSet,
    entries: Vec<(Condition, IdSet)>,
    /// Tasks that run, have not started yet, or are on their way to `main`.
    running: IdSet,
    /// Stopped tasks.
    standing: IdSet,
}

impl Tasks {
    /// All tasks are on their way to `main`.
    pub(crate) fn new(all: IdSet) -> Self {
        Self {
            entries: vec![(Condition::Starting, all.clone())],
            running: all.clone(),
            standing: IdSet::new(),
            all,
        }
    }

    /// Adds new tasks, which run.
    pub(crate) fn join(&mut self, tasks: &IdSet) {
        self.all.union_with(tasks);
        self.set(tasks, Condition::Running);
    }

    /// The state of a subset of the tasks.
    pub(crate) fn among(&self, few: &IdSet) -> Self {
        let entries = self.entries.iter();
        let entries = entries.map(|(known, tasks)| (known.clone(), tasks.intersection(few)));
        Self {
            all: self.all.intersection(few),
            running: self.running.intersection(few),
            standing: self.standing.intersection(few),
            entries: entries.filter(|(_, tasks)| !tasks.is_empty()).collect(),
        }
    }

    /// All tasks in any state.
    pub(crate) fn all(&self) -> &IdSet {
        &self.all
    }

    /// Sets the state of some tasks. Tasks outside the session are left out.
    pub(crate) fn set(&mut self, tasks: &IdSet, condition: Condition) {
        self.set_all(vec![(tasks.clone(), condition)]);
    }

    /// Sets the state of many tasks; no task may occur twice. Single calls take much longer if thousands of states
    /// differ.
    pub(crate) fn set_all(&mut self, mut changes: Vec<(IdSet, Condition)>) {
        for (tasks, _) in &mut changes {
            tasks.intersect_with(&self.all);
        }
        changes.retain(|(tasks, _)| !tasks.is_empty());
        if changes.is_empty() {
            return;
        }
        let changed = IdSet::union_all(changes.iter().map(|(tasks, _)| tasks));
        for (_, known) in &mut self.entries {
            known.subtract(&changed);
        }
        self.entries.retain(|(_, known)| !known.is_empty());
        self.running.subtract(&changed);
        self.standing.subtract(&changed);
        let mut places = Distinct::default();
        let is_one = changes.len() == 1;
        let known = self.entries.iter().enumerate();
        for (at, (known, _)) in known.filter(|_| !is_one) {
            places.add(hash_of(known), at);
        }
        for (tasks, condition) in changes {
            match condition {
                Condition::Running | Condition::Starting => self.running.union_with(&tasks),
                Condition::CommonStop(_) => self.standing.union_with(&tasks),
                Condition::Ended(_) | Condition::Left | Condition::Gone => {}
            }
            let entries = &mut self.entries;
            let hash = if is_one { 0 } else { hash_of(&condition) };
            let equal = match is_one {
                true => entries.iter().position(|(known, _)| *known == condition),
                false => places.find(hash, |at| entries[at].0 == condition),
            };
            match equal {
                Some(at) => entries[at].1.union_with(&tasks),
                None => {
                    places.add(hash, entries.len());
                    entries.push((condition, tasks));
                }
            }
        }
    }

    fn of(&self, wanted: impl Fn(&Condition) -> bool) -> IdSet {
        let entries = self.entries.iter().filter(|(known, _)| wanted(known));
        IdSet::union_all(entries.map(|(_, tasks)| tasks))
    }

    /// Tasks that run, have not started yet, or are on their way to `main`.
    pub(crate) fn running(&self) -> IdSet {
        self.running.clone()
    }

    /// Stopped tasks.
    pub(crate) fn standing(&self) -> IdSet {
        self.standing.clone()
    }

    /// Running and stopped tasks, and those that have not started yet or are on their way to `main`. Detached tasks are
    /// not among them.
    pub(crate) fn live(&self) -> IdSet {
        self.running.union(&self.standing)
    }

    /// Tasks that were detached and run on.
    pub(crate) fn left(&self) -> IdSet {
        self.of(|known| matches!(known, Condition::Left))
    }

    /// The states, each with its tasks.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &(Condition, IdSet)> {
        self.entries.iter()
    }

    /// The stops, each with its tasks.
    pub(crate) fn stops(&self) -> impl Iterator<Item = (&Stop, &IdSet)> {
        self.entries
            .iter()
            .filter_map(|(known, tasks)| match known {
                Condition::CommonStop(stop) => Some((&**stop, tasks)),
                _ => None,
            })
    }

    /// The exit code of the job: the largest of all tasks; 0 if no task has one.
    pub(crate) fn exit_code(&self) -> i64 {
        let codes = self.entries.iter().filter_map(|(known, _)| match known {
            Condition::Ended(code) => Some(*code),
            _ => None,
        });
        codes.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> IdSet {
        text.parse().expect("a set")
    }

    #[test]
    fn bulk_state_change_equals_single_changes() {
        let changes = [
            ("0-3", Condition::Running),
            ("2", Condition::Ended(1)),
            ("3", Condition::Ended(2)),
            ("4-5", Condition::Ended(1)),
            ("9", Condition::Gone),
        ];
        let mut singly = Tasks::new(set("0-6"));
        for (tasks, condition) in &changes {
            singly.set(&set(tasks), condition.clone());
        }
        let mut at_once = Tasks::new(set("0-6"));
        let changes = changes.into_iter();
        let mut changes: Vec<_> = changes.map(|(tasks, to)| (set(tasks), to)).collect();
        let later = changes.split_off(1);
        at_once.set_all(changes);
        at_once.set_all(later);
        for tasks in [&singly, &at_once] {
            let entries = tasks.conditions();
            let entries: Vec<_> = entries
                .map(|(what, who)| format!("{who}:{what:?}"))
                .collect();
            assert_eq!(
                entries.join(" "),
                "6:Starting 0-1:Running 2,4-5:Ended(1) 3:Ended(2)"
            );
            assert_eq!(tasks.running(), set("0-1,6"));
            assert_eq!(tasks.live(), set("0-1,6"));
            assert!(tasks.standing().is_empty());
        }
    }
}
