//! The breakpoints of a session: numbers belong to the front-end.

use sdm_debug::reply::BreakpointPlace;
use sdm_idset::IdSet;

use crate::view::BreakRow;

/// All breakpoints, by number.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    rows: Vec<BreakRow>,
    last: u32,
    /// True where breakpoints are kept whose place is not loaded yet.
    pub(super) pending: bool,
}

impl Breaks {
    /// The number of the next one.
    pub(super) fn next_number(&self) -> u32 {
        self.last + 1
    }

    /// Keeps a new one.
    pub(super) fn add(&mut self, row: BreakRow) {
        self.last = self.last.max(row.number);
        self.rows.push(row);
    }

    /// All of them, rising.
    pub(super) fn rows(&self) -> &[BreakRow] {
        &self.rows
    }

    /// One of them.
    pub(super) fn find(&mut self, number: u32) -> Option<&mut BreakRow> {
        self.rows.iter_mut().find(|row| row.number == number)
    }

    /// It no longer stands on these; true where it is gone altogether.
    pub(super) fn remove(&mut self, number: u32, tasks: &IdSet) {
        if let Some(row) = self.find(number) {
            row.tasks.subtract(tasks);
            row.pending.subtract(tasks);
        }
        self.rows.retain(|row| !row.tasks.is_empty());
    }

    /// Tasks have stopped at it.
    pub(super) fn hit(&mut self, number: u32, tasks: &IdSet) {
        let Some(row) = self.find(number) else {
            return;
        };
        row.hits += tasks.len();
        if row.temporary {
            self.remove(number, tasks);
        }
    }

    /// A pending one has found its place.
    pub(super) fn placed(&mut self, at: &BreakpointPlace, tasks: &IdSet) {
        if let Some(row) = self.find(at.number) {
            if at.pending {
                row.pending.union_with(tasks);
            } else {
                row.pending.subtract(tasks);
            }
            if row.places.is_empty() {
                row.places.clone_from(&at.places);
            }
        }
    }
}
