//! The front-end's breakpoints, watchpoints and catchpoints by its numbers and by gdb's, and SDM's internal ones.

use std::collections::BTreeMap;

use sdm_check::Suppressions;
use sdm_debug::command::{PointSpec, WatchSpec};
use sdm_debug::reply::{BreakpointPlace, StopReason};
use sdm_debug::{Event, Failure, FailureCode};

use super::activity::Began;
use super::internal::{Internal, Leaks, Mpi};
use super::scope::Scope;
use crate::text::base_name;
use sdm_mi::Results;

/// The breakpoints of one task in its gdb.
#[derive(Default)]
pub(crate) struct Breakpoints {
    /// The front-end's breakpoints in the order of their creation.
    pub(crate) user: Vec<Point>,
    /// SDM's internal breakpoints: gdb's number, the purpose, and whether it has a location.
    internal: Vec<(u32, Internal, bool)>,
    /// The program's use of MPI, as SDM's breakpoints have recorded it.
    pub(crate) mpi: Mpi,
    /// State of LeakSanitizer in the program.
    pub(crate) leaks: Leaks,
    /// True once SDM's internal breakpoints are inserted.
    pub(crate) armed: bool,
    /// Suppressions for the check of the use of MPI; `None` without that check.
    pub(crate) check: Option<Suppressions>,
    /// True once the breakpoint for the check of the use of MPI is inserted.
    pub(crate) is_check_armed: bool,
    /// gdb's number of the breakpoint that was hit last; `None` if none was hit at this stop, or it was deleted.
    pub(crate) last_hit: Option<u32>,
    /// All breakpoints hit since the program ran last: of several at one place a stop names only the first.
    pub(crate) met: Vec<BreakpointHit>,
    /// The counts of each of gdb's breakpoint numbers.
    counts: BTreeMap<u32, Counts>,
    /// gdb's error in the evaluation of a breakpoint condition; `None` without an error. gdb stops the program at such
    /// an error, and reports a hit of that breakpoint next.
    pub(crate) untested: Option<String>,
    /// The front-end's temporary breakpoints at which the task has stopped, to be deleted.
    pub(crate) ended: Vec<u32>,
    /// The frame in which the last step, `finish` or `until` began, if a breakpoint can interrupt it, or if the way out
    /// of a runtime can end it. `None` otherwise.
    pub(crate) began: Option<Began>,
    /// gdb's numbers of new breakpoints, while a command-line command is making some; `None` at other times.
    pub(crate) made: Option<Vec<u32>>,
}

/// The counts of a breakpoint that gdb keeps.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    hits: u64,
    /// Number of further hits that gdb will ignore.
    ignore: u64,
}

/// A breakpoint that the program has hit.
#[derive(Clone, Debug)]
pub(crate) struct BreakpointHit {
    /// gdb's number of the breakpoint.
    pub(crate) number: u32,
    /// Owner of the breakpoint; `None` if it has none. It is looked up at once, because gdb next reports a temporary
    /// breakpoint as deleted.
    pub(crate) owner: Option<Owner>,
    /// True if gdb has ignored the hit, because of the ignore count.
    pub(crate) is_passed: bool,
    /// gdb's ignore count after the hit.
    pub(crate) ignore: u64,
    /// gdb's error in the evaluation of the condition, so that it was no hit; `None` without an error.
    pub(crate) untested: Option<String>,
    /// The commands of the breakpoint that are to be carried out.
    pub(crate) commands: Vec<String>,
}

/// A breakpoint of the front-end with later changes, to be inserted before a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedBreakpoint {
    /// The front-end's request.
    pub spec: PointSpec,
    /// False if the breakpoint is disabled.
    pub enabled: bool,
}

/// A breakpoint of the front-end in gdb.
pub(crate) struct Point {
    pub(crate) kept: SavedBreakpoint,
    /// gdb's numbers of the breakpoint; several for a regular expression.
    pub(crate) numbers: Vec<u32>,
    /// True while gdb has no location for the breakpoint.
    pub(crate) pending: bool,
    /// The hit counts of a condition that the driver evaluates.
    pub(crate) judged: Judged,
}

/// The hits of a breakpoint whose condition the driver evaluates itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Number of hits with a true condition.
    pub(crate) hits: u64,
    /// Number of further hits with a true condition to ignore.
    pub(crate) ignore: u64,
    /// True if gdb has a condition that always holds, and the driver evaluates the user's.
    pub(crate) is_guarded: bool,
    /// True until gdb has the user's condition: the language of a pending breakpoint's location is not known yet.
    pub(crate) is_open: bool,
    /// Number of ignored hits whose condition gdb could not evaluate. As many hits with a true condition are still to
    /// be ignored.
    pub(crate) owed: u64,
    /// Number of hits that gdb has counted although it could not evaluate the condition.
    pub(crate) untested: u64,
    /// The last reported reason why its condition could not be evaluated.
    pub(crate) complaint: String,
}

