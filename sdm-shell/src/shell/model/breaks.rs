//! The breakpoints of a session, with the front-end's numbers.
use std::collections::BTreeMap;

use sdm_debug::command::{PointSpec, StartPoint};
use sdm_debug::reply::BreakpointPlace;
use sdm_idset::{IdSet, TaskId};
use sdm_view::item::BreakRow;

/// All breakpoints, by number.
#[derive(Debug, Default)]
pub(crate) struct Breaks {
    rows: Vec<BreakRow>,
    points: BTreeMap<u32, PointSpec>,
    /// Locations of the breakpoints that were set relative to the tasks' current position, per set of
    /// tasks.
    found: BTreeMap<u32, Vec<(IdSet, String)>>,
    /// The tasks in which each breakpoint is disabled.
    disabled: BTreeMap<u32, IdSet>,
    last: u32,
    /// Whether breakpoints with an unresolved location become pending. None: the user is asked.
    pub(crate) pending: Option<bool>,
}

impl Breaks {
    /// The number of the next breakpoint.
    pub(crate) fn next_number(&self) -> u32 {
        self.last + 1
    }

    /// Reserves the breakpoint numbers up to this one for another front-end of the session.
    pub(crate) fn reserve(&mut self, last: u32) {
        self.last = self.last.max(last);
    }

    /// The highest breakpoint number that is used or reserved; 0 before the first.
    pub(crate) fn last_number(&self) -> u32 {
        self.last
    }

