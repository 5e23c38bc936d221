//! Several breakpoints at one place: the task stops if one of them applies, and the stop names the right one.

use sdm_debug::command::{BreakSpec, CatchEvent, CatchSpec, FrameSelect, StepKind};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};

use crate::attach::Running;
use crate::harness::{Harness, place, stopped, task};
use crate::shared::attach;

/// A condition that cannot be evaluated.
pub(crate) const BAD: &str = "*(int *)8 == 1";

fn point(number: u32, condition: &str, ignore: u32) -> BreakSpec {
    BreakSpec {
        number,
        location: "work".to_owned(),
        condition: (!condition.is_empty()).then(|| condition.to_owned()),
        ignore,
        ..BreakSpec::default()
    }
}

fn temporary(spec: BreakSpec) -> BreakSpec {
    BreakSpec {
        temporary: true,
        ..spec
    }
}

/// A process whose function `work` is called again and again.
pub(crate) struct Several {
    running: Vec<Running>,
    pub(crate) harness: Harness,
}

impl Several {
    /// The process in a gdb of its own. With `is_shared` the gdb has another process too.
    pub(crate) fn new(is_shared: bool) -> Self {
        let mut harness = Harness::new();
        let mut running = Vec::new();
        if is_shared {
            running.extend((0..2).map(|_| Running::new(&harness, &[])));
            let both = IdSet::all_below(2);
            for (_, answer) in harness.ask_all(&both, attach(&running)) {
                stopped(answer);
            }
        } else {
            let program = harness.compile("spin", &[]);
            harness.start(&program, &[]);
        }
        Self { running, harness }
    }

    pub(crate) fn ask(&mut self, command: Command) -> Reply {
        let name = format!("{command:?}");
        let answers = self.harness.ask_all(&task(), command);
        let answer = answers.into_values().next().expect("an answer");
        answer.expect(&name)
    }

    /// Stops in `work` with `rounds` 0 and these breakpoints alone.
    pub(crate) fn begin(&mut self, points: &[BreakSpec]) {
        for (number, _) in self.list() {
            self.ask(Command::BreakDelete { number });
        }
        self.ask(Command::BreakInsert(point(99, "", 0)));
        self.ask(Command::Continue);
        self.ask(Command::BreakDelete { number: 99 });
        let expression = "rounds = 0".to_owned();
        self.ask(Command::SetVariable { expression });
        for point in points {
            self.ask(Command::BreakInsert(point.clone()));
        }
    }

    /// The breakpoint of the next stop, and the value of `rounds` at that stop.
    fn next(&mut self, command: Command) -> (u32, u32) {
        let reply = self.ask(command);
        let number = match stopped(Ok(reply)).reason {
            StopReason::Breakpoint { number } | StopReason::Catch { number, .. } => number,
            other => panic!("{other:?}"),
        };
        let expression = "rounds".to_owned();
        match self.ask(Command::Evaluate { expression }) {
            Reply::Value(value) => (number, value.text.parse().unwrap()),
            other => panic!("{other:?}"),
        }
    }

    fn check(&mut self, points: &[BreakSpec], expect: &[(u32, u32)], left: &[(u32, u64)]) {
        self.begin(points);
        for stop in expect {
            assert_eq!(self.next(Command::Continue), *stop, "{points:#?}");
        }
        assert_eq!(self.list(), left, "{points:#?}");
    }

