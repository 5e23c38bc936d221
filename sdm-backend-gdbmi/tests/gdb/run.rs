//! Tests of start, continue, step, finish, evaluate and exits.

use sdm_debug::command::{StepKind, StopAt};
use sdm_debug::event::Phase;
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, FailureCode, Reply, TaskState};

use crate::harness::{Harness, place, spec, stopped};

#[test]
fn program_stops_at_main_and_exits_with_its_code() {
    for code in [0, 8, 10, 255] {
        let mut harness = Harness::new();
        let program = harness.compile("steps", &[]);
        let stop = harness.start(&program, &[&code.to_string()]);
        assert_eq!(place(&stop), ("main", 26));
        assert!(stop.source.unwrap().contains("struct point point"));
        assert_eq!(harness.state(), TaskState::Stopped);
        let phases: Vec<Phase> = harness
            .events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Progress(phase) => Some(*phase),
                _ => None,
            })
            .collect();
        assert_eq!(phases, [Phase::Gdb, Phase::Symbols, Phase::Running]);
        let answer = harness.run_on();
        let before_finalize = false;
        assert_eq!(
            answer,
            Ok(Reply::Exited {
                code,
                before_finalize
            })
        );
        assert_eq!(harness.state(), TaskState::Exited(code));
        let failure = harness.evaluate("1").unwrap_err();
        assert_eq!(failure.code, FailureCode::NotRunning);
        assert_eq!(failure.text, format!("not running (exited {code})"));
        harness.wait_output_end();
    }
}

#[test]
fn step_next_and_finish_stop_at_their_lines() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let step = |kind, count| Command::Step { kind, count };
    let stop = stopped(harness.ask(step(StepKind::Over, 1)));
    assert_eq!(
        (stop.reason.clone(), place(&stop)),
        (StopReason::StepEnd, ("main", 27))
    );
    let stop = stopped(harness.ask(step(StepKind::Over, 2)));
    assert_eq!(place(&stop), ("main", 29));
    let stop = stopped(harness.ask(step(StepKind::Into, 1)));
    assert_eq!(place(&stop), ("twice", 20));
    let stop = stopped(harness.ask(Command::Finish));
    let StopReason::FunctionFinished { value: Some(value) } = stop.reason else {
        panic!("{stop:?}");
    };
    assert_eq!(value.text, "0");
    let stop = stopped(harness.ask(step(StepKind::Instruction, 1)));
    assert_eq!(place(&stop).0, "main");
    let stop = stopped(harness.ask(step(StepKind::InstructionOver, 3)));
    assert_eq!(place(&stop).0, "main");
}

#[test]
fn values_are_read_and_set() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "depth").unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
    assert_eq!(harness.evaluate("n + 1").unwrap().text, "6");
    let failure = harness.evaluate("nosuch").unwrap_err();
    assert_eq!(failure.code, FailureCode::Gdb);
    assert!(failure.text.contains("nosuch"), "{failure}");
    let expression = "n = 3".to_owned();
    assert_eq!(
        harness.ask(Command::SetVariable { expression }),
        Ok(Reply::Done)
    );
    assert_eq!(harness.evaluate("n").unwrap().text, "3");
    let line = "print n * 2".to_owned();
    assert_eq!(
        harness.ask(Command::Console { line }),
        Ok(Reply::Text("$1 = 6\n".to_owned()))
    );
    let line = "info nothing".to_owned();
    assert_eq!(
        harness.ask(Command::Console { line }).unwrap_err().code,
        FailureCode::Gdb
    );
    harness
        .ask(Command::SelectFrame(
            sdm_debug::command::FrameSelect::Level(1),
        ))
        .unwrap();
    let Ok(Reply::Variables(locals)) = harness.ask(Command::Locals) else {
        panic!("no locals");
    };
    let point = locals.iter().find(|local| local.name == "point").unwrap();
    assert!(
        point.value.text.starts_with("{x = 1, y = 2.5, name = 0x"),
        "{point:?}"
    );
    let Ok(Reply::Variables(arguments)) = harness.ask(Command::Arguments) else {
        panic!("no arguments");
    };
    assert_eq!(arguments[0].name, "argc");
    assert_eq!(arguments[0].value.text, "1");
}

