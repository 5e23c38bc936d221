//! The accounting law, checked from outside: each destination of a command is in exactly one of
//! open, answered, failed, missing and lost, at every instant.

use std::collections::BTreeMap;

use sdm_debug::{Reply, TaskState};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{Class, ClassAnswer};

/// State of one command's destinations.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The command's destinations.
    pub to: IdSet,
    /// Destinations without an outcome yet.
    pub open: IdSet,
    /// Destinations that answered.
    pub answered: IdSet,
    /// Destinations that answered with a failure.
    pub failed: IdSet,
    /// Destinations that did not answer in time.
    pub missing: IdSet,
    /// Destinations whose server is gone.
    pub lost: IdSet,
    /// Answered and failed destinations that had been reported missing or lost before.
    pub late: IdSet,
    /// The reasons given for missing tasks, in order.
    pub reasons: Vec<String>,
    /// Every answer, in the order of arrival.
    pub classes: Vec<Class>,
    /// True once the session has reported the command's end.
    pub complete: bool,
}

impl Ledger {
    /// A command that has just been sent to `to`.
    #[must_use]
    pub fn new(to: &IdSet) -> Self {
        Self {
            to: to.clone(),
            open: to.clone(),
            ..Self::default()
        }
    }

    /// Records an answer, and checks the accounting law.
    ///
    /// # Panics
    /// If the answer violates the accounting law.
    pub fn answer(
        &mut self,
        classes: Vec<Class>,
        missing: &[(IdSet, String)],
        lost: &IdSet,
        late: bool,
    ) {
        let mut named_before = IdSet::new();
        for class in classes {
            assert!(
                class.tasks.is_subset(&self.to),
                "{} were not asked",
                class.tasks.difference(&self.to)
            );
            let counted = self.answered.union(&self.failed);
            let twice = class.tasks.intersection(&counted);
            assert!(twice.is_empty(), "tasks {twice} answered twice: {class:?}");
            let told = self.missing.union(&self.lost).intersection(&class.tasks);
            named_before.union_with(&told);
            for set in [&mut self.open, &mut self.missing, &mut self.lost] {
                set.subtract(&class.tasks);
            }
            if let ClassAnswer::Failed(_) = class.answer {
                self.failed.union_with(&class.tasks);
            } else {
                self.answered.union_with(&class.tasks);
            }
            self.classes.push(class);
        }
        assert_eq!(
            late,
            !named_before.is_empty(),
            "late is said of those named missing or lost before, and of nobody else: {named_before}"
        );
        self.late.union_with(&named_before);
        for (tasks, why) in missing {
            assert!(tasks.is_subset(&self.open), "{tasks} missing, but not open");
            self.open.subtract(tasks);
            self.missing.union_with(tasks);
            self.reasons.push(format!("{tasks}: {why}"));
        }
        // A missing task may turn out to be lost with its server.
        let may_be_lost = self.open.union(&self.missing);
        assert!(lost.is_subset(&may_be_lost), "{lost} lost, but counted");
        self.open.subtract(lost);
        self.missing.subtract(lost);
        self.lost.union_with(lost);
        self.check();
    }

    /// Records the end of the command.
    ///
    /// # Panics
    /// If a destination is open, or the end was reported before.
    pub fn complete(&mut self) {
        assert!(!self.complete, "over twice");
        assert!(self.open.is_empty(), "over with {} open", self.open);
        self.complete = true;
    }

    fn check(&self) {
        let sets = [
            &self.open,
            &self.answered,
            &self.failed,
            &self.missing,
            &self.lost,
        ];
        let sum: u64 = sets.iter().map(|set| set.len()).sum();
        let union = IdSet::union_all(sets);
        assert_eq!(union, self.to, "everybody asked is somewhere");
        assert_eq!(sum, self.to.len(), "and nowhere else: {self:?}");
        assert!(!self.complete || self.open.is_empty());
    }

    /// The value that each task gave.
    #[must_use]
    pub fn values(&self) -> BTreeMap<TaskId, String> {
        let mut values = BTreeMap::new();
        for class in &self.classes {
            if let ClassAnswer::Reply(Reply::Value(value)) = &class.answer {
                values.extend(class.tasks.iter().map(|task| (task, value.text.clone())));
            }
        }
        values
    }

    /// The state that each task is in, of a `Status` command.
    #[must_use]
    pub fn states(&self) -> BTreeMap<TaskId, TaskState> {
        let mut states = BTreeMap::new();
        for class in &self.classes {
            if let ClassAnswer::Reply(Reply::Status(state)) = &class.answer {
                states.extend(class.tasks.iter().map(|task| (task, state.clone())));
            }
        }
        states
    }
}
