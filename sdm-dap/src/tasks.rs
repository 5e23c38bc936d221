//! What each task is doing, as far as was heard.

use sdm_debug::reply::Stop;
use sdm_idset::IdSet;

/// What a task is doing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// Not started yet, or on its way to `main`.
    Starting,
    /// It runs.
    Running,
    /// It stands.
    Standing(Box<Stop>),
    /// It has ended with this exit code; 128 and more for a signal.
    Ended(i64),
    /// It was started here, was let go, and runs on.
    Left,
    /// It was let go, or cannot be reached any more.
    Gone,
}

/// All tasks, those alike together; every task is in one entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    all: IdSet,
    entries: Vec<(Condition, IdSet)>,
}

impl Tasks {
    /// All of them are on their way.
    pub(crate) fn new(all: IdSet) -> Self {
        Self {
            entries: vec![(Condition::Starting, all.clone())],
            all,
        }
    }

    /// These have come into being, and run.
    pub(crate) fn join(&mut self, tasks: &IdSet) {
        self.all.union_with(tasks);
        self.set(tasks, Condition::Running);
    }

    /// Some of them alone, as they are.
    pub(crate) fn among(&self, few: &IdSet) -> Self {
        let entries = self.entries.iter();
        let entries = entries.map(|(known, tasks)| (known.clone(), tasks.intersection(few)));
        Self {
            all: self.all.intersection(few),
            entries: entries.filter(|(_, tasks)| !tasks.is_empty()).collect(),
        }
    }

    /// All tasks, whatever became of them.
    pub(crate) fn all(&self) -> &IdSet {
        &self.all
    }

    /// What some of them do now. Those that are no tasks of the session are left out.
    pub(crate) fn set(&mut self, tasks: &IdSet, condition: Condition) {
        let tasks = tasks.intersection(&self.all);
        if tasks.is_empty() {
            return;
        }
        for (_, known) in &mut self.entries {
            known.subtract(&tasks);
        }
        self.entries.retain(|(_, known)| !known.is_empty());
        let equal = self
            .entries
            .iter_mut()
            .find(|(known, _)| *known == condition);
        match equal {
            Some((_, known)) => known.union_with(&tasks),
            None => self.entries.push((condition, tasks)),
        }
    }

    fn of(&self, wanted: impl Fn(&Condition) -> bool) -> IdSet {
        let entries = self.entries.iter().filter(|(known, _)| wanted(known));
        IdSet::union_all(entries.map(|(_, tasks)| tasks))
    }

    /// Those that run, or are on their way to `main`.
    pub(crate) fn running(&self) -> IdSet {
        self.of(|known| matches!(known, Condition::Running | Condition::Starting))
    }

    /// Those that stand.
    pub(crate) fn standing(&self) -> IdSet {
        self.of(|known| matches!(known, Condition::Standing(_)))
    }

    /// Those that have not ended.
    pub(crate) fn live(&self) -> IdSet {
        self.of(|known| {
            !matches!(
                known,
                Condition::Ended(_) | Condition::Left | Condition::Gone
            )
        })
    }

    /// Those that were let go and run on.
    pub(crate) fn left(&self) -> IdSet {
        self.of(|known| matches!(known, Condition::Left))
    }

    /// What tasks do, those alike together.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &(Condition, IdSet)> {
        self.entries.iter()
    }

    /// The stops, and who stands so.
    pub(crate) fn stops(&self) -> impl Iterator<Item = (&Stop, &IdSet)> {
        self.entries
            .iter()
            .filter_map(|(known, tasks)| match known {
                Condition::Standing(stop) => Some((&**stop, tasks)),
                _ => None,
            })
    }

    /// The exit code of the job: the largest of all; 0 where none has one.
    pub(crate) fn exit_code(&self) -> i64 {
        let codes = self.entries.iter().filter_map(|(known, _)| match known {
            Condition::Ended(code) => Some(*code),
            _ => None,
        });
        codes.max().unwrap_or(0)
    }
}