    /// Adds a breakpoint with this number, for these tasks.
    pub(crate) fn add(&mut self, number: u32, point: PointSpec, tasks: IdSet) {
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
            hits: Vec::new(),
            commands: point.commands().to_vec(),
        });
        self.points.insert(number, point);
    }

    /// Changes the specification of a breakpoint.
    pub(crate) fn change(&mut self, number: u32, change: impl Fn(&mut PointSpec)) {
        let Some(point) = self.points.get_mut(&number) else {
            return;
        };
        change(point);
        let condition = point.condition().map(str::to_owned);
        let commands = point.commands().to_vec();
        if let Some(row) = self.find(number) {
            row.commands = commands;
            row.condition = condition;
        }
    }

    /// All breakpoints, in ascending order.
    pub(crate) fn rows(&self) -> &[BreakRow] {
        &self.rows
    }

    /// The breakpoint with this number; None if there is none.
    pub(crate) fn find(&mut self, number: u32) -> Option<&mut BreakRow> {
        self.rows.iter_mut().find(|row| row.number == number)
    }

    /// The breakpoints at a location: as it was entered, or `FILE:LINE` of a resolved one.
    pub(crate) fn at(&self, place: &str) -> Vec<u32> {
        let is_here = |(_, file, line): &(String, String, u32)| {
            let full = format!("{file}:{line}");
            let folder = full.strip_suffix(place).filter(|_| place.contains(':'));
            folder.is_some_and(|it| it.is_empty() || it.ends_with('/'))
        };
        let is_at = |row: &&BreakRow| row.location == place || row.places.iter().any(is_here);
        self.rows
            .iter()
            .filter(is_at)
            .map(|row| row.number)
            .collect()
    }

    /// True for a watchpoint.
    pub(crate) fn is_watchpoint(&self, number: u32) -> bool {
        matches!(self.points.get(&number), Some(PointSpec::Watch(_)))
    }

    /// Removes a breakpoint from these tasks, and its records once no task has it.
    pub(crate) fn remove(&mut self, number: u32, tasks: &IdSet) {
        if let Some(row) = self.find(number) {
            row.tasks.subtract(tasks);
            row.pending.subtract(tasks);
        }
        self.rows.retain(|row| !row.tasks.is_empty());
        if self.find(number).is_none() {
            self.points.remove(&number);
            self.found.remove(&number);
            self.disabled.remove(&number);
        }
    }

    /// Removes the watchpoints that these tasks no longer have: gdb removes one when its frame returns.
    pub(crate) fn keep_watchpoints(&mut self, tasks: &IdSet, is_there: impl Fn(u32) -> bool) {
        let numbers = self.rows.iter().map(|row| row.number);
        let gone = numbers.filter(|number| self.is_watchpoint(*number) && !is_there(*number));
        for number in gone.collect::<Vec<_>>() {
            self.remove(number, tasks);
        }
    }

    /// Enables or disables a breakpoint in these tasks.
    pub(crate) fn enable(&mut self, number: u32, tasks: &IdSet, enabled: bool) {
        let disabled = self.disabled.entry(number).or_default();
        if enabled {
            disabled.subtract(tasks);
        } else {
            disabled.union_with(tasks);
        }
        let disabled = disabled.clone();
        if let Some(row) = self.find(number) {
            row.enabled = !row.tasks.is_subset(&disabled);
        }
    }

    /// The specifications that create a breakpoint again, independent of the tasks' position. Each has its tasks, and
    /// whether the breakpoint is enabled in them.
    pub(crate) fn again(&self, row: &BreakRow) -> Vec<(IdSet, PointSpec, bool)> {
        let Some(point) = self.points.get(&row.number) else {
            return Vec::new();
        };
        let known = self.found.get(&row.number);
        let known = known.cloned().unwrap_or_default();
        let found = IdSet::union_all(known.iter().map(|(tasks, _)| tasks));
        let found_at = |(tasks, location): (IdSet, String)| {
            let mut point = point.clone();
            if let PointSpec::Break(spec) = &mut point {
                spec.location = location;
            }
            (tasks, point)
        };
        let rest = (row.tasks.difference(&found), point.clone());
        let off = self.disabled.get(&row.number).cloned().unwrap_or_default();
        let parts = known.into_iter().map(found_at).chain([rest]);
        let mut again = Vec::new();
        for (tasks, point) in parts {
            let tasks = tasks.intersection(&row.tasks);
            let parts = [
                (tasks.difference(&off), point.clone(), true),
                (tasks.intersection(&off), point, false),
            ];
            again.extend(parts.into_iter().filter(|(tasks, ..)| !tasks.is_empty()));
        }
        again
    }

    /// All breakpoints, for insertion at the start of a program.
    pub(crate) fn start_points(&self) -> Vec<StartPoint> {
        let rows = self.rows.iter();
        let start_points = rows.flat_map(|row| {
            let again = self.again(row).into_iter();
            again.map(|(tasks, point, enabled)| StartPoint {
                tasks,
                spec: point.clone().numbered(row.number),
                enabled,
            })
        });
        start_points.collect()
    }

    /// Resets the hits for another job, and removes all breakpoints from tasks outside of `tasks`.
    pub(crate) fn begin_anew(&mut self, tasks: &IdSet) {
        for row in &mut self.rows {
            row.hits.clear();
        }
        let gone = |row: &BreakRow| (row.number, row.tasks.difference(tasks));
        let gone: Vec<_> = self.rows.iter().map(gone).collect();
        for (number, gone) in gone {
            self.remove(number, &gone);
        }
    }

    /// Adds these tasks to all breakpoints of another task.
    pub(crate) fn copy(&mut self, from: u32, tasks: &IdSet) {
        let from = TaskId(from);
        for row in self.rows.iter_mut().filter(|it| it.tasks.contains(from)) {
            row.tasks.union_with(tasks);
        }
        let off = self.disabled.values_mut();
        off.filter(|it| it.contains(from))
            .for_each(|it| it.union_with(tasks));
        let found = self.found.values_mut().flatten();
        found
            .filter(|(known, _)| known.contains(from))
            .for_each(|(known, _)| known.union_with(tasks));
    }

    /// Counts a stop of these tasks at a breakpoint. A temporary breakpoint is removed from them.
    pub(crate) fn hit(&mut self, number: u32, tasks: &IdSet) {
        let Some(row) = self.find(number) else {
            return;
        };
        count(&mut row.hits, tasks);
        if row.temporary {
            self.remove(number, tasks);
        }
    }

    /// Raises the hit counts of these tasks to this number, also for hits that did not stop. A lower number changes
    /// nothing, because a gdb that has replaced another one has counted fewer hits.
    pub(crate) fn raise_hits(&mut self, number: u32, tasks: &IdSet, times: u64) {
        let Some(row) = self.find(number) else {
            return;
        };
        let mut fewer = tasks.intersection(&row.tasks);
        for (known, of) in &mut row.hits {
            match *known >= times {
                true => fewer.subtract(of),
                false => of.subtract(&fewer),
            }
        }
        if times > 0 && !fewer.is_empty() {
            row.hits.push((times, fewer));
        }
        row.hits.retain(|(_, tasks)| !tasks.is_empty());
        row.hits.sort_unstable_by_key(|(times, _)| *times);
    }

    /// Records that a breakpoint was resolved in these tasks, with its locations, or that it is pending in them.
    pub(crate) fn placed(&mut self, at: &BreakpointPlace, tasks: &IdSet) {
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
        let relative = self
            .points
            .get(&at.number)
            .is_some_and(PointSpec::is_relative);
        if let Some((_, file, line)) = at.places.first().filter(|_| relative) {
            let found = self.found.entry(at.number).or_default();
            sdm_view::coalesce::join(found, tasks, format!("{file}:{line}"));
        }
    }
}