/// The owner of one of gdb's breakpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The front-end's breakpoint with this number.
    User(u32),
    /// SDM's own breakpoint, for this purpose.
    Internal(Internal),
}

/// Maximum number of breakpoints of one task.
const BREAKPOINTS_MAX: usize = 4096;

impl Breakpoints {
    /// The front-end's breakpoints, for insertion in another run.
    pub(crate) fn kept(&self) -> Vec<SavedBreakpoint> {
        self.user.iter().map(|point| point.kept.clone()).collect()
    }

    /// The owner of gdb's breakpoint; `None` for one that was set at gdb's console.
    pub(crate) fn owner(&self, number: u32) -> Option<Owner> {
        let user = self
            .user
            .iter()
            .find(|point| point.numbers.contains(&number));
        let internal = self.internal.iter().find(|(known, ..)| *known == number);
        user.map(|point| Owner::User(point.kept.spec.number()))
            .or(internal.map(|(_, what, _)| Owner::Internal(*what)))
    }

    /// The front-end's request for its breakpoint with this number; `None` if there is none.
    pub(crate) fn spec(&self, number: u32) -> Option<&PointSpec> {
        let point = self.user.iter().find(|p| p.kept.spec.number() == number)?;
        Some(&point.kept.spec)
    }

    /// The owner of the last breakpoint hit since [`Breakpoints::forget_hits`]; `None` without such a hit or owner.
    pub(crate) fn last_hit(&self) -> Option<Owner> {
        self.owner(self.last_hit?)
    }

    /// The front-end's watchpoints that gdb named since [`Breakpoints::forget_hits`].
    pub(crate) fn hit_watches(&self) -> impl Iterator<Item = &WatchSpec> {
        let point = |met: &BreakpointHit| {
            let mut points = self.user.iter();
            points.find(|point| point.numbers.contains(&met.number))
        };
        let points = self.met.iter().filter_map(point);
        points.filter_map(|point| match &point.kept.spec {
            PointSpec::Watch(spec) => Some(spec),
            _ => None,
        })
    }

    /// Forgets which breakpoints were hit, as the program is resumed.
    pub(crate) fn forget_hits(&mut self) {
        self.last_hit = None;
        self.met.clear();
        self.untested = None;
    }

    /// Notes the counts in gdb's description of a breakpoint. Returns the last hit since the previous description;
    /// `None` without one. gdb does not report each hit that it ignores.
    pub(crate) fn note_counts(&mut self, breakpoint: &Results) -> Option<BreakpointHit> {
        let number = breakpoint.number("number")?;
        let counts = Counts {
            hits: breakpoint.number("times").unwrap_or(0),
            ignore: breakpoint.number("ignore").unwrap_or(0),
        };
        let before = self.counts.insert(number, counts).unwrap_or_default();
        let hits = counts.hits.saturating_sub(before.hits);
        let met = || BreakpointHit {
            number,
            owner: self.owner(number),
            is_passed: hits <= before.ignore.saturating_sub(counts.ignore),
            ignore: counts.ignore,
            untested: None,
            commands: self.commands(number),
        };
        (hits > 0).then(met)
    }

    /// True if the task may be resumed after a hit: a step that the breakpoint has interrupted must then be resumed.
    pub(crate) fn may_go_on(&self) -> bool {
        let goes_on = |point: &Point| match &point.kept.spec {
            PointSpec::Break(spec) if !spec.commands.is_empty() => true,
            spec => spec.condition().is_some(),
        };
        self.check.is_some() || self.user.iter().any(goes_on)
    }

    fn commands(&self, known: u32) -> Vec<String> {
        let point = self.user.iter().find(|it| it.numbers.contains(&known));
        match point.map(|point| &point.kept.spec) {
            Some(PointSpec::Break(spec)) => spec.commands.clone(),
            _ => Vec::new(),
        }
    }

    /// Number of further hits that gdb will ignore, of one of its breakpoints.
    pub(crate) fn ignore_of(&self, number: u32) -> u64 {
        self.counts.get(&number).map_or(0, |counts| counts.ignore)
    }

    /// Notes that gdb was given an ignore count.
    pub(crate) fn set_ignore(&mut self, number: u32, ignore: u64) {
        self.counts.entry(number).or_default().ignore = ignore;
    }

    /// True if an internal breakpoint of this kind has a location.
    pub(crate) fn is_placed(&self, what: Internal) -> bool {
        self.internal
            .iter()
            .any(|(_, known, placed)| *known == what && *placed)
    }

