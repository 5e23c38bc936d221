//! The breakpoints that a client has set: their numbers, and their locations.

use std::collections::BTreeMap;

use sdm_debug::Command;
use sdm_debug::command::{CatchEvent, PointSpec};
use sdm_debug::reply::BreakpointPlace;
use sdm_idset::{IdSet, TaskId, set_text};
use sdm_mpi::symbols::ABORT;
use serde_json::{Value, json};

/// Maximum number of breakpoints of one client.
pub(crate) const POINTS_MAX: usize = 4096;

/// A breakpoint as the client sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// The request; its number is the client's too.
    pub(crate) spec: PointSpec,
    /// Tasks in which the breakpoint has a location.
    bound: IdSet,
    /// The line of the breakpoint's location; 0 if unknown.
    line: u32,
    /// The reason why the breakpoint has no location, or not in all tasks. `None` if no reason is known.
    pub(crate) complaint: Option<String>,
    /// A message with the paths at which the program has files of this name, shown while the breakpoint has no
    /// location. `None` if no such file was found.
    pub(crate) elsewhere: Option<String>,
    /// The tasks for which the breakpoint is meant; `None` for all.
    meant: Option<IdSet>,
    /// Tasks in which the breakpoint is disabled.
    off: IdSet,
}

/// A breakpoint to be set again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Again {
    /// The breakpoint.
    pub(crate) spec: PointSpec,
    /// The tasks for which the breakpoint is meant; `None` for all.
    pub(crate) meant: Option<IdSet>,
    /// Tasks in which the breakpoint is disabled.
    pub(crate) off: IdSet,
}

/// The changes that lead to the client's new list of one group.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Numbers of the breakpoints to delete.
    pub(crate) deleted: Vec<u32>,
    /// Breakpoints to insert.
    pub(crate) inserted: Vec<PointSpec>,
    /// Breakpoints of which only the condition changes: number and condition.
    pub(crate) conditions: Vec<(u32, Option<String>)>,
}

impl Plan {
    /// The commands that change and insert breakpoints, each with the breakpoint's number.
    pub(crate) fn commands(self) -> impl Iterator<Item = (u32, Command)> {
        let changes = self
            .conditions
            .into_iter()
            .map(|(number, condition)| (number, Command::BreakCondition { number, condition }));
        let inserts = self.inserted.into_iter();
        changes.chain(inserts.map(|spec| (spec.number(), insert(spec))))
    }
}

/// All breakpoints, by group: a source file, `functions`, `instructions` and others.
#[derive(Debug, Default)]
pub(crate) struct Points {
    groups: BTreeMap<String, Vec<Point>>,
    last: u32,
    /// The filters of [`ENDING_FILTERS`] that are switched off, so that tasks run on at such stops.
    pub(crate) passed: Vec<&'static str>,
}

/// Size of each client's range of breakpoint numbers, if there are several clients.
const NUMBERS_OF_A_CLIENT: u32 = 1 << 20;

impl Points {
    /// The breakpoints of one among several clients, with a number range of their own.
    pub(crate) fn of_client(number: u32) -> Self {
        Self {
            last: number.saturating_mul(NUMBERS_OF_A_CLIENT),
            ..Self::default()
        }
    }

    /// Replaces the breakpoints of a group; returns the changes to make.
    pub(crate) fn plan(&mut self, group: &str, wanted: Vec<PointSpec>) -> Plan {
        let mut plan = Plan::default();
        let mut before = self.groups.remove(group).unwrap_or_default();
        let others: usize = self.groups.values().map(Vec::len).sum();
        let mut now = Vec::new();
        for mut spec in wanted.into_iter().take(POINTS_MAX.saturating_sub(others)) {
            let same = |known: &Point| {
                !known.is_refused() && unconditional(&known.spec) == unconditional(&spec)
            };
            if let Some(at) = before.iter().position(same) {
                let mut point = before.remove(at);
                let condition = std::mem::take(fields(&mut spec).1);
                let (number, known) = fields(&mut point.spec);
                if *known != condition {
                    plan.conditions.push((*number, condition.clone()));
                    *known = condition;
                }
                now.push(point);
                continue;
            }
            self.last += 1;
            *fields(&mut spec).0 = self.last;
            plan.inserted.push(spec.clone());
            now.push(Point::new(spec, None));
        }
        plan.deleted = before.iter().map(Point::number).collect();
        if !now.is_empty() {
            self.groups.insert(group.to_owned(), now);
        }
        plan
    }

