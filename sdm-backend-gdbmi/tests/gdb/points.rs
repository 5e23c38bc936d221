//! Tests of watchpoints, catchpoints, and breakpoints with options or commands.

use sdm_debug::command::{
    BreakSpec, CatchEvent, CatchSpec, PointSpec, StartPoint, StartSpec, StepKind, StopAt,
    WatchKind, WatchSpec,
};
use sdm_debug::reply::{BreakpointView, CatchHit, StopReason, WatchHit};
use sdm_debug::{Command, Event, FailureCode, Reply, TaskState};

use crate::harness::{Harness, place, stopped};

fn watch(number: u32, expression: &str, kind: WatchKind) -> Command {
    Command::WatchInsert(WatchSpec::new(number, expression, kind))
}

fn catch(number: u32, event: CatchEvent) -> Command {
    Command::CatchInsert(CatchSpec::new(number, event))
}

fn insert(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }
}

/// The number, the old value and the new value of a stop at a watchpoint.
fn seen(reason: &StopReason) -> (u32, Option<&str>, Option<&str>) {
    let StopReason::Watchpoint(hit) = reason else {
        panic!("{reason:?}");
    };
    let WatchHit {
        number, old, new, ..
    } = &**hit;
    (
        *number,
        old.as_ref().map(|v| v.text.as_str()),
        new.as_ref().map(|v| v.text.as_str()),
    )
}

impl Harness {
    fn reason(&mut self) -> StopReason {
        stopped(self.run_on()).reason
    }

    fn list(&mut self) -> Vec<BreakpointView> {
        match self.ask(Command::Breakpoints) {
            Ok(Reply::Breakpoints(list)) => list,
            other => panic!("{other:?}"),
        }
    }
}

/// A processor can watch only a few addresses. gdb notices this when the program is to run, and prints `Command
/// aborted.`
#[test]
fn excess_hardware_watchpoints_are_reported() {
    let mut harness = Harness::new();
    let program = harness.compile("points", &[]);
    harness.start(&program, &[]);
    harness
        .ask(Command::BreakInsert(insert(7, "count_up")))
        .unwrap();
    stopped(harness.run_on());
    for (number, expression) in (10..).zip(["*(char(*)[24]) &global", "*(long(*)[3]) &got"]) {
        harness
            .ask(watch(number, expression, WatchKind::Read))
            .unwrap();
    }
    let failure = harness.run_on().unwrap_err();
    assert_eq!(failure.code, FailureCode::Gdb);
    assert!(
        failure.text.contains("hardware watchpoint 11."),
        "{failure}"
    );
    assert!(failure.text.contains("too many hardware"), "{failure}");
    harness.ask(Command::BreakDelete { number: 11 }).unwrap();
    harness.ask(Command::BreakDelete { number: 10 }).unwrap();
    let stop = stopped(harness.ask(Command::Finish));
    assert_eq!(place(&stop).0, "main");
}

/// If a watched variable has changed at a place with a later breakpoint, the change is reported with the values that
/// gdb gives.
#[test]
fn watchpoint_shows_its_values_at_a_breakpoint() {
    let mut harness = Harness::new();
    let program = harness.compile("points", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "points.c:18").unwrap();
    assert_eq!(harness.reason(), StopReason::Breakpoint { number: 1 });
    harness.ask(watch(2, "local", WatchKind::Write)).unwrap();
    harness.break_at(3, "points.c:19").unwrap();
    harness.break_at(4, "points.c:20").unwrap();
    assert_eq!(seen(&harness.reason()), (2, Some("1"), Some("2")));
    assert_eq!(seen(&harness.reason()), (2, Some("2"), Some("4")));
}