    /// Removes an internal breakpoint that is no longer wanted, and returns gdb's number; `None` if there is none.
    pub(crate) fn take_internal(&mut self, what: Internal) -> Option<u32> {
        let at = self
            .internal
            .iter()
            .position(|(_, known, _)| *known == what)?;
        Some(self.internal.remove(at).0)
    }

    /// Records an internal breakpoint that gdb has made.
    pub(crate) fn add_internal(&mut self, what: Internal, results: &Results) {
        let breakpoint = results.tuple("bkpt").unwrap_or(results);
        self.note_counts(breakpoint);
        if let Some(number) = breakpoint.number("number") {
            self.internal.push((number, what, !is_pending(breakpoint)));
        }
    }

    /// The front-end's breakpoint with this number.
    ///
    /// # Errors
    /// gdb has no breakpoint for it.
    pub(crate) fn find(&mut self, number: u32) -> Result<&mut Point, Failure> {
        let found = self
            .user
            .iter_mut()
            .find(|point| point.kept.spec.number() == number && !point.numbers.is_empty());
        found.ok_or_else(|| {
            Failure::new(FailureCode::NoSuchThing, format!("no breakpoint {number}"))
        })
    }

    /// Adds a breakpoint that gdb has made for the front-end, with gdb's numbers.
    pub(crate) fn add(&mut self, spec: PointSpec, numbers: Vec<u32>, pending: bool) {
        let kept = SavedBreakpoint {
            spec,
            enabled: true,
        };
        let ignore = match &kept.spec {
            PointSpec::Break(spec) => spec.ignore.into(),
            PointSpec::Watch(_) | PointSpec::Catch(_) => 0,
        };
        self.user.push(Point {
            kept,
            numbers,
            pending,
            judged: Judged {
                ignore,
                ..Judged::default()
            },
        });
    }

    /// The failure of an insertion under this number; `None` if the insertion is possible.
    pub(crate) fn refusal(&self, number: u32) -> Option<Failure> {
        if self
            .user
            .iter()
            .any(|point| point.kept.spec.number() == number)
        {
            let text = format!("breakpoint {number} exists already");
            return Some(Failure::new(FailureCode::BadCommand, text));
        }
        (self.user.len() >= BREAKPOINTS_MAX).then(|| {
            let text = format!("a rank can have at most {BREAKPOINTS_MAX} breakpoints");
            Failure::new(FailureCode::Limit, text)
        })
    }

    /// Handles gdb's notification of a breakpoint that was made without an MI command.
    pub(crate) fn created(&mut self, breakpoint: &Results) {
        if let Some(made) = &mut self.made {
            made.extend(breakpoint.number::<u32>("number"));
        }
    }

    /// Handles gdb's notification of a changed breakpoint. Returns the event to report; `None` if there is nothing to
    /// report.
    pub(crate) fn modified(
        &mut self,
        breakpoint: &Results,
        scope: Option<&Scope>,
    ) -> Option<Event> {
        let untested = self.untested.take();
        let number: u32 = breakpoint.number("number")?;
        let hits: u64 = breakpoint.number("times").unwrap_or(0);
        if let Some(met) = self.note_counts(breakpoint) {
            self.last_hit = Some(number);
            // Hits that gdb has passed come before.
            self.met.retain(|it| it.number != number);
            let point = self.user.iter_mut().find(|it| it.numbers.contains(&number));
            if let Some(point) = point.filter(|_| met.is_passed && untested.is_some()) {
                point.judged.owed += 1;
            }
            self.met.push(BreakpointHit { untested, ..met });
        }
        let placed = !is_pending(breakpoint);
        if let Some(entry) = self
            .internal
            .iter_mut()
            .find(|(known, ..)| *known == number)
        {
            entry.2 = placed;
            match entry.1 {
                Internal::Init => self.mpi.initialized |= hits > 0,
                Internal::Finalize => self.mpi.finalized |= hits > 0,
                Internal::Hold(_)
                | Internal::Exit
                | Internal::FatalError
                | Internal::MpichError
                | Internal::World
                | Internal::Found(_)
                | Internal::LeakCheck
                | Internal::Fork
                | Internal::Forked => {}
            }
            return None;
        }
        let point = self
            .user
            .iter_mut()
            .find(|point| point.numbers.contains(&number))?;
        let was_pending = std::mem::replace(&mut point.pending, !placed);
        let spec_number = point.kept.spec.number();
        (was_pending && placed)
            .then(|| Event::BreakpointPlaced(place_of(spec_number, breakpoint, scope)))
    }