#[test]
fn value_cut_by_the_limit_is_marked() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    harness.start(&program, &[]);
    let line = "set print repeats unlimited".to_owned();
    harness.ask(Command::Console { line }).unwrap();
    let whole = harness.evaluate("*(short (*)[1000])buffer").unwrap();
    assert!(whole.cut.is_none(), "{whole:?}");
    let before = harness.evaluate("*(short (*)[3000])buffer").unwrap();
    assert_eq!(before.text.len(), sdm_backend_gdbmi::VALUE_BYTES_MAX);
    let (bytes, _) = before.cut.expect("cut");
    assert!(bytes > 8_000, "{bytes}");
    harness.evaluate("buffer[5998] = 'y'").unwrap();
    let after = harness.evaluate("*(short (*)[3000])buffer").unwrap();
    assert_eq!(before.text, after.text);
    assert_ne!(before.cut, after.cut);
    // Elements that gdb itself leaves out count too.
    let line = "set print elements 10".to_owned();
    harness.ask(Command::Console { line }).unwrap();
    let print = |expression: &str| Command::Print {
        format: String::new(),
        expression: expression.to_owned(),
    };
    let mut printed = || match harness.ask(print("*(short (*)[3000])buffer")) {
        Ok(Reply::Value(value)) => value,
        other => panic!("{other:?}"),
    };
    let before = printed();
    assert_eq!(before.cut.unwrap().0, 6000, "{before:?}");
    assert_eq!(before, printed());
    harness.evaluate("buffer[5998] = 'z'").unwrap();
    let mut printed = || harness.ask(print("*(short (*)[3000])buffer"));
    assert_ne!(printed(), Ok(Reply::Value(before)));
    let failure = harness.ask(print("*(short (*)[10000000])buffer"));
    let failure = failure.unwrap_err();
    // gdb 18 reads up to the limit, which is beyond the program's memory.
    let is_read = failure.text.starts_with("Cannot access memory");
    assert!(
        is_read || failure.hint.contains("set max-value-size"),
        "{failure}"
    );
}

#[test]
fn start_without_stop_is_answered_at_exit() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    let mut spec = spec(&program, &["9"]);
    spec.stop = StopAt::Nowhere;
    let answer = harness.ask(Command::Start(spec));
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 9, .. })),
        "{answer:?}"
    );
}

#[test]
fn stripped_program_stops_at_its_entry_point() {
    for options in [
        &["-s", "-pie", "-fPIE"][..],
        &["-s", "-no-pie"],
        &["-s", "-static"],
    ] {
        let mut harness = Harness::new();
        let program = harness.compile("steps", options);
        let stop = stopped(harness.ask(Command::Start(spec(&program, &["5"]))));
        assert_eq!(stop.reason, StopReason::AtEntry, "{options:?}");
        let frame = stop.frame.unwrap();
        assert!(frame.function.starts_with("steps+0x"), "{frame:?}");
        let answer = harness.run_on();
        assert!(
            matches!(answer, Ok(Reply::Exited { code: 5, .. })),
            "{answer:?}"
        );
    }
}

#[test]
fn failed_start_names_its_reason() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    let check = |harness: &mut Harness, spec, code, text: &str| {
        let failure = harness.ask(Command::Start(spec)).unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.text.contains(text), "{failure}");
        assert_eq!(harness.state(), TaskState::Absent);
    };
    let mut nowhere = spec(&program, &[]);
    nowhere.program = b"./nosuch".to_vec();
    check(
        &mut harness,
        nowhere,
        FailureCode::NotFound,
        "./nosuch: no such file",
    );
    let mut directory = spec(&program, &[]);
    directory.directory = Some(b"/nosuch".to_vec());
    check(
        &mut harness,
        directory,
        FailureCode::NoProgram,
        "directory /nosuch: no such file",
    );
    let mut gdb = spec(&program, &[]);
    gdb.gdb = Some(b"/nosuch/gdb".to_vec());
    check(&mut harness, gdb, FailureCode::NoGdb, "/nosuch/gdb");
    let mut not_gdb = spec(&program, &[]);
    not_gdb.gdb = Some(b"/bin/false".to_vec());
    let failure = harness.ask(Command::Start(not_gdb)).unwrap_err();
    assert_eq!(failure.code, FailureCode::GdbDead, "{failure}");
    // The task can still be started.
    harness.start(&program, &[]);
    let again = harness
        .ask(Command::Start(spec(&program, &[])))
        .unwrap_err();
    assert_eq!(again.code, FailureCode::AlreadyRunning);
}

#[test]
fn an_ended_program_is_started_again_with_its_breakpoints() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &["3"]);
    harness.break_at(4, "twice").unwrap();
    harness.ask(Command::Kill).unwrap();
    assert_eq!(harness.state(), TaskState::Signalled("SIGKILL".to_owned()));
    harness.start(&program, &["3"]);
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 4 });
}

#[test]
fn commands_before_a_start_are_refused() {
    let mut harness = Harness::new();
    assert_eq!(harness.state(), TaskState::Absent);
    for command in [
        Command::Continue,
        Command::Kill,
        Command::Interrupt,
        Command::Locals,
    ] {
        let failure = harness.ask(command).unwrap_err();
        assert_eq!(
            (failure.code, failure.text.as_str()),
            (FailureCode::NotRunning, "not started")
        );
    }
}
