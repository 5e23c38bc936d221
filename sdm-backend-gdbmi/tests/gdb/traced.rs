//! Breakpoints whose commands resume the task, at a place where it stops for another reason.

use sdm_debug::command::{BreakSpec, FrameSelect, StepKind, WatchKind, WatchSpec};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, Reply};

use crate::harness::{Harness, place, spec, stopped};
use crate::several::{BAD, Several};

fn at(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }
}

fn trace(number: u32, location: &str) -> BreakSpec {
    let commands = ["silent", "echo seen", "continue"];
    BreakSpec {
        commands: commands.map(str::to_owned).to_vec(),
        ..at(number, location)
    }
}

/// A breakpoint at `location` whose condition cannot be evaluated.
fn failing(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        condition: Some(BAD.to_owned()),
        ..at(number, location)
    }
}

fn watch(number: u32, expression: &str) -> Command {
    Command::WatchInsert(WatchSpec::new(number, expression, WatchKind::Write))
}

fn next(count: u32) -> Command {
    let kind = StepKind::Over;
    Command::Step { kind, count }
}

fn advance(location: &str) -> Command {
    let location = location.to_owned();
    Command::Advance { location }
}

fn until(location: Option<&str>) -> Command {
    let location = location.map(str::to_owned);
    Command::Until { location }
}

