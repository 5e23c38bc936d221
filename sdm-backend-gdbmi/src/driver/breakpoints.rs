//! The front-end's breakpoints: its numbers, gdb's numbers.

use sdm_debug::command::BreakSpec;
use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Event, Failure, FailureCode, Reply};

use super::core::Gdb;
use super::frames::base_name;
use super::internal::{Internal, Mpi};
use crate::mi::{Results, quote};

/// What is inserted in one gdb.
#[derive(Default)]
pub(super) struct Breakpoints {
    user: Vec<UserBreakpoint>,
    /// gdb's number, what for, and whether it has a place.
    internal: Vec<(u32, Internal, bool)>,
    pub(super) mpi: Mpi,
    /// Those of SDM's own were inserted, or are not wanted.
    pub(super) armed: bool,
}

struct UserBreakpoint {
    spec: BreakSpec,
    /// gdb's number; `None` where gdb has none (any more).
    number: Option<u32>,
    pending: bool,
}

/// Whose breakpoint one of gdb's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The front-end's, by its number.
    User(u32),
    Internal(Internal),
}

/// The most breakpoints of one task.
const BREAKPOINTS_MAX: usize = 4096;

impl Breakpoints {
    /// What the front-end asked for, for another run.
    pub(super) fn specs(&self) -> Vec<BreakSpec> {
        self.user
            .iter()
            .map(|breakpoint| breakpoint.spec.clone())
            .collect()
    }

    /// Whose a breakpoint of gdb's is; `None` where it is neither's (one set at gdb's console).
    pub(super) fn owner(&self, number: u32) -> Option<Owner> {
        let user = self
            .user
            .iter()
            .find(|breakpoint| breakpoint.number == Some(number));
        let internal = self.internal.iter().find(|(known, ..)| *known == number);
        user.map(|breakpoint| Owner::User(breakpoint.spec.number))
            .or(internal.map(|(_, what, _)| Owner::Internal(*what)))
    }

    /// True where one of this kind has found its place.
    pub(super) fn is_placed(&self, what: Internal) -> bool {
        self.internal
            .iter()
            .any(|(_, known, placed)| *known == what && *placed)
    }

    pub(super) fn add_internal(&mut self, what: Internal, results: &Results) {
        let breakpoint = results.tuple("bkpt").unwrap_or(results);
        if let Some(number) = breakpoint.number("number") {
            self.internal.push((number, what, !is_pending(breakpoint)));
        }
    }

    fn find(&self, number: u32) -> Result<u32, Failure> {
        let found = self
            .user
            .iter()
            .find(|breakpoint| breakpoint.spec.number == number);
        found
            .and_then(|breakpoint| breakpoint.number)
            .ok_or_else(|| {
                Failure::new(FailureCode::NoSuchThing, format!("no breakpoint {number}"))
            })
    }

    /// gdb says that a breakpoint has changed; gives what is to be told.
    pub(super) fn modified(&mut self, breakpoint: &Results) -> Option<Event> {
        let number: u32 = breakpoint.number("number")?;
        let hits: u64 = breakpoint.number("times").unwrap_or(0);
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
                Internal::Hold(_) | Internal::Exit => {}
            }
            return None;
        }
        let entry = self
            .user
            .iter_mut()
            .find(|entry| entry.number == Some(number))?;
        let was_pending = std::mem::replace(&mut entry.pending, !placed);
        (was_pending && placed)
            .then(|| Event::BreakpointPlaced(place_of(entry.spec.number, breakpoint)))
    }

    /// gdb says that a breakpoint is gone.
    pub(super) fn deleted(&mut self, number: u32) {
        self.internal.retain(|(known, ..)| *known != number);
        self.user
            .retain(|breakpoint| breakpoint.number != Some(number));
    }
}