    /// True if there are no breakpoints.
    pub(crate) fn are_none(&self) -> bool {
        self.groups.values().all(Vec::is_empty)
    }

    /// The names of all groups.
    pub(crate) fn group_names(&self) -> Vec<String> {
        self.groups.keys().cloned().collect()
    }

    /// The group's breakpoints in the client's order.
    pub(crate) fn group(&self, group: &str) -> &[Point] {
        self.groups.get(group).map_or(&[], Vec::as_slice)
    }

    /// Stores a message about the paths at which the program has the group's file.
    pub(crate) fn set_elsewhere(&mut self, group: &str, text: &str) {
        for point in self.groups.get_mut(group).into_iter().flatten() {
            point.elsewhere = Some(text.to_owned());
        }
    }

    /// The breakpoint with this number; `None` if there is none.
    pub(crate) fn find(&mut self, number: u32) -> Option<&mut Point> {
        let mut all = self.groups.values_mut().flatten();
        all.find(|point| point.number() == number)
    }

    /// The `reason` in the `stopped` event for a stop at the breakpoint with this number.
    pub(crate) fn reason(&self, number: u32) -> &'static str {
        let is_in = |group| {
            let mut points = self.group(group).iter();
            points.any(|point| point.number() == number)
        };
        match () {
            () if is_in(FUNCTIONS) => "function breakpoint",
            () if is_in(INSTRUCTIONS) => "instruction breakpoint",
            () => "breakpoint",
        }
    }

    /// A number for an internal breakpoint, which the client does not see.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Adds a breakpoint that a console line has set, for these tasks; `None` for all.
    pub(crate) fn adopt(&mut self, spec: PointSpec, meant: Option<IdSet>) {
        self.last = self.last.max(spec.number());
        let group = self.groups.entry(CONSOLE.to_owned()).or_default();
        group.push(Point::new(spec, meant));
    }

    /// Removes a breakpoint from these tasks. Returns true if no other task has it, so that it is deleted.
    pub(crate) fn remove(&mut self, number: u32, tasks: &IdSet) -> bool {
        let Some(point) = self.find(number) else {
            return false;
        };
        let meant = point.meant.as_ref().unwrap_or(&point.bound);
        point.meant = Some(meant.difference(tasks));
        point.bound.subtract(tasks);
        if !point.bound.is_empty() {
            return false;
        }
        for points in self.groups.values_mut() {
            points.retain(|point| point.number() != number);
        }
        true
    }

    /// Replaces the condition of a breakpoint.
    pub(crate) fn set_condition(&mut self, number: u32, condition: Option<&String>) {
        if let Some(point) = self.find(number) {
            *fields(&mut point.spec).1 = condition.cloned();
        }
    }

    /// Enables or disables a breakpoint in these tasks.
    pub(crate) fn switch(&mut self, number: u32, tasks: &IdSet, on: bool) {
        if let Some(point) = self.find(number) {
            match on {
                true => point.off.subtract(tasks),
                false => point.off.union_with(tasks),
            }
        }
    }

    /// Sets the ignore count of a breakpoint or watchpoint. Changes no catchpoint.
    pub(crate) fn set_ignored(&mut self, number: u32, count: u32) {
        match self.find(number).map(|point| &mut point.spec) {
            Some(PointSpec::Break(spec)) => spec.ignore = count,
            Some(PointSpec::Watch(spec)) => spec.ignore = count,
            Some(PointSpec::Catch(_)) | None => {}
        }
    }

    /// Sets the gdb commands of a breakpoint. Changes no watchpoint or catchpoint.
    pub(crate) fn set_commands(&mut self, number: u32, lines: &[String]) {
        if let Some(PointSpec::Break(spec)) = self.find(number).map(|point| &mut point.spec) {
            spec.commands = lines.to_vec();
        }
    }

    /// Handles a hit of a breakpoint by these tasks. Returns true if the breakpoint was temporary and is now deleted.
    pub(crate) fn hit(&mut self, number: u32, tasks: &IdSet) -> bool {
        let once = self.find(number).is_some_and(|point| match &point.spec {
            PointSpec::Break(spec) => spec.temporary,
            PointSpec::Catch(spec) => spec.temporary,
            PointSpec::Watch(_) => false,
        });
        once && self.remove(number, tasks)
    }

    /// All breakpoints, each with the tasks in which it has a location.
    pub(crate) fn all(&self) -> Vec<(PointSpec, IdSet)> {
        let all = self.groups.values().flatten();
        let mut all: Vec<_> = all
            .map(|point| (point.spec.clone(), point.bound.clone()))
            .collect();
        all.sort_by_key(|(spec, _)| spec.number());
        all
    }

    /// The last assigned number.
    pub(crate) fn last_number(&self) -> u32 {
        self.last
    }

    /// The numbers of all breakpoints.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let all = self.groups.values().flatten();
        all.map(Point::number).collect()
    }

    /// All breakpoints, to be set again: none has a location now.
    pub(crate) fn begin_anew(&mut self) -> Vec<Again> {
        let mut again = Vec::new();
        for point in self.groups.values_mut().flatten() {
            point.bound = IdSet::new();
            point.complaint = None;
            again.push(Again {
                spec: point.spec.clone(),
                meant: point.meant.clone(),
                off: point.off.clone(),
            });
        }
        again.sort_by_key(|again| again.spec.number());
        again
    }

    /// Records new tasks that have the breakpoints of task `like`.
    pub(crate) fn join(&mut self, like: TaskId, tasks: &IdSet) {
        for point in self.groups.values_mut().flatten() {
            if point.bound.contains(like) {
                point.bound.union_with(tasks);
                if let Some(meant) = &mut point.meant {
                    meant.union_with(tasks);
                }
            }
        }
    }
}