    /// The numbers of the breakpoints with their hit counts.
    fn list(&mut self) -> Vec<(u32, u64)> {
        match self.ask(Command::Breakpoints) {
            Reply::Breakpoints(views) => {
                let views = views.iter();
                views.map(|view| (view.place.number, view.hits)).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Several {
    fn drop(&mut self) {
        // gdb 13 does not reap a process that is killed here, and the test would wait for it.
        if !self.running.is_empty() && !std::thread::panicking() {
            let both = IdSet::all_below(2);
            self.harness.ask_all(&both, Command::Detach);
        }
    }
}

#[test]
fn breakpoints_at_one_location_each_use_their_own_condition() {
    for is_shared in [false, true] {
        let mut several = Several::new(is_shared);
        let all = &mut several;
        let passing = [point(1, BAD, 0), point(2, "", 3)];
        all.check(&passing, &[(2, 4), (2, 5)], &[(1, 0), (2, 5)]);
        let reversed = [point(1, "", 3), point(2, BAD, 0)];
        all.check(&reversed, &[(1, 4), (1, 5)], &[(1, 5), (2, 0)]);
        let other = [point(1, BAD, 0), point(2, "rounds == 3", 0)];
        all.check(&other, &[(2, 3)], &[(1, 0), (2, 1)]);
        let both = [temporary(point(1, BAD, 0)), temporary(point(2, "", 1))];
        all.check(&both, &[(2, 2)], &[(1, 0)]);
        let ends = [
            temporary(point(1, "rounds == 2", 0)),
            temporary(point(2, "rounds > 0", 1)),
            point(3, "rounds == 2", 0),
        ];
        all.check(&ends, &[(1, 2)], &[(3, 1)]);
        let one = [point(1, "rounds < 0", 0), temporary(point(2, "", 0))];
        all.check(&one, &[(2, 1)], &[(1, 0)]);
        let counts = [point(1, "", 5), point(2, "", 2)];
        let stops = [(2, 3), (2, 4), (2, 5), (1, 6)];
        all.check(&counts, &stops, &[(1, 6), (2, 6)]);
        let third = [point(1, BAD, 0), point(2, "rounds < 0", 0), point(3, "", 0)];
        all.check(&third, &[(3, 1), (3, 2)], &[(1, 0), (2, 0), (3, 2)]);
    }
}

#[test]
fn condition_that_gdb_cannot_evaluate_uses_no_ignore_count() {
    for is_shared in [false, true] {
        let mut several = Several::new(is_shared);
        let all = &mut several;
        all.begin(&[point(1, BAD, 2), point(2, "rounds >= 2", 2)]);
        assert_eq!(all.next(Command::Continue), (2, 4));
        all.ask(Command::BreakDelete { number: 2 });
        let condition = |condition: Option<&str>| Command::BreakCondition {
            number: 1,
            condition: condition.map(str::to_owned),
        };
        all.ask(condition(Some("rounds > 5")));
        assert_eq!(all.next(Command::Continue), (1, 8));
        // The count moves between gdb and the driver.
        let ignore = Command::BreakIgnore {
            number: 1,
            count: 2,
        };
        all.ask(ignore.clone());
        all.ask(condition(None));
        assert_eq!(all.next(Command::Continue), (1, 11));
        all.ask(ignore);
        all.ask(condition(Some("rounds > 12")));
        assert_eq!(all.next(Command::Continue), (1, 15));
        all.begin(&[point(1, "", 0), point(2, "", 0)]);
        assert_eq!(all.next(Command::Continue), (1, 1));
        assert_eq!(all.next(Command::ContinuePast { count: 3 }), (1, 4));
    }
}

#[test]
fn catchpoint_stops_despite_a_false_condition_of_another() {
    for is_shared in [false, true] {
        let mut several = Several::new(is_shared);
        let all = &mut several;
        let catch = |number, condition: Option<&str>| {
            Command::CatchInsert(CatchSpec {
                number,
                event: CatchEvent::Syscall(vec!["clock_nanosleep".to_owned()]),
                temporary: condition.is_some(),
                condition: condition.map(str::to_owned),
            })
        };
        all.begin(&[]);
        all.ask(catch(1, Some("rounds < 0")));
        all.ask(catch(2, None));
        assert_eq!(all.next(Command::Continue).0, 2);
        let numbers: Vec<u32> = all.list().iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2]);
    }
}

/// gdb forgets the step if a breakpoint interrupts it.
#[test]
fn step_is_completed_despite_breakpoints_with_failed_condition() {
    for is_shared in [false, true] {
        let mut several = Several::new(is_shared);
        let all = &mut several;
        all.begin(&[point(1, BAD, 0)]);
        let step = |kind| Command::Step { kind, count: 1 };
        let mut at = |command: Command| {
            let stop = stopped(Ok(all.ask(command)));
            let (function, line) = place(&stop);
            (stop.reason.clone(), function.to_owned(), line)
        };
        let work = at(step(StepKind::Over)).2;
        let (reason, function, main) = at(Command::Finish);
        let is_end = matches!(reason, StopReason::FunctionFinished { .. });
        assert!(is_end && function == "main", "{reason:?} {function}");
        // Over calls of the function with the breakpoint, and into one.
        for _ in 0..2 {
            let (reason, function, line) = at(step(StepKind::Over));
            assert_eq!((reason, &*function), (StopReason::StepEnd, "main"));
            assert!(line.abs_diff(main) <= 1, "{line}, {main}");
        }
        loop {
            let (reason, function, line) = at(step(StepKind::Into));
            assert_eq!(reason, StopReason::StepEnd);
            if function == "work" {
                assert_eq!(line + 1, work);
                break;
            }
        }
        // To the line of another one.
        let location = format!("spin.c:{work}");
        let other = BreakSpec {
            location,
            ..point(2, BAD, 0)
        };
        all.ask(Command::BreakInsert(other));
        let stop = stopped(Ok(all.ask(step(StepKind::Over))));
        assert_eq!(
            (stop.reason.clone(), place(&stop).1),
            (StopReason::StepEnd, work)
        );
    }
}

/// gdb has one language for all of its tasks.
#[test]
fn language_set_by_one_task_applies_to_other_tasks() {
    let mut all = Several::new(true);
    all.begin(&[]);
    let up = Command::SelectFrame(FrameSelect::Move(1));
    let again = Command::SelectFrame(FrameSelect::Move(0));
    all.ask(up);
    let value = |all: &mut Several| {
        let expression = "argv + 1".to_owned();
        match all.ask(Command::Evaluate { expression }) {
            Reply::Value(value) => value.text,
            other => panic!("{other:?}"),
        }
    };
    let mut values = Vec::new();
    for language in ["c", "fortran"] {
        let line = format!("set language {language}");
        let other = IdSet::single(TaskId(1));
        for (_, answer) in all.harness.ask_all(&other, Command::Console { line }) {
            answer.unwrap();
        }
        values.push(value(&mut all));
    }
    all.ask(again);
    assert_eq!(value(&mut all), values[1]);
}
