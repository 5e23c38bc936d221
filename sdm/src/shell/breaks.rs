//! The breakpoints of a session: numbers belong to the front-end.

use std::collections::BTreeMap;

use sdm_debug::reply::BreakpointPlace;
use sdm_idset::IdSet;

use crate::commands::Point;
use crate::view::BreakRow;

/// All breakpoints, by number.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    rows: Vec<BreakRow>,
    points: BTreeMap<u32, Point>,
    last: u32,
    /// True where breakpoints are kept whose place is not loaded yet.
    pub(super) pending: bool,
}

impl Breaks {
    /// The number of the next one.
    pub(super) fn next_number(&self) -> u32 {
        self.last + 1
    }

    /// The number of the last one made; 0 before there was one.
    pub(super) fn last_number(&self) -> u32 {
        self.last
    }

    /// Keeps a new one.
    pub(super) fn add(&mut self, number: u32, point: Point, tasks: IdSet) {
        self.last = self.last.max(number);
        self.rows.push(BreakRow {
            number,
            tasks,
            location: point.location(),
            condition: point.condition().map(str::to_owned),
            temporary: point.is_temporary(),
            enabled: true,
            pending: IdSet::new(),
            places: Vec::new(),
            hits: 0,
        });
        self.points.insert(number, point);
    }

    /// How one was made, changes included.
    pub(super) fn point(&self, number: u32) -> Option<&Point> {
        self.points.get(&number)
    }

    /// One of them is another now.
    pub(super) fn change(&mut self, number: u32, change: impl Fn(&mut Point)) {
        let Some(point) = self.points.get_mut(&number) else {
            return;
        };
        change(point);
        let condition = point.condition().map(str::to_owned);
        if let Some(row) = self.find(number) {
            row.condition = condition;
        }
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
        if self.find(number).is_none() {
            self.points.remove(&number);
        }
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