#[test]
fn watchpoint_reports_change_and_end_of_scope() {
    let mut harness = Harness::new();
    let program = harness.compile("points", &[]);
    harness.start(&program, &[]);
    let refused = harness
        .ask(watch(1, "nosuch", WatchKind::Write))
        .unwrap_err();
    assert_eq!(refused.code, FailureCode::Gdb);
    assert!(refused.text.contains("nosuch"), "{refused}");
    harness.break_at(2, "points.c:18").unwrap();
    assert_eq!(harness.reason(), StopReason::Breakpoint { number: 2 });
    harness.ask(watch(1, "local", WatchKind::Write)).unwrap();
    assert_eq!(seen(&harness.reason()), (1, Some("1"), Some("2")));
    assert_eq!(seen(&harness.reason()), (1, Some("2"), Some("4")));
    assert_eq!(
        harness.reason(),
        StopReason::WatchpointScope {
            number: 1,
            expression: "local".to_owned()
        }
    );
    let gone = harness.ask(Command::BreakDelete { number: 1 }).unwrap_err();
    assert_eq!(gone.code, FailureCode::NoSuchThing);
    harness.ask(watch(3, "global", WatchKind::Access)).unwrap();
    harness.ask(watch(4, "global", WatchKind::Read)).unwrap();
    let located = WatchSpec {
        number: 5,
        expression: "sum".to_owned(),
        location: true,
        condition: Some("sum > 4".to_owned()),
        ..WatchSpec::default()
    };
    harness.ask(Command::WatchInsert(located)).unwrap();
    assert_eq!(seen(&harness.reason()), (3, Some("0"), Some("4")));
    let reason = harness.reason();
    let (number, _, value) = seen(&reason);
    assert!((3..=4).contains(&number), "{number}");
    assert_eq!(value, Some("4"));
    for number in [3, 4] {
        harness.ask(Command::BreakDelete { number }).unwrap();
    }
    assert_eq!(seen(&harness.reason()), (5, Some("4"), Some("8")));
    let kinds: Vec<(u32, String, String)> = harness
        .list()
        .into_iter()
        .map(|view| (view.place.number, view.kind, view.what))
        .collect();
    let expect = [
        (2, "breakpoint", "points.c:18"),
        (5, "hw watchpoint", "sum"),
    ]
    .map(|(number, kind, what)| (number, kind.to_owned(), what.to_owned()));
    assert_eq!(kinds, expect);
}

#[test]
fn catchpoints_stop_at_signal_fork_syscall_and_exec() {
    let mut harness = Harness::new();
    let program = harness.compile("points", &[]);
    harness.start(&program, &["/bin/true"]);
    for (number, event) in [
        (1, CatchEvent::Signal(vec!["SIGUSR1".to_owned()])),
        (2, CatchEvent::Fork),
        (3, CatchEvent::Vfork),
        (4, CatchEvent::Syscall(vec!["getppid".to_owned()])),
        (5, CatchEvent::Exec),
    ] {
        harness.ask(catch(number, event)).unwrap();
    }
    let bad = harness.ask(catch(6, CatchEvent::Syscall(vec!["nosuch".to_owned()])));
    assert_eq!(bad.unwrap_err().code, FailureCode::Gdb);
    let name = "SIGUSR1".to_owned();
    let caught = |number, hit| StopReason::Catch { number, hit };
    assert_eq!(harness.reason(), caught(1, CatchHit::Signal { name }));
    assert_eq!(harness.reason(), caught(2, CatchHit::Fork));
    let name = || "getppid".to_owned();
    let entry = CatchHit::SyscallEntry { name: name() };
    assert_eq!(harness.reason(), caught(4, entry));
    let back = CatchHit::SyscallReturn { name: name() };
    assert_eq!(harness.reason(), caught(4, back));
    let exec = CatchHit::Exec {
        program: "true".to_owned(),
    };
    assert_eq!(harness.reason(), caught(5, exec));
    assert!(matches!(
        harness.run_on(),
        Ok(Reply::Exited { code: 0, .. })
    ));
    // The catchpoints also exist in another run.
    harness.start(&program, &[]);
    let name = "SIGUSR1".to_owned();
    assert_eq!(harness.reason(), caught(1, CatchHit::Signal { name }));
}

