//! The threads that a client sees: classes of tasks with equal stacks, or single tasks.
//!
//! Classes change with every stop, while a client relies on stable numbers. So a number follows the tasks. When a
//! class splits, the part with its lowest task keeps the number; a stopped part precedes a running one. When classes
//! merge, the focused one's number is kept, otherwise that of the lowest row. Rows keep their order, and new ones
//! come last.

use sdm_idset::TaskId;

use crate::group::Group;

/// A row of the client's list of threads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The client's id of the thread, from 1.
    pub(crate) id: i64,
    pub(crate) group: Group,
}

/// Changes in the list of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) ended: Vec<i64>,
    pub(crate) started: Vec<i64>,
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    last: i64,
    /// The thread that the client last named.
    pub(crate) focused: i64,
    /// True if each task is a thread whose id is the task's rank plus 1.
    by_rank: bool,
    /// True if the session has a single task, whose id is 1 regardless of its rank.
    single: bool,
}

impl Rows {
    /// Creates an empty list. With `by_rank`, each task becomes a thread.
    pub(crate) fn new(by_rank: bool) -> Self {
        Self {
            by_rank,
            ..Self::default()
        }
    }

    /// The list for a session of a single task, a process with threads of its own.
    pub(crate) fn of_one() -> Self {
        Self {
            by_rank: true,
            single: true,
            ..Self::default()
        }
    }

    /// True if each task is a thread.
    pub(crate) fn is_by_rank(&self) -> bool {
        self.by_rank
    }

    /// True if the session has a single task, so that the client's threads are those of its process.
    pub(crate) fn is_single(&self) -> bool {
        self.single
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(crate) fn find(&self, id: i64) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Adopts the present division of tasks into threads; returns the changes.
    pub(crate) fn regroup(&mut self, mut groups: Vec<Group>) -> Changes {
        let before: Vec<i64> = self.rows.iter().map(|row| row.id).collect();
        let mut order: Vec<&Row> = self.rows.iter().collect();
        order.sort_by_key(|row| row.id != self.focused);
        let mut kept: Vec<(i64, Group)> = Vec::new();
        for row in order {
            if let Some(at) = heir(row, &groups, self.by_rank) {
                kept.push((row.id, groups.swap_remove(at)));
            }
        }
        let mut rows = Vec::new();
        for id in &before {
            if let Some(at) = kept.iter().position(|(kept, _)| kept == id) {
                let (id, group) = kept.swap_remove(at);
                rows.push(Row { id, group });
            }
        }
        groups.sort_by_key(|group| group.tasks.first());
        for group in groups {
            let id = self.number(&group);
            rows.push(Row { id, group });
        }
        self.rows = rows;
        let now: Vec<i64> = self.rows.iter().map(|row| row.id).collect();
        let missing = |these: &[i64], those: &[i64]| -> Vec<i64> {
            these
                .iter()
                .filter(|id| !those.contains(id))
                .copied()
                .collect()
        };
        Changes {
            ended: missing(&before, &now),
            started: missing(&now, &before),
        }
    }

    fn number(&mut self, group: &Group) -> i64 {
        if self.single && self.rows.is_empty() {
            return 1;
        }
        if let (true, None, Some(task)) = (self.by_rank, group.folded, group.tasks.first()) {
            return i64::from(task.0) + 1;
        }
        // These ids are beyond those of ranks, of which there are at most a million.
        let first = if self.by_rank { 1 << 24 } else { 0 };
        self.last = self.last.max(first) + 1;
        self.last
    }
}

/// The index of the group that keeps a row's number. `None` if no group has tasks of the row.
fn heir(row: &Row, groups: &[Group], by_rank: bool) -> Option<usize> {
    let shared = |group: &Group| group.tasks.intersection(&row.group.tasks).first();
    let heirs = groups.iter().enumerate().filter_map(|(at, group)| {
        // The id of a rank cannot be given to a combined row.
        if by_rank && group.folded.is_some() != row.group.folded.is_some() {
            return None;
        }
        let first: TaskId = shared(group)?;
        Some((group.standing.is_none(), first, at))
    });
    heirs.min().map(|(_, _, at)| at)
}