/// Counts one more hit for each of these tasks.
fn count(hits: &mut Vec<(u64, IdSet)>, tasks: &IdSet) {
    let mut rest = tasks.clone();
    let mut more = Vec::new();
    for (times, known) in hits.iter_mut() {
        let again = known.intersection(&rest);
        known.subtract(&again);
        rest.subtract(&again);
        more.push((*times + 1, again));
    }
    more.push((1, rest));
    for (times, tasks) in more.into_iter().filter(|(_, tasks)| !tasks.is_empty()) {
        match hits.iter_mut().find(|(known, _)| *known == times) {
            Some((_, known)) => known.union_with(&tasks),
            None => hits.push((times, tasks)),
        }
    }
    hits.retain(|(_, tasks)| !tasks.is_empty());
    hits.sort_unstable_by_key(|(times, _)| *times);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_hits_raise_the_hit_count_and_never_lower_it() {
        let mut breaks = Breaks::default();
        let point = PointSpec::Break(sdm_debug::command::BreakSpec::default());
        breaks.add(1, point, "0-3".parse().unwrap());
        breaks.hit(1, &"0-3".parse().unwrap());
        breaks.hit(1, &"3".parse().unwrap());
        breaks.raise_hits(1, &"0-1".parse().unwrap(), 100);
        breaks.raise_hits(1, &"2-3".parse().unwrap(), 1);
        breaks.raise_hits(1, &"0-1".parse().unwrap(), 100);
        let text: Vec<_> = breaks.rows()[0]
            .hits
            .iter()
            .map(|(n, set)| format!("{n}: {set}"))
            .collect();
        assert_eq!(text, ["1: 2", "2: 3", "100: 0-1"]);
    }

    #[test]
    fn breakpoints_at_a_location_are_found() {
        let mut breaks = Breaks::default();
        for (number, location) in [(1, "exchange"), (2, "halo.c:40"), (3, "*0x40")] {
            let point = PointSpec::Break(sdm_debug::command::BreakSpec {
                location: location.to_owned(),
                ..Default::default()
            });
            breaks.add(number, point, "0-3".parse().unwrap());
        }
        let place = |number, function: &str, line| BreakpointPlace {
            number,
            pending: false,
            places: vec![(function.to_owned(), "/src/halo.c".to_owned(), line)],
        };
        breaks.placed(&place(1, "exchange(int)", 31), &"0-3".parse().unwrap());
        breaks.placed(&place(2, "exchange(int)", 40), &"0-3".parse().unwrap());
        for (said, numbers) in [
            ("exchange", &[1][..]),
            ("halo.c:40", &[2]),
            ("halo.c:31", &[1]),
            ("lo.c:31", &[]),
            ("*0x40", &[3]),
            ("31", &[]),
        ] {
            assert_eq!(breaks.at(said), numbers, "{said}");
        }
    }

    #[test]
    fn hits_are_counted_for_each_task() {
        let mut hits = Vec::new();
        for tasks in ["0-3", "0-3", "2-5", "3", "7"] {
            count(&mut hits, &tasks.parse().unwrap());
        }
        let text: Vec<_> = hits.iter().map(|(n, set)| format!("{n}: {set}")).collect();
        assert_eq!(text, ["1: 4-5,7", "2: 0-1", "3: 2", "4: 3"]);
    }
}