/// The group of function breakpoints.
pub(crate) const FUNCTIONS: &str = "functions";

/// The group of instruction breakpoints.
pub(crate) const INSTRUCTIONS: &str = "instructions";
/// The group of data breakpoints.
pub(crate) const DATA: &str = "data";
/// The group of breakpoints that exception filters set: at exceptions, signals, forks and execs.
pub(crate) const EXCEPTIONS: &str = "exceptions";

/// The group of the breakpoints that were set by console lines.
pub(crate) const CONSOLE: &str = "console";

/// An exception filter that editors offer: its name, its label, and a function that makes the event.
type Filter = (&'static str, &'static str, fn() -> CatchEvent);

/// The exception filters that set a catchpoint; further ones are [`ENDING_FILTERS`].
pub(crate) const EXCEPTION_FILTERS: [Filter; 5] = [
    ("throw", "C++: throw", || CatchEvent::Throw),
    ("catch", "C++: catch", || CatchEvent::Catch),
    ("signals", "Any signal", || CatchEvent::Signal(Vec::new())),
    ("fork", "fork", || CatchEvent::Fork),
    ("exec", "exec", || CatchEvent::Exec),
];

/// Built-in stops before a program's end: the filter's name, its label, and the text in the task's stop.
pub(crate) const ENDING_FILTERS: [(&str, &str, &str); 3] = [
    ("abort", "abort()", "abort"),
    ("mpi_abort", ABORT, ABORT),
    (
        "early_exit",
        "Exit before MPI_Finalize",
        "_exit before MPI_Finalize",
    ),
];

/// The number and the condition of a breakpoint.
fn fields(spec: &mut PointSpec) -> (&mut u32, &mut Option<String>) {
    match spec {
        PointSpec::Break(spec) => (&mut spec.number, &mut spec.condition),
        PointSpec::Watch(spec) => (&mut spec.number, &mut spec.condition),
        PointSpec::Catch(spec) => (&mut spec.number, &mut spec.condition),
    }
}

/// The specification of a breakpoint without the number and the condition.
fn unconditional(spec: &PointSpec) -> PointSpec {
    let mut spec = spec.clone();
    let (number, condition) = fields(&mut spec);
    *number = 0;
    *condition = None;
    spec
}