    /// Deletes a watchpoint whose variable is gone, which gdb reports only after the stop. Returns the reason of that
    /// stop; `None` for another breakpoint.
    pub(crate) fn end_scope(&mut self, known: u32) -> Option<StopReason> {
        let Some(Owner::User(number)) = self.owner(known) else {
            return None;
        };
        let reason = match self.spec(number)? {
            PointSpec::Watch(WatchSpec { expression, .. }) => StopReason::WatchpointScope {
                number,
                expression: expression.clone(),
            },
            _ => return None,
        };
        self.deleted(known);
        Some(reason)
    }

    /// Handles gdb's notification of a deleted breakpoint.
    pub(crate) fn deleted(&mut self, number: u32) {
        self.internal.retain(|(known, ..)| *known != number);
        self.counts.remove(&number);
        self.last_hit = self.last_hit.filter(|met| *met != number);
        self.user.retain_mut(|point| {
            let before = point.numbers.len();
            point.numbers.retain(|known| *known != number);
            !point.numbers.is_empty() || before == 0
        });
    }
}

/// True if gdb knows no location for a breakpoint yet.
pub(crate) fn is_pending(breakpoint: &Results) -> bool {
    breakpoint.text("addr") == Some("<PENDING>") || breakpoint.value("pending").is_some()
}

/// The source locations of a breakpoint, only those of the task if it has a scope in a gdb of several tasks.
/// Addresses are left out, as they differ between tasks.
pub(crate) fn place_of(
    number: u32,
    breakpoint: &Results,
    scope: Option<&Scope>,
) -> BreakpointPlace {
    let pending = is_pending(breakpoint);
    let own = |location: &&Results| scope.is_none_or(|scope| scope.has_place(location));
    let locations = breakpoint.tuples("locations").filter(own);
    let mut places: Vec<(String, String, u32)> = locations.map(place).collect();
    if breakpoint.value("locations").is_none() && !pending {
        places.push(place(breakpoint));
    }
    BreakpointPlace {
        number,
        pending: places.is_empty(),
        places,
    }
}

fn place(location: &Results) -> (String, String, u32) {
    // Without debug information gdb reports `at="<abort+4>"`.
    let at = location.text("at").map(|at| at.trim_matches(['<', '>']));
    let function = location.text("func").or(at).unwrap_or_default();
    let file = location.text("file").map(base_name).unwrap_or_default();
    let line = location.number("line").unwrap_or(0);
    (function.to_owned(), file.to_owned(), line)
}

/// MI's field names for watchpoints.
const WATCH_NAMES: [&str; 3] = ["wpt", "hw-rwpt", "hw-awpt"];

/// gdb's number of the watchpoint in a record; `None` if the record has no watchpoint.
pub(crate) fn watch_number(results: &Results) -> Option<u32> {
    let named = WATCH_NAMES.iter().find_map(|name| results.tuple(name));
    named.and_then(|point| point.number("number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_mi::{Record, parse_line};

    fn breakpoint(line: &str) -> Results {
        let Record::Result { results, .. } = parse_line(line.as_bytes()) else {
            panic!("{line}");
        };
        results.tuple("bkpt").unwrap().clone()
    }

    fn check(line: &str, expect: &str) {
        check_within(None, line, expect);
    }

    fn check_within(scope: Option<&Scope>, line: &str, expect: &str) {
        let place = place_of(7, &breakpoint(line), scope);
        let places: Vec<String> = place
            .places
            .iter()
            .map(|(function, file, line)| format!("{function}@{file}:{line}"))
            .collect();
        assert_eq!(format!("{} {}", place.pending, places.join(" ")), expect);
    }

    #[test]
    fn breakpoint_locations_are_parsed() {
        check(
            r#"1^done,bkpt={number="1",addr="0x1",func="f",file="src/a.c",fullname="/x/src/a.c",line="3"}"#,
            "false f@a.c:3",
        );
        check(
            r#"1^done,bkpt={number="1",addr="<PENDING>",pending="f"}"#,
            "true ",
        );
        check(
            r#"1^done,bkpt={number="1",addr="0x1",at="<abort+4>"}"#,
            "false abort+4@:0",
        );
        check(
            r#"1^done,bkpt={number="1",addr="<MULTIPLE>",locations=[{number="1.1",func="f<int>",file="a.cc",line="3"},{number="1.2",func="f<long>",file="a.cc",line="3"}]}"#,
            "false f<int>@a.cc:3 f<long>@a.cc:3",
        );
        let mut scope = Scope::default();
        scope.set_group("i2");
        check_within(
            Some(&scope),
            r#"1^done,bkpt={number="1",addr="<MULTIPLE>",locations=[{number="1.1",func="f",file="a.c",line="3",thread-groups=["i1"]},{number="1.2",func="f",file="a.c",line="3",thread-groups=["i2"]}]}"#,
            "false f@a.c:3",
        );
    }
}
