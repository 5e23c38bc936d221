//! Tests of breakpoints: the front-end's and SDM's internal ones.

use sdm_debug::command::{BreakSpec, StopAt};
use sdm_debug::event::Stream;
use sdm_debug::reply::{BreakpointPlace, StopReason};
use sdm_debug::{Command, FailureCode, Reply, TaskState};

use crate::harness::{Harness, place, spec, stopped};

fn insert(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }
}

/// MI reports a missing location by text only; the texts are those of every gdb that runs these tests.
#[test]
fn break_at_unknown_location_has_its_own_error_code() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    for (number, location, text) in [
        (11, "nowhere", "Function \"nowhere\" not defined."),
        (12, "nosuch.c:3", "No source file named nosuch.c."),
        (13, "steps.c:99999", "99999 in file \"steps.c\"."),
        (
            14,
            "steps.c:nowhere",
            "Function \"nowhere\" not defined in \"steps.c\".",
        ),
    ] {
        let failure = harness.break_at(number, location).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoSuchPlace, "{failure}");
        assert!(failure.text.ends_with(text), "{failure}");
    }
    let other = BreakSpec {
        condition: Some("nosuch".to_owned()),
        ..insert(15, "twice")
    };
    let failure = harness.ask(Command::BreakInsert(other)).unwrap_err();
    assert_eq!(failure.code, FailureCode::Gdb, "{failure}");
}

#[test]
fn breakpoints_take_line_function_condition_and_address() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let answer = harness.break_at(11, "steps.c:21");
    assert_eq!(
        answer,
        Ok(Reply::Breakpoint(BreakpointPlace {
            number: 11,
            pending: false,
            places: vec![("twice".to_owned(), "steps.c".to_owned(), 21)],
        }))
    );
    let twice = harness.break_at(11, "main").unwrap_err();
    assert_eq!(twice.code, FailureCode::BadCommand);
    let stop = stopped(harness.run_on());
    assert_eq!(
        (stop.reason.clone(), place(&stop)),
        (StopReason::Breakpoint { number: 11 }, ("twice", 21))
    );
    let enable = |number, enabled| Command::BreakEnable { number, enabled };
    assert_eq!(harness.ask(enable(11, false)), Ok(Reply::Done));
    let conditional = BreakSpec {
        condition: Some("n == 5 && \"a b\"[0] == 'a'".to_owned()),
        temporary: true,
        ..insert(12, "twice")
    };
    harness.ask(Command::BreakInsert(conditional)).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 12 });
    assert_eq!(harness.evaluate("n").unwrap().text, "5");
    // The temporary breakpoint is deleted.
    let gone = harness
        .ask(Command::BreakDelete { number: 12 })
        .unwrap_err();
    assert_eq!(gone.code, FailureCode::NoSuchThing);
    let counted = BreakSpec {
        ignore: 2,
        hardware: true,
        ..insert(13, "steps.c:20")
    };
    harness.ask(Command::BreakInsert(counted)).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 13 });
    assert_eq!(harness.evaluate("n").unwrap().text, "8");
    assert_eq!(
        harness.ask(Command::BreakDelete { number: 13 }),
        Ok(Reply::Done)
    );
    let address = harness.evaluate("(long)&depth").unwrap().text;
    harness.break_at(14, &format!("*{address}")).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 14 });
    assert_eq!(
        harness.ask(enable(99, true)).unwrap_err().code,
        FailureCode::NoSuchThing
    );
}

#[test]
fn missing_location_is_refused_or_left_pending() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let refused = harness.break_at(1, "nosuch").unwrap_err();
    assert_eq!(refused.code, FailureCode::NoSuchPlace);
    assert!(refused.text.contains("nosuch"), "{refused}");
    let pending = BreakSpec {
        pending: true,
        ..insert(2, "nosuch")
    };
    let answer = harness.ask(Command::BreakInsert(pending));
    let Ok(Reply::Breakpoint(place)) = answer else {
        panic!("{answer:?}");
    };
    assert!(place.pending && place.places.is_empty());
}

#[test]
fn breakpoint_is_inserted_while_the_program_runs() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    let run = harness.send(Command::Continue);
    harness.wait_output(Stream::Stdout, "spinning");
    assert_eq!(harness.state(), TaskState::Running);
    let conditional = BreakSpec {
        condition: Some("rounds > 20".to_owned()),
        ..insert(5, "work")
    };
    let made = harness.ask(Command::BreakInsert(conditional));
    assert!(matches!(made, Ok(Reply::Breakpoint(_))), "{made:?}");
    let stop = stopped(harness.answer(run));
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 5 });
    let run = harness.send(Command::Continue);
    stopped(harness.answer(run));
    harness.ask(Command::BreakDelete { number: 5 }).unwrap();
    let run = harness.send(Command::Continue);
    harness.ask(Command::Interrupt).unwrap();
    assert_eq!(stopped(harness.answer(run)).reason, StopReason::Interrupted);
}

#[test]
fn call_of_abort_stops_the_program_before_sigabrt() {
    let mut harness = Harness::new();
    let program = harness.compile("crash", &[]);
    harness.start(&program, &["abort"]);
    let stop = stopped(harness.run_on());
    let what = "abort".to_owned();
    assert_eq!(stop.reason, StopReason::Internal { what });
    assert_eq!(place(&stop).0, "main");
    assert_eq!(stop.inside.as_deref(), Some("abort"));
    let stop = stopped(harness.run_on());
    assert!(matches!(stop.reason, StopReason::Signal { ref name, .. } if name == "SIGABRT"));
    let signal = "SIGABRT".to_owned();
    assert_eq!(harness.run_on(), Ok(Reply::Signalled { signal }));
}

#[test]
fn exit_before_mpi_finalize_stops_the_program() {
    let mut harness = Harness::new();
    let program = harness.compile("fake_mpi", &[]);
    harness.start(&program, &["leave"]);
    let stop = stopped(harness.run_on());
    let what = "_exit before MPI_Finalize with code 4".to_owned();
    assert_eq!(stop.reason, StopReason::Internal { what });
    assert_eq!(place(&stop).0, "main");
    assert_eq!(
        harness.run_on(),
        Ok(Reply::Exited {
            code: 4,
            before_finalize: true
        })
    );
    // The internal breakpoints are set again in another run, even if its start does not stop anywhere.
    let mut start = spec(&program, &["abort"]);
    start.stop = StopAt::Nowhere;
    let stop = stopped(harness.ask(Command::Start(start)));
    let what = "MPI_Abort with code 5".to_owned();
    assert_eq!(stop.reason, StopReason::Internal { what });
    harness.ask(Command::Kill).unwrap();
    // A correct program is not stopped, nor is a step over `MPI_Init`.
    harness.start(&program, &[]);
    for line in [25, 26] {
        let count = 1;
        let kind = sdm_debug::command::StepKind::Over;
        let stop = stopped(harness.ask(Command::Step { kind, count }));
        assert_eq!(
            (stop.reason.clone(), place(&stop)),
            (StopReason::StepEnd, ("main", line))
        );
    }
    assert_eq!(
        harness.run_on(),
        Ok(Reply::Exited {
            code: 6,
            before_finalize: false
        })
    );
}