/// The command that inserts a breakpoint.
pub(crate) fn insert(spec: PointSpec) -> Command {
    match spec {
        PointSpec::Break(spec) => Command::BreakInsert(spec),
        PointSpec::Watch(spec) => Command::WatchInsert(spec),
        PointSpec::Catch(spec) => Command::CatchInsert(spec),
    }
}

/// True for a command that inserts a breakpoint.
pub(crate) fn is_insert(command: &Command) -> bool {
    matches!(
        command,
        Command::BreakInsert(_) | Command::WatchInsert(_) | Command::CatchInsert(_)
    )
}

impl Point {
    fn new(spec: PointSpec, meant: Option<IdSet>) -> Self {
        Self {
            spec,
            bound: IdSet::new(),
            line: 0,
            complaint: None,
            elsewhere: None,
            meant,
            off: IdSet::new(),
        }
    }

    /// The number, which is the client's too.
    pub(crate) fn number(&self) -> u32 {
        self.spec.number()
    }

    /// True if the breakpoint has no location in any task, and no reason for that is known.
    pub(crate) fn is_lost(&self) -> bool {
        self.bound.is_empty() && self.complaint.is_none()
    }

    /// True if gdb has refused the breakpoint, so that no task has it.
    fn is_refused(&self) -> bool {
        self.bound.is_empty() && self.complaint.is_some()
    }

    /// Records that the breakpoint is in no task any more; returns those that had it.
    pub(crate) fn unbind(&mut self) -> IdSet {
        std::mem::take(&mut self.bound)
    }

    /// Records the breakpoint's location in these tasks, or that the breakpoint is pending in them.
    pub(crate) fn placed(&mut self, tasks: &IdSet, place: &BreakpointPlace) {
        if place.pending {
            self.bound.subtract(tasks);
            return;
        }
        self.bound.union_with(tasks);
        if let Some((_, _, line)) = place.places.first() {
            self.line = *line;
        }
    }

    /// The breakpoint in the form of the protocol; `all` are the tasks that could have it.
    pub(crate) fn shown(&self, all: &IdSet, line_base: i64) -> Value {
        let verified = !self.bound.is_empty();
        let mut shown = json!({"id": self.number(), "verified": verified});
        if verified && self.line > 0 {
            shown["line"] = json!(i64::from(self.line) - 1 + line_base);
        }
        let message = match (&self.complaint, verified) {
            (Some(complaint), _) => Some(complaint.clone()),
            (None, false) if all.is_empty() => Some("pending until the ranks start".to_owned()),
            (None, false) if self.elsewhere.is_some() => self.elsewhere.clone(),
            (None, false) => Some("pending until its location is loaded".to_owned()),
            (None, true) if !all.is_subset(&self.bound) => {
                let bound = set_text(&self.bound, 40);
                let (bound_count, count) = (self.bound.len(), all.len());
                Some(format!("set on {bound_count} of {count} ranks: {bound}"))
            }
            _ => None,
        };
        if let Some(message) = message {
            shown["message"] = json!(message);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use sdm_debug::command::BreakSpec;

    use super::*;

    fn at(location: &str, condition: Option<&str>) -> PointSpec {
        PointSpec::Break(BreakSpec {
            location: location.to_owned(),
            condition: condition.map(str::to_owned),
            ..BreakSpec::default()
        })
    }

    #[test]
    fn only_changed_breakpoints_are_updated() {
        let mut points = Points::default();
        let plan = points.plan("a.c", vec![at("a.c:1", None), at("a.c:2", None)]);
        let numbers =
            |plan: &Plan| -> Vec<u32> { plan.inserted.iter().map(PointSpec::number).collect() };
        assert_eq!(numbers(&plan), [1, 2]);
        let plan = points.plan("a.c", vec![at("a.c:2", Some("x")), at("a.c:3", None)]);
        assert_eq!((numbers(&plan), &*plan.deleted), (vec![3], &[1][..]));
        assert_eq!(plan.conditions, [(2, Some("x".to_owned()))]);
        let now: Vec<u32> = points.group("a.c").iter().map(Point::number).collect();
        assert_eq!(now, [2, 3]);
        assert_eq!(points.plan("a.c", vec![]).deleted, [2, 3]);
    }
}