#[test]
fn regex_breakpoints_and_exception_catchpoints_stop_the_program() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("containers");
    harness.start(&program, &[]);
    let regex = BreakSpec {
        regex: true,
        ..insert(1, "containers.cc:^t[wh]")
    };
    let Ok(Reply::Breakpoint(at)) = harness.ask(Command::BreakInsert(regex)) else {
        panic!("no breakpoint");
    };
    assert_eq!(at.places.len(), 3, "{at:?}");
    let nothing = BreakSpec {
        regex: true,
        ..insert(2, "^nosuch")
    };
    let failure = harness.ask(Command::BreakInsert(nothing)).unwrap_err();
    assert_eq!(failure.code, FailureCode::Gdb);
    harness.ask(catch(3, CatchEvent::Throw)).unwrap();
    harness.ask(catch(4, CatchEvent::Catch)).unwrap();
    for function in ["twice<int>", "twice<double>", "thrown"] {
        let stop = stopped(harness.run_on());
        assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
        let name = &stop.frame.unwrap().function;
        assert!(name.starts_with(function), "{name}");
    }
    assert_eq!(harness.list()[0].hits, 3);
    assert_eq!(
        harness.ask(Command::BreakDelete { number: 1 }),
        Ok(Reply::Done)
    );
    for (number, stage) in [(3, "throw"), (4, "catch")] {
        let stage = stage.to_owned();
        let hit = CatchHit::Exception { stage };
        assert_eq!(harness.reason(), StopReason::Catch { number, hit });
    }
    assert!(matches!(
        harness.run_on(),
        Ok(Reply::Exited { code: 17, .. })
    ));
}

#[test]
fn breakpoints_are_changed_counted_and_listed() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "twice").unwrap();
    let condition = |text: Option<&str>| Command::BreakCondition {
        number: 1,
        condition: text.map(ToOwned::to_owned),
    };
    assert_eq!(harness.ask(condition(Some("n == 2"))), Ok(Reply::Done));
    let bad = harness.ask(condition(Some("nosuch"))).unwrap_err();
    assert_eq!(bad.code, FailureCode::Gdb);
    harness.reason();
    assert_eq!(harness.evaluate("n").unwrap().text, "2");
    assert_eq!(harness.ask(condition(None)), Ok(Reply::Done));
    let ignore = Command::BreakIgnore {
        number: 1,
        count: 2,
    };
    assert_eq!(harness.ask(ignore), Ok(Reply::Done));
    harness.reason();
    assert_eq!(harness.evaluate("n").unwrap().text, "5");
    let past = |count| Command::ContinuePast { count };
    stopped(harness.ask(past(2)));
    assert_eq!(harness.evaluate("n").unwrap().text, "7");
    let step = Command::Step {
        kind: StepKind::Over,
        count: 1,
    };
    stopped(harness.ask(step));
    let nowhere = harness.ask(past(2)).unwrap_err();
    assert_eq!(nowhere.code, FailureCode::NoSuchThing);
    assert_eq!(harness.state(), TaskState::Stopped);
    let view = harness.list().remove(0);
    assert_eq!((view.hits, view.enabled, view.temporary), (6, true, false));
    assert_eq!(view.place.places[0].0, "twice");
    for command in [
        Command::BreakIgnore {
            number: 9,
            count: 1,
        },
        Command::BreakCommands {
            number: 9,
            lines: Vec::new(),
        },
    ] {
        let failure = harness.ask(command).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoSuchThing);
    }
    let other_thread = BreakSpec {
        thread: Some(9),
        ..insert(2, "twice")
    };
    let failure = harness.ask(Command::BreakInsert(other_thread)).unwrap_err();
    assert_eq!(failure.code, FailureCode::NoSuchThing);
    let this_thread = BreakSpec {
        thread: Some(1),
        ..insert(2, "depth")
    };
    harness.ask(Command::BreakInsert(this_thread)).unwrap();
    harness.ask(Command::BreakDelete { number: 1 }).unwrap();
    assert_eq!(harness.reason(), StopReason::Breakpoint { number: 2 });
}