/// The line of a source with this text.
fn line(fixture: &str, text: &str) -> u32 {
    let path = format!("{}/tests/fixtures/{fixture}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    let at = source.lines().position(|line| line.contains(text));
    u32::try_from(at.expect(text) + 1).unwrap()
}

/// Takes the events so far. Returns the numbers of the breakpoints that have printed.
fn printed(harness: &mut Harness) -> Vec<u32> {
    let events = std::mem::take(&mut harness.events);
    let numbers = events.iter().filter_map(|(_, event)| match event {
        Event::Printed { number, text } => {
            assert_eq!(text, "seen");
            Some(*number)
        }
        _ => None,
    });
    numbers.collect()
}

/// The lines of `spin.c`: the first and second in `work`, its end, and the loop in `main`.
struct Lines {
    first: u32,
    second: String,
    end: u32,
    main: u32,
}

impl Several {
    /// Stops at the first line of `work`, and then runs the command with these breakpoints. Checks the reason and the
    /// line of the stop, and the breakpoints that have printed.
    fn run_from_work(
        &mut self,
        points: &[BreakSpec],
        run: Command,
        (reason, line, traced): (&str, u32, &[u32]),
    ) {
        self.begin(points);
        self.run_here(run, (reason, line, traced), &format!("{points:?}"));
    }

    fn run_here(&mut self, run: Command, expect: (&str, u32, &[u32]), why: &str) {
        self.harness.events.clear();
        let why = format!("{run:?} {why}");
        let stop = stopped(Ok(self.ask(run)));
        let (reason, line, traced) = expect;
        let said = format!("{:?}", stop.reason);
        assert!(said.starts_with(reason), "{said} {why}");
        assert_eq!(
            (place(&stop).1, &*printed(&mut self.harness)),
            (line, traced),
            "{why}"
        );
    }
}

/// The address in `main` to which `work` returns, as a location.
fn behind_call(all: &mut Several) -> String {
    all.begin(&[]);
    all.ask(Command::Finish);
    let expression = "(long)$pc".to_owned();
    match all.ask(Command::Evaluate { expression }) {
        Reply::Value(value) => format!("*{}", value.text),
        other => panic!("{other:?}"),
    }
}

fn lines() -> Lines {
    let first = line("spin.c", "rounds += n");
    let main = line("spin.c", "while (!leave)");
    Lines {
        first,
        second: format!("spin.c:{}", first + 1),
        end: first + 2,
        main,
    }
}

#[test]
fn watchpoint_at_the_line_of_a_trace_stops_the_task() {
    let at = lines();
    for is_shared in [false, true] {
        let mut all = Several::new(is_shared);
        all.begin(&[]);
        all.ask(watch(1, "rounds"));
        all.ask(Command::BreakInsert(trace(2, &at.second)));
        for (old, new) in [(0, 1), (1, 2)] {
            let stop = stopped(Ok(all.ask(Command::Continue)));
            let StopReason::Watchpoint(hit) = &stop.reason else {
                panic!("{:?}", stop.reason);
            };
            let values = [&hit.old, &hit.new].map(|it| it.as_ref().map(|it| it.text.clone()));
            assert_eq!(values, [old, new].map(|it| Some(it.to_string())));
            assert_eq!(
                (place(&stop), printed(&mut all.harness)),
                (("work", at.first + 1), vec![2])
            );
        }
        // gdb names the first alone.
        all.begin(&[trace(1, &at.second)]);
        all.ask(watch(2, "rounds"));
        for _ in 0..2 {
            let hit = "Watchpoint(WatchHit { number: 2";
            all.run_here(Command::Continue, (hit, at.first + 1, &[1]), "");
        }
    }
}

#[test]
fn watchpoint_scope_end_at_the_line_of_a_trace_stops_the_task() {
    let at = lines();
    for is_watch_first in [false, true] {
        let mut all = Several::new(false);
        let main = behind_call(&mut all);
        all.begin(&[]);
        let mut commands = [watch(1, "n"), Command::BreakInsert(trace(2, &main))];
        if !is_watch_first {
            commands.reverse();
        }
        for command in commands {
            all.ask(command);
        }
        let ended = "WatchpointScope { number: 1";
        all.run_here(Command::Continue, (ended, at.main, &[2]), "");
    }
}

#[test]
fn step_until_and_finish_end_at_the_line_of_a_trace() {
    let at = lines();
    for is_shared in [false, true] {
        let mut all = Several::new(is_shared);
        let main = behind_call(&mut all);
        let second = [trace(1, &at.second)];
        let in_main = [trace(1, &main)];
        all.run_from_work(&second, next(1), ("StepEnd", at.first + 1, &[1]));
        all.run_from_work(&second, next(2), ("StepEnd", at.end, &[1]));
        all.run_from_work(
            &second,
            until(None),
            ("LocationReached", at.first + 1, &[1]),
        );
        all.run_from_work(
            &second,
            until(Some(&at.second)),
            ("LocationReached", at.first + 1, &[1]),
        );
        all.run_from_work(
            &in_main,
            Command::Finish,
            ("FunctionFinished", at.main, &[1]),
        );
        all.run_from_work(&in_main, advance(&main), ("LocationReached", at.main, &[1]));
        all.run_from_work(
            &in_main,
            until(Some(&main)),
            ("LocationReached", at.main, &[1]),
        );
        let both = [trace(1, &at.second), trace(2, &at.second)];
        all.run_from_work(&both, next(3), ("StepEnd", at.main, &[1, 2]));
        // A condition that fails in the driver does not stop the task either.
        let failing = [failing(1, &main)];
        all.run_from_work(
            &failing,
            Command::Finish,
            ("FunctionFinished", at.main, &[]),
        );
        all.run_from_work(&failing, advance(&main), ("LocationReached", at.main, &[]));
    }
}

#[test]
fn step_over_a_call_with_a_trace_stays_in_the_calling_function() {
    let at = lines();
    let call = line("spin.c", "        work(1)");
    for is_shared in [false, true] {
        let mut all = Several::new(is_shared);
        all.run_from_work(
            &[trace(1, &at.second)],
            Command::Finish,
            ("Function", at.main, &[1]),
        );
        // From the loop's head to the call, and over it.
        for (run, reason) in [(next(1), "StepEnd"), (until(None), "LocationReached")] {
            all.run_here(next(1), ("StepEnd", call, &[]), "");
            all.run_here(run, (reason, at.main, &[1]), "");
        }
        all.run_here(next(4), ("StepEnd", at.main, &[1, 1]), "");
    }
}

#[test]
fn breakpoint_and_trace_at_one_line_stop_the_task() {
    let at = lines();
    for is_shared in [false, true] {
        let mut all = Several::new(is_shared);
        let line = at.first + 1;
        let points = [self::at(1, &at.second), trace(2, &at.second)];
        let hit = "Breakpoint { number: 1";
        all.run_from_work(&points, Command::Continue, (hit, line, &[2]));
        all.run_from_work(
            &[
                trace(1, &at.second),
                trace(2, &at.second),
                self::at(3, &at.second),
            ],
            Command::Continue,
            ("Breakpoint { number: 3", line, &[1, 2]),
        );
        let once = BreakSpec {
            temporary: true,
            ..trace(1, &at.second)
        };
        let points = [once, self::at(2, "work")];
        all.run_from_work(
            &points,
            Command::Continue,
            ("Breakpoint { number: 2", at.first, &[1]),
        );
        all.run_here(
            Command::Continue,
            ("Breakpoint { number: 2", at.first, &[]),
            "",
        );
    }
}

#[test]
fn step_is_completed_despite_traces_in_called_functions() {
    let mut harness = Harness::new();
    let program = harness.compile("traced", &[]);
    harness.start(&program, &[]);
    let mut number = 0;
    let inlined = format!("traced.c:{}", line("traced.c", "sum++"));
    for location in [&*inlined, "abort", "main"] {
        number += 1;
        harness
            .ask(Command::BreakInsert(trace(number, location)))
            .unwrap();
    }
    let first = line("traced.c", "    fault();");
    let mut run = |command, expect: (&str, &[u32])| {
        let stop = stopped(harness.ask(command));
        let said = format!("{:?}", stop.reason);
        assert!(said.starts_with(expect.0), "{said}");
        assert_eq!(printed(&mut harness), expect.1);
        stop.frame.map(|frame| (frame.function, frame.line))
    };
    let main = |line| Some(("main".to_owned(), line));
    // The program's handler takes the signal.
    for line in [first, first + 1, first + 2] {
        assert_eq!(run(next(1), ("StepEnd", &[])), main(line));
    }
    assert_eq!(run(next(1), ("StepEnd", &[1])), main(first + 3));
    run(Command::Continue, ("Internal { what: \"abort\"", &[2]));
    harness.ask(Command::Kill).unwrap();
    // A start stops at `main`.
    let stop = stopped(harness.ask(Command::Start(spec(&program, &[]))));
    assert_eq!(
        (stop.reason, printed(&mut harness)),
        (StopReason::AtMain, vec![3])
    );
}

/// gdb puts the program back where it was before the call, and the program does not continue, also if a handler of its
/// own takes the signal.
#[test]
fn signal_in_a_called_function_leaves_the_rank_in_place() {
    let mut harness = Harness::new();
    let program = harness.compile("traced", &[]);
    let mut stop = harness.start(&program, &[]);
    harness.break_at(1, "fault").unwrap();
    for function in ["main", "fault"] {
        assert_eq!(place(&stop).0, function);
        let expression = "((int (*)(int)) raise)(11)".to_owned();
        let failure = harness.ask(Command::Call { expression }).unwrap_err();
        assert!(
            failure.text.contains("GDB has restored the context"),
            "{failure}"
        );
        let Ok(Reply::Frame(view)) = harness.ask(Command::SelectFrame(FrameSelect::Current)) else {
            panic!("no frame");
        };
        assert_eq!(view.frame.function, function);
        assert_eq!(harness.evaluate("faults").unwrap().text, "0");
        let is_stop = |event: &Event| matches!(event, Event::Stopped(_));
        assert!(!harness.events.iter().any(|(_, event)| is_stop(event)));
        stop = stopped(harness.run_on());
    }
}

/// If nothing follows the call in its line, the program returns to the next line.
#[test]
fn step_out_of_a_library_ends_behind_the_last_call_of_a_line() {
    let at = lines();
    for is_shared in [false, true] {
        let mut all = Several::new(is_shared);
        all.begin(&[self::at(1, "usleep")]);
        let hit = "Breakpoint { number: 1";
        all.run_here(Command::Continue, (hit, at.first + 1, &[]), "");
        all.run_here(next(1), ("StepEnd", at.end, &[]), "");
    }
}
