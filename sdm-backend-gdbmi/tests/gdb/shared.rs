//! Tests of one gdb for several attached tasks.

use std::collections::BTreeMap;

use sdm_debug::command::{
    AttachSpec, BreakSpec, CatchEvent, CatchSpec, StepKind, WatchKind, WatchSpec,
};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, FailureCode, Reply, TaskState};
use sdm_idset::{IdSet, TaskId};

use crate::attach::Running;
use crate::harness::{Answer, Harness, place, stopped};

fn one(task: u32) -> IdSet {
    IdSet::single(TaskId(task))
}

pub(crate) fn attach(running: &[Running]) -> Command {
    let pids = running.iter().map(Running::pid);
    Command::Attach(AttachSpec {
        pids: (0..).zip(pids).collect(),
        ..AttachSpec::default()
    })
}

impl Harness {
    /// Sends a command to several tasks; returns the answers by task.
    pub(crate) fn ask_all(&mut self, tasks: &IdSet, command: Command) -> BTreeMap<u32, Answer> {
        let id = self.send_to(tasks, command);
        let mut answers = BTreeMap::new();
        while (answers.len() as u64) < tasks.len() {
            let (task, answer) = self.wait("answers", |harness| {
                let at = harness
                    .answers
                    .iter()
                    .position(|(known, ..)| *known == id)?;
                let (_, task, answer) = harness.answers.remove(at);
                Some((task.0, answer))
            });
            answers.insert(task, answer);
        }
        answers
    }

    fn ask_one(&mut self, task: u32, command: Command) -> Answer {
        let mut answers = self.ask_all(&one(task), command);
        answers.remove(&task).expect("it was waited for")
    }

    fn state_of(&mut self, task: u32) -> TaskState {
        match self.ask_one(task, Command::Status) {
            Ok(Reply::Status(state)) => state,
            other => panic!("{other:?}"),
        }
    }

    fn value_of(&mut self, task: u32, expression: &str) -> String {
        let expression = expression.to_owned();
        match self.ask_one(task, Command::Evaluate { expression }) {
            Ok(Reply::Value(value)) => value.text,
            other => panic!("{other:?}"),
        }
    }
}

fn breakpoint(number: u32, condition: Option<&str>) -> Command {
    Command::BreakInsert(BreakSpec {
        number,
        location: "work".to_owned(),
        condition: condition.map(ToOwned::to_owned),
        ..BreakSpec::default()
    })
}

