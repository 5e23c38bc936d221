//! Stopping running programs.

use std::time::Duration;

use sdm_backend_gdbmi::GdbConfig;
use sdm_debug::command::StepKind;
use sdm_debug::event::Stream;
use sdm_debug::reply::StopReason;
use sdm_debug::{Backend, Command, Event, FailureCode, Reply, TaskState};

use nix::sys::signal::{Signal, kill};

use crate::ends::gdb_of;
use crate::harness::{Harness, place, stopped};

#[test]
fn running_program_is_interrupted_and_continued() {
    for args in [&[][..], &["block"]] {
        let mut harness = Harness::new();
        let program = harness.compile("spin", &[]);
        harness.start(&program, args);
        let mut run = harness.send(Command::Continue);
        harness.wait_output(Stream::Stdout, "spinning");
        for _ in 0..3 {
            let failure = harness.evaluate("rounds").unwrap_err();
            assert_eq!(
                (failure.code, failure.text.as_str()),
                (FailureCode::Running, "running")
            );
            assert_eq!(
                harness.run_on().unwrap_err().code,
                FailureCode::AlreadyRunning
            );
            assert_eq!(harness.ask(Command::Interrupt), Ok(Reply::Done));
            let stop = stopped(harness.answer(run));
            assert_eq!(stop.reason, StopReason::Interrupted, "{args:?}");
            assert!(["main", "work"].contains(&place(&stop).0), "{stop:?}");
            assert_eq!(harness.ask(Command::Interrupt), Ok(Reply::Done));
            run = harness.send(Command::Continue);
        }
        harness.ask(Command::Interrupt).unwrap();
        stopped(harness.answer(run));
        // The signals that have stopped the program never reach it.
        let expression = "leave = 1".to_owned();
        harness.ask(Command::SetVariable { expression }).unwrap();
        assert!(
            matches!(harness.run_on(), Ok(Reply::Exited { code: 3, .. })),
            "{args:?}"
        );
    }
}

/// The commands go to gdb's command line, which would wait for the stop.
#[test]
fn program_is_interrupted_after_every_resuming_command() {
    let location = || "wait_for_ever".to_owned();
    let runs = [
        Command::ContinueSignal {
            signal: "0".to_owned(),
        },
        Command::Jump {
            location: "main".to_owned(),
        },
        Command::Until {
            location: Some(location()),
        },
        Command::Advance {
            location: location(),
        },
    ];
    for run in runs {
        let mut harness = Harness::new();
        let program = harness.compile("spin", &[]);
        harness.start(&program, &[]);
        let id = harness.send(run.clone());
        harness.wait_output(Stream::Stdout, "spinning");
        assert_eq!(harness.ask(Command::Interrupt), Ok(Reply::Done), "{run:?}");
        let stop = stopped(harness.answer(id));
        assert_eq!(stop.reason, StopReason::Interrupted, "{run:?}");
        assert_eq!(harness.evaluate("leave").unwrap().text, "0");
    }
}

#[test]
fn stop_in_helper_thread_is_shown_at_main_thread() {
    for helper in ["elsewhere", "unknown"] {
        let mut harness = Harness::new();
        let program = harness.compile("spin", &[]);
        harness.start(&program, &[helper]);
        let run = harness.send(Command::Continue);
        harness.wait_output(Stream::Stdout, "spinning");
        assert_eq!(harness.ask(Command::Interrupt), Ok(Reply::Done));
        let stop = stopped(harness.answer(run));
        assert_eq!(stop.reason, StopReason::Interrupted);
        assert!(["main", "work"].contains(&place(&stop).0), "{stop:?}");
        assert_eq!(harness.evaluate("leave").unwrap().text, "0");
        let step = Command::Step {
            kind: StepKind::Over,
            count: 1,
        };
        let stop = stopped(harness.ask(step));
        assert!(["main", "work"].contains(&place(&stop).0), "{stop:?}");
    }
}

#[test]
fn interrupt_racing_a_breakpoint_causes_one_stop() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "work").unwrap();
    let mut reasons = Vec::new();
    for _ in 0..40 {
        let run = harness.send(Command::Continue);
        let interrupt = harness.send(Command::Interrupt);
        assert_eq!(harness.answer(interrupt), Ok(Reply::Done));
        reasons.push(stopped(harness.answer(run)).reason);
    }
    // Without an interrupt only the breakpoint stops the program.
    for _ in 0..20 {
        let stop = stopped(harness.run_on());
        assert_eq!(
            stop.reason,
            StopReason::Breakpoint { number: 1 },
            "after {reasons:?}"
        );
    }
    harness.ask(Command::BreakDelete { number: 1 }).unwrap();
    let expression = "leave = 1".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    assert!(matches!(
        harness.run_on(),
        Ok(Reply::Exited { code: 3, .. })
    ));
}

#[test]
fn cancelled_run_continues_and_reports_its_stop_as_event() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    let run = harness.send(Command::Continue);
    harness.wait_output(Stream::Stdout, "spinning");
    harness.backend.cancel(std::time::Instant::now(), run);
    let failure = harness.answer(run).unwrap_err();
    assert_eq!(failure.code, FailureCode::Cancelled);
    assert_eq!(harness.state(), TaskState::Running);
    harness.ask(Command::Interrupt).unwrap();
    let event = harness.wait_event(|event| matches!(event, Event::Stopped(_)));
    assert!(matches!(event, Event::Stopped(stop) if stop.reason == StopReason::Interrupted));
}

/// Has gdb call a function that never returns, cancels that command, and checks that gdb answers the next question.
fn hang_and_cancel(harness: &mut Harness) {
    let expression = "wait_for_ever(0)".to_owned();
    let id = harness.send(Command::Evaluate { expression });
    harness.turn();
    harness.backend.cancel(std::time::Instant::now(), id);
    assert_eq!(harness.answer(id).unwrap_err().code, FailureCode::Cancelled);
    assert_eq!(harness.evaluate("1 + 1").unwrap().text, "2");
}

#[test]
fn hanging_query_times_out() {
    let config = GdbConfig {
        command_wait: Duration::from_secs(10),
        ..GdbConfig::default()
    };
    let mut harness = Harness::with(config);
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    // gdb calls a function of the program that never returns.
    let failure = harness.evaluate("wait_for_ever(0)").unwrap_err();
    assert_eq!(failure.code, FailureCode::TimedOut, "{failure}");
    hang_and_cancel(&mut harness);
}

/// A gdb that is interrupted before it has read the question begins with the question afterwards.
#[test]
fn gdb_interrupted_too_early_is_interrupted_again() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    kill(gdb_of(&harness), Signal::SIGSTOP).unwrap();
    // The stopped gdb is resumed, and reads the signal first.
    hang_and_cancel(&mut harness);
}
