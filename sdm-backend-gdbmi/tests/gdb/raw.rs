//! Commands in gdb's own words, on its command line and in MI.

use sdm_debug::event::Stream;
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, FailureCode, Reply, TaskState};

use crate::harness::{Harness, place};

fn mi(line: &str) -> Command {
    Command::Mi {
        line: line.to_owned(),
    }
}

#[test]
fn mi_commands_are_passed_through() {
    let mut harness = Harness::new();
    let not_yet = harness.ask(mi("-stack-info-depth")).unwrap_err();
    assert_eq!(not_yet.code, FailureCode::NotRunning);
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let Ok(Reply::Mi { result, printed }) = harness.ask(mi("-stack-info-depth")) else {
        panic!("no MI");
    };
    assert_eq!(
        (result.as_str(), printed.as_str()),
        ("^done,depth=\"1\"", "")
    );
    let line = "-interpreter-exec console \"echo a\\\\n\"";
    let Ok(Reply::Mi { result, printed }) = harness.ask(mi(line)) else {
        panic!("no MI");
    };
    assert_eq!((result.as_str(), printed.as_str()), ("^done", "a\n"));
    let failure = harness.ask(mi("-no-such-thing")).unwrap_err();
    assert_eq!(failure.code, FailureCode::Gdb);
    assert!(failure.text.contains("no-such-thing"), "{failure}");
    for bad in ["", "print 1", "-a\n-b", "12-stack-info-depth", "-gdb-exit"] {
        let failure = harness.ask(mi(bad)).unwrap_err();
        assert_eq!(failure.code, FailureCode::BadCommand, "{bad}");
    }
    // A run begun by MI belongs to no command, so its stop is an event.
    let answer = harness.ask(mi("-exec-next"));
    assert!(matches!(answer, Ok(Reply::Mi { .. })), "{answer:?}");
    let Event::Stopped(stop) = harness.wait_event(|event| matches!(event, Event::Stopped(_)))
    else {
        unreachable!("asked for one");
    };
    assert_eq!(stop.reason, StopReason::StepEnd);
    assert_eq!(place(&stop).0, "main");
    assert_eq!(harness.state(), TaskState::Stopped);
}

#[test]
fn mi_query_fails_while_a_console_continue_runs_the_program() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    let line = "continue&".to_owned();
    assert!(harness.ask(Command::Console { line }).is_ok());
    harness.wait_output(Stream::Stdout, "spinning");
    assert_eq!(harness.state(), TaskState::Running);
    let failure = harness.ask(mi("-stack-info-depth")).unwrap_err();
    assert_eq!(failure.code, FailureCode::Gdb);
    assert_eq!(harness.ask(Command::Interrupt), Ok(Reply::Done));
    let answer = harness.ask(mi("-thread-info"));
    assert!(
        matches!(&answer, Ok(Reply::Mi { result, .. }) if result.starts_with("^done,threads=[{")),
        "{answer:?}"
    );
}

/// gdb asks whether it shall go on after an internal error or warning, and answers itself with yes where nobody is asked.
#[test]
fn gdb_survives_its_internal_errors() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let console = |line: &str| Command::Console {
        line: line.to_owned(),
    };
    for what in ["internal-error", "internal-warning", "demangler-warning"] {
        let _ = harness.ask(console(&format!("maintenance {what} of this test")));
        let answer = harness.ask(console("print 6*7"));
        assert!(
            matches!(&answer, Ok(Reply::Text(text)) if text.contains("= 42")),
            "{what}: {answer:?}"
        );
    }
}