/// Checks that each task has its own value history, although their common gdb has only one.
fn print_apart(harness: &mut Harness) {
    let mut print = |task, expression: &str| {
        let print = Command::Print {
            format: String::new(),
            expression: expression.to_owned(),
        };
        match harness.ask_one(task, print) {
            Ok(Reply::Value(value)) => value.text,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(print(0, "10"), "10");
    assert_eq!(print(1, "20"), "20");
    assert_eq!(print(0, "$ + 1"), "11");
    assert_eq!(print(1, "$1 + $"), "40");
    assert_eq!(print(0, "$$ + $2"), "21");
}

#[test]
fn tasks_sharing_a_gdb_run_separately() {
    let mut harness = Harness::new();
    let mut running: Vec<Running> = (0..3)
        .map(|_| Running::new(&harness, &["threads"]))
        .collect();
    let all = IdSet::all_below(3);
    for (_, answer) in harness.ask_all(&all, attach(&running)) {
        assert_eq!(stopped(answer).reason, StopReason::Attached);
    }
    let gdbs: Vec<i32> = running.iter().map(Running::tracer).collect();
    assert!(gdbs.iter().all(|gdb| *gdb == gdbs[0]), "{gdbs:?}");
    for (_, answer) in harness.ask_all(&all, Command::Stacks { full: false }) {
        let Ok(Reply::Stacks(stacks)) = answer else {
            panic!("{answer:?}");
        };
        let counts: Vec<(u32, bool)> = stacks.threads.iter().map(|t| (t.count, t.main)).collect();
        assert_eq!(counts, [(1, true), (2, false)], "{stacks:?}");
    }
    // A breakpoint in one task stops only that task.
    harness.ask_one(1, breakpoint(1, Some("n == 1"))).unwrap();
    let stop = stopped(harness.ask_one(1, Command::Continue));
    assert_eq!(
        (stop.reason.clone(), place(&stop).0),
        (StopReason::Breakpoint { number: 1 }, "work")
    );
    assert_eq!(harness.state_of(0), TaskState::Stopped);
    print_apart(&mut harness);
    let runs = harness.send_to(&"0,2".parse().unwrap(), Command::Continue);
    harness
        .ask_one(1, Command::BreakDelete { number: 1 })
        .unwrap();
    let step = |kind| Command::Step { kind, count: 1 };
    let stop = stopped(harness.ask_one(1, step(StepKind::Over)));
    assert_eq!(stop.reason, StopReason::StepEnd);
    let stop = stopped(harness.ask_one(1, Command::Finish));
    assert_eq!(place(&stop).0, "main");
    assert_eq!(harness.value_of(1, "leave"), "0");
    assert_eq!(harness.state_of(0), TaskState::Running);
    let failure = harness.ask_one(0, Command::Backtrace(Default::default()));
    assert_eq!(failure.unwrap_err().code, FailureCode::Running);
    assert_eq!(harness.ask_one(2, Command::Interrupt), Ok(Reply::Done));
    assert_eq!(
        stopped(harness.answer(runs)).reason,
        StopReason::Interrupted
    );
    // Each task numbers its own threads.
    let select = |number| Command::SelectThread { number };
    let Ok(Reply::Frame(view)) = harness.ask_one(2, select(2)) else {
        panic!("no frame");
    };
    assert_eq!(view.frame.function, "pause");
    assert_eq!(
        harness.ask_one(2, select(9)).unwrap_err().code,
        FailureCode::NoSuchThing
    );
    let Ok(Reply::Threads(threads)) = harness.ask_one(2, Command::Threads) else {
        panic!("no threads");
    };
    let listed: Vec<(u32, bool)> = threads.iter().map(|t| (t.number, t.current)).collect();
    assert_eq!(listed, [(1, false), (2, true), (3, false)]);
    // One task ends, and the others continue.
    let expression = "leave = 1".to_owned();
    harness
        .ask_one(1, Command::SetVariable { expression })
        .unwrap();
    let end = harness.ask_one(1, Command::Continue);
    assert!(matches!(end, Ok(Reply::Exited { code: 3, .. })), "{end:?}");
    assert_eq!(harness.ask_one(0, Command::Detach), Ok(Reply::Done));
    assert_eq!(harness.answer(runs), Ok(Reply::Detached));
    assert_eq!(harness.ask_one(2, Command::Detach), Ok(Reply::Done));
    for task in [0, 2] {
        let process = &mut running[task];
        harness.wait("it to run", |_| process.runs().then_some(()));
    }
}

#[test]
fn failed_attach_leaves_other_tasks_attached() {
    let mut harness = Harness::new();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let running = [Running::new(&harness, &[]), Running::new(&harness, &[])];
    let spec = AttachSpec {
        pids: vec![
            (0, running[0].pid()),
            (1, gone.id().cast_signed()),
            (3, running[1].pid()),
        ],
        ..AttachSpec::default()
    };
    let mut answers = harness.ask_all(&IdSet::all_below(4), Command::Attach(spec));
    for task in [1, 2] {
        let failure = answers.remove(&task).unwrap().unwrap_err();
        assert_eq!(failure.code, FailureCode::AttachFailed);
    }
    for (_, answer) in answers {
        stopped(answer);
    }
    assert_eq!(harness.state_of(1), TaskState::Absent);
    // A gdb that is killed leaves no breakpoint in any of its processes.
    let both: IdSet = "0,3".parse().unwrap();
    for answer in harness
        .ask_all(&both, breakpoint(1, Some("leave")))
        .into_values()
    {
        answer.unwrap();
    }
    let runs = harness.send_to(&both, Command::Continue);
    for task in [0, 3] {
        harness.wait("it to run", |harness| {
            (harness.state_of(task) == TaskState::Running).then_some(())
        });
    }
    running[0].kill_tracer();
    for _ in 0..2 {
        let failure = harness.answer(runs).unwrap_err();
        assert_eq!(failure.code, FailureCode::GdbDead);
    }
    let died = |event: &Event| matches!(event, Event::GdbDied { .. });
    for _ in 0..2 {
        harness.wait_event(died);
    }
}

fn condition(number: u32, text: &str) -> Command {
    Command::BreakCondition {
        number,
        condition: Some(text.to_owned()),
    }
}

fn said_why(event: &Event) -> bool {
    let begin = "breakpoint 1 does not stop: its condition `*(int *)8 == 1` cannot be evaluated: ";
    matches!(event, Event::Notice { text } if text.starts_with(begin) && text.contains("0x8"))
}

#[test]
fn condition_is_evaluated_in_the_process_that_stopped() {
    let mut harness = Harness::new();
    let running: Vec<Running> = (0..3).map(|_| Running::new(&harness, &[])).collect();
    let all = IdSet::all_below(3);
    for (_, answer) in harness.ask_all(&all, attach(&running)) {
        stopped(answer);
    }
    let gdbs: Vec<i32> = running.iter().map(Running::tracer).collect();
    assert!(gdbs.iter().all(|gdb| *gdb == gdbs[0]), "{gdbs:?}");
    let insert = breakpoint(1, Some("rounds % 50 == 0 && n == 1"));
    for (_, answer) in harness.ask_all(&all, insert) {
        answer.unwrap();
    }
    let mut rounds = [0; 3];
    for time in 0..3 {
        if time == 2 {
            let ignore = Command::BreakIgnore {
                number: 1,
                count: 1,
            };
            harness.ask_one(1, ignore).unwrap();
        }
        for (task, answer) in harness.ask_all(&all, Command::Continue) {
            let reason = stopped(answer).reason;
            assert_eq!(reason, StopReason::Breakpoint { number: 1 }, "task {task}");
            let now: u64 = harness.value_of(task, "rounds").parse().unwrap();
            let before = std::mem::replace(&mut rounds[task as usize], now);
            let away = if (task, time) == (1, 2) { 100 } else { 50 };
            assert_eq!(now % 50, 0, "task {task}");
            assert!(time == 0 || now == before + away, "{before}, then {now}");
        }
    }
    let listed = harness.ask_one(1, Command::Breakpoints);
    let Ok(Reply::Breakpoints(views)) = listed else {
        panic!("{listed:?}");
    };
    assert_eq!((views[0].hits, views[0].ignore), (4, 0));
    let wrong = breakpoint(2, Some("nosuch == 1"));
    assert_eq!(
        harness.ask_one(0, wrong).unwrap_err().code,
        FailureCode::Gdb
    );
    // A condition that cannot be evaluated stops no task, and is reported.
    harness.ask_one(0, condition(1, "*(int *)8 == 1")).unwrap();
    let run = harness.send_to(&one(0), Command::Continue);
    harness.wait_event(said_why);
    assert_eq!(harness.ask_one(0, Command::Interrupt), Ok(Reply::Done));
    let stop = stopped(harness.answer(run));
    assert_eq!(stop.reason, StopReason::Interrupted);
}

#[test]
fn watch_condition_is_evaluated_in_the_process_that_stopped() {
    let mut harness = Harness::new();
    let running: Vec<Running> = (0..3).map(|_| Running::new(&harness, &[])).collect();
    let all = IdSet::all_below(3);
    for (_, answer) in harness.ask_all(&all, attach(&running)) {
        stopped(answer);
    }
    let watch = Command::WatchInsert(WatchSpec {
        number: 1,
        expression: "rounds".to_owned(),
        kind: WatchKind::Write,
        location: false,
        condition: Some("rounds % 50 == 0".to_owned()),
        ignore: 0,
    });
    for (_, answer) in harness.ask_all(&all, watch) {
        answer.unwrap();
    }
    let mut rounds = [0; 3];
    let mut run_on = |harness: &mut Harness, step: u64, is_first: bool| {
        for (task, answer) in harness.ask_all(&all, Command::Continue) {
            let reason = stopped(answer).reason;
            let StopReason::Watchpoint(hit) = &reason else {
                panic!("task {task}: {reason:?}");
            };
            assert_eq!(hit.number, 1, "task {task}");
            let now: u64 = harness.value_of(task, "rounds").parse().unwrap();
            let before = std::mem::replace(&mut rounds[task as usize], now);
            assert_eq!(now % step, 0, "task {task}");
            assert!(is_first || now == before + step, "{before}, then {now}");
        }
    };
    run_on(&mut harness, 50, true);
    run_on(&mut harness, 50, false);
    for (_, answer) in harness.ask_all(&all, condition(1, "rounds % 25 == 0")) {
        answer.unwrap();
    }
    run_on(&mut harness, 25, false);
    let listed = harness.ask_one(1, Command::Breakpoints);
    let Ok(Reply::Breakpoints(views)) = listed else {
        panic!("{listed:?}");
    };
    assert_eq!(views[0].hits, 3);
}

/// A catchpoint for the system call with which each round ends.
fn catchpoint(number: u32, condition: &str, temporary: bool) -> Command {
    Command::CatchInsert(CatchSpec {
        number,
        event: CatchEvent::Syscall(vec!["clock_nanosleep".to_owned()]),
        temporary,
        condition: Some(condition.to_owned()),
    })
}

#[test]
fn catch_condition_is_evaluated_in_the_process_that_stopped() {
    let mut harness = Harness::new();
    let running: Vec<Running> = (0..3).map(|_| Running::new(&harness, &[])).collect();
    let all = IdSet::all_below(3);
    for (_, answer) in harness.ask_all(&all, attach(&running)) {
        stopped(answer);
    }
    let ask = |harness: &mut Harness, tasks: &IdSet, command| {
        for (_, answer) in harness.ask_all(tasks, command) {
            answer.unwrap();
        }
    };
    let run_on = |harness: &mut Harness, tasks: &IdSet, wanted: u32, step: u64| {
        for (task, answer) in harness.ask_all(tasks, Command::Continue) {
            let reason = stopped(answer).reason;
            let is_it = matches!(reason, StopReason::Catch { number, .. } if number == wanted);
            assert!(is_it, "task {task}: {reason:?}");
            let now: u64 = harness.value_of(task, "rounds").parse().unwrap();
            assert_eq!(now % step, 0, "task {task}");
        }
    };
    let hits = |harness: &mut Harness| match harness.ask_one(1, Command::Breakpoints) {
        Ok(Reply::Breakpoints(views)) => views.iter().map(|view| view.hits).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    ask(&mut harness, &all, catchpoint(1, "rounds % 50 == 0", false));
    run_on(&mut harness, &all, 1, 50);
    ask(&mut harness, &all, condition(1, "rounds % 30 == 0"));
    run_on(&mut harness, &all, 1, 30);
    assert_eq!(hits(&mut harness), [2]);
}

/// gdb itself would delete the catchpoint at the first call, whatever the condition.
#[test]
fn temporary_catchpoint_waits_for_its_condition() {
    let mut harness = Harness::new();
    let running = [Running::new(&harness, &[])];
    stopped(harness.ask_one(0, attach(&running)));
    let insert = catchpoint(1, "rounds % 20 == 0", true);
    harness.ask_one(0, insert).unwrap();
    let reason = stopped(harness.ask_one(0, Command::Continue)).reason;
    let is_it = matches!(reason, StopReason::Catch { number: 1, .. });
    assert!(is_it, "{reason:?}");
    let now: u64 = harness.value_of(0, "rounds").parse().unwrap();
    assert_eq!(now % 20, 0);
    let listed = harness.ask_one(0, Command::Breakpoints);
    assert_eq!(listed, Ok(Reply::Breakpoints(Vec::new())));
    // gdb 13 does not reap a process that is killed here, and the test would wait for it.
    harness.ask_one(0, Command::Detach).unwrap();
}

#[test]
fn breakpoint_stops_despite_false_condition_at_same_location() {
    let mut harness = Harness::new();
    let running: Vec<Running> = (0..2).map(|_| Running::new(&harness, &[])).collect();
    let all = IdSet::all_below(2);
    for (_, answer) in harness.ask_all(&all, attach(&running)) {
        stopped(answer);
    }
    for point in [breakpoint(1, Some("rounds < 0")), breakpoint(2, None)] {
        for (_, answer) in harness.ask_all(&all, point) {
            answer.unwrap();
        }
    }
    for (task, answer) in harness.ask_all(&all, Command::Continue) {
        let reason = stopped(answer).reason;
        assert_eq!(reason, StopReason::Breakpoint { number: 2 }, "task {task}");
    }
}

#[test]
fn unevaluable_condition_stops_no_task() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    harness.ask(breakpoint(1, Some("*(int *)8 == 1"))).unwrap();
    let run = harness.send(Command::Continue);
    harness.wait_event(said_why);
    harness.ask(Command::Interrupt).unwrap();
    let stop = stopped(harness.answer(run));
    assert_eq!(stop.reason, StopReason::Interrupted);
    harness.ask(condition(1, "rounds > 3 && n == 1")).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
}