/// Inserts a breakpoint; a number that the task has already is answered with its place.
pub(super) async fn insert(gdb: &Gdb, spec: BreakSpec) -> Result<Reply, Failure> {
    {
        let state = gdb.get();
        if state.read_only {
            let text = "attached to read only: no breakpoint is inserted";
            return Err(Failure::new(FailureCode::Unsupported, text));
        }
        if state.breakpoints.find(spec.number).is_ok() {
            let text = format!("breakpoint {} is there already", spec.number);
            return Err(Failure::new(FailureCode::BadCommand, text));
        }
        if state.breakpoints.user.len() >= BREAKPOINTS_MAX {
            let text = format!("at most {BREAKPOINTS_MAX} breakpoints in one task");
            return Err(Failure::new(FailureCode::Limit, text));
        }
    }
    let results = gdb.mi(insert_line(&spec)).await?;
    let breakpoint = results.tuple("bkpt").unwrap_or(&results);
    let place = place_of(spec.number, breakpoint);
    let user = UserBreakpoint {
        number: breakpoint.number("number"),
        pending: place.pending,
        spec,
    };
    gdb.edit().breakpoints.user.push(user);
    Ok(Reply::Breakpoint(place))
}

fn insert_line(spec: &BreakSpec) -> String {
    let mut line = String::from("-break-insert");
    for (wanted, option) in [
        (spec.temporary, " -t"),
        (spec.hardware, " -h"),
        (spec.pending, " -f"),
    ] {
        if wanted {
            line.push_str(option);
        }
    }
    if let Some(condition) = &spec.condition {
        line.push_str(" -c ");
        line.push_str(&quote(condition.as_bytes()));
    }
    if spec.ignore > 0 {
        line.push_str(&format!(" -i {}", spec.ignore));
    }
    line.push(' ');
    line.push_str(&quote(spec.location.as_bytes()));
    line
}

pub(super) async fn delete(gdb: &Gdb, number: u32) -> Result<Reply, Failure> {
    let known = gdb.get().breakpoints.find(number)?;
    gdb.mi(format!("-break-delete {known}")).await?;
    gdb.edit().breakpoints.deleted(known);
    Ok(Reply::Done)
}

pub(super) async fn enable(gdb: &Gdb, number: u32, enabled: bool) -> Result<Reply, Failure> {
    let known = gdb.get().breakpoints.find(number)?;
    let name = if enabled { "enable" } else { "disable" };
    gdb.mi(format!("-break-{name} {known}")).await?;
    Ok(Reply::Done)
}

fn is_pending(breakpoint: &Results) -> bool {
    breakpoint.text("addr") == Some("<PENDING>") || breakpoint.value("pending").is_some()
}

/// Where a breakpoint stands. Addresses are left out: they differ between tasks.
fn place_of(number: u32, breakpoint: &Results) -> BreakpointPlace {
    let pending = is_pending(breakpoint);
    let mut places: Vec<(String, String, u32)> =
        breakpoint.tuples("locations").map(place).collect();
    if places.is_empty() && !pending {
        places.push(place(breakpoint));
    }
    BreakpointPlace {
        number,
        pending,
        places,
    }
}

fn place(location: &Results) -> (String, String, u32) {
    // Without debug information gdb says `at="<abort+4>"`.
    let at = location.text("at").map(|at| at.trim_matches(['<', '>']));
    let function = location.text("func").or(at).unwrap_or_default();
    let file = location.text("file").map(base_name).unwrap_or_default();
    let line = location.number("line").unwrap_or(0);
    (function.to_owned(), file.to_owned(), line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mi::{Record, parse_line};

    fn breakpoint(line: &str) -> Results {
        let Record::Result { results, .. } = parse_line(line.as_bytes()) else {
            panic!("{line}");
        };
        results.tuple("bkpt").unwrap().clone()
    }

    fn check(line: &str, expect: &str) {
        let place = place_of(7, &breakpoint(line));
        let places: Vec<String> = place
            .places
            .iter()
            .map(|(function, file, line)| format!("{function}@{file}:{line}"))
            .collect();
        assert_eq!(format!("{} {}", place.pending, places.join(" ")), expect);
    }

    #[test]
    fn places() {
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
    }

    #[test]
    fn lines_for_gdb() {
        let spec = BreakSpec {
            number: 1,
            location: "a b.c:3".to_owned(),
            condition: Some("n == \"x\"".to_owned()),
            temporary: true,
            pending: true,
            ignore: 2,
            hardware: true,
            ..BreakSpec::default()
        };
        assert_eq!(
            insert_line(&spec),
            r#"-break-insert -t -h -f -c "n == \"x\"" -i 2 "a b.c:3""#
        );
    }
}