#[test]
fn breakpoint_executes_its_commands() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    let tracing = BreakSpec {
        commands: lines(&["silent", "printf \"n is %d\\n\", n", "continue"]),
        ..insert(1, "twice")
    };
    harness.ask(Command::BreakInsert(tracing)).unwrap();
    harness.break_at(2, "depth").unwrap();
    assert_eq!(harness.reason(), StopReason::Breakpoint { number: 2 });
    let printed: Vec<String> = harness
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Printed { number: 1, text } => Some(text.clone()),
            _ => None,
        })
        .collect();
    let expect: Vec<String> = (0..10).map(|n| format!("n is {n}\n")).collect();
    assert_eq!(printed, expect);
    // A failing line is reported, and the following lines are not executed.
    let failing = Command::BreakCommands {
        number: 2,
        lines: lines(&["print nosuch", "continue"]),
    };
    assert_eq!(harness.ask(failing), Ok(Reply::Done));
    assert_eq!(harness.reason(), StopReason::Breakpoint { number: 2 });
    let Event::Printed { text, .. } =
        harness.wait_event(|event| matches!(event, Event::Printed { number: 2, .. }))
    else {
        unreachable!("asked for one");
    };
    assert!(text.contains("nosuch"), "{text}");
    assert_eq!(place(&stopped(harness.run_on())).0, "depth");
}

#[test]
fn breakpoints_of_a_start_are_set_before_the_program_runs() {
    let mut harness = Harness::new();
    let program = harness.compile("points", &[]);
    let written = |number, expression: &str| {
        PointSpec::Watch(WatchSpec {
            number,
            expression: expression.to_owned(),
            ..WatchSpec::default()
        })
    };
    let on = |tasks: &str, spec, enabled| StartPoint {
        tasks: tasks.parse().unwrap(),
        spec,
        enabled,
    };
    let spec = StartSpec {
        stop: StopAt::Nowhere,
        points: vec![
            on("0-3", PointSpec::Break(insert(3, "main")), true),
            on("0", PointSpec::Break(insert(4, "points.c:18")), false),
            on("1-3", PointSpec::Break(insert(5, "main")), true),
            on("0", written(6, "global"), true),
            on("0", written(7, "local"), true),
            on("0", PointSpec::Break(insert(8, "in_no_library_yet")), true),
        ],
        settings: vec![
            ("0".parse().unwrap(), "set $seven = 7".to_owned()),
            ("1".parse().unwrap(), "set $seven = 8".to_owned()),
            ("0".parse().unwrap(), "set nonsense 1".to_owned()),
        ],
        ..crate::harness::spec(&program, &[])
    };
    let stop = stopped(harness.ask(Command::Start(spec)));
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 3 });
    assert_eq!(harness.evaluate("$seven").unwrap().text, "7");
    let refused = harness.wait_event(|event| matches!(event, Event::BreakpointRefused { .. }));
    let text = "No symbol \"local\" in current context".to_owned();
    assert_eq!(refused, Event::BreakpointRefused { number: 7, text });
    harness.wait_event(
        |event| matches!(event, Event::Notice { text } if text.starts_with("set nonsense 1: ")),
    );
    let listed: Vec<_> = harness
        .list()
        .into_iter()
        .map(|view| (view.place.number, view.enabled, view.place.pending))
        .collect();
    let expect = [
        (3, true, false),
        (4, false, false),
        (6, true, false),
        (8, true, true),
    ];
    assert_eq!(listed, expect);
    let StopReason::Watchpoint(hit) = harness.reason() else {
        panic!("the watchpoint is met");
    };
    assert_eq!(hit.number, 6);
}
