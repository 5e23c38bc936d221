//! Tests of signals, kills and gdb's own death.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_debug::command::StopAt;
use sdm_debug::event::Stream;
use sdm_debug::reply::StopReason;
use sdm_debug::{
    Backend, Command, EndPolicy, Event, FailureCode, LauncherDuties, Reply, TaskState,
};

use crate::harness::{Harness, place, processes_of, stopped, task};

#[test]
fn segfault_stops_the_program_and_then_ends_it() {
    let mut harness = Harness::new();
    let program = harness.compile("crash", &[]);
    harness.start(&program, &["segv"]);
    let stop = stopped(harness.run_on());
    assert_eq!(
        stop.reason,
        StopReason::Signal {
            name: "SIGSEGV".to_owned(),
            meaning: "Segmentation fault".to_owned(),
        }
    );
    assert_eq!(place(&stop), ("read_through", 15));
    assert_eq!(harness.evaluate("pointer").unwrap().text, "0x0");
    let signal = "SIGSEGV".to_owned();
    assert_eq!(harness.run_on(), Ok(Reply::Signalled { signal }));
    assert_eq!(harness.state(), TaskState::Signalled("SIGSEGV".to_owned()));
}

#[test]
fn passed_signals_are_reported() {
    let mut harness = Harness::new();
    let program = harness.compile("crash", &[]);
    harness.start(&program, &["usr1"]);
    assert!(matches!(
        harness.run_on(),
        Ok(Reply::Exited { code: 7, .. })
    ));
    harness.wait_output_end();
    assert_eq!(harness.output(Stream::Stdout), b"caught 10\ncaught 10\n");
    let passed = |event: &Event| matches!(event, Event::SignalPassed { name } if name == "SIGUSR1");
    assert_eq!(
        harness
            .events
            .iter()
            .filter(|(_, event)| passed(event))
            .count(),
        2
    );
    harness.start(&program, &["term"]);
    let signal = "SIGTERM".to_owned();
    assert_eq!(harness.run_on(), Ok(Reply::Signalled { signal }));
}

#[test]
fn kill_ends_running_and_stopped_programs() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &["block"]);
    assert_eq!(harness.ask(Command::Kill), Ok(Reply::Done));
    harness.start(&program, &["block"]);
    let run = harness.send(Command::Continue);
    harness.wait_output(Stream::Stdout, "spinning");
    assert_eq!(harness.ask(Command::Kill), Ok(Reply::Done));
    let signal = "SIGKILL".to_owned();
    assert_eq!(harness.answer(run), Ok(Reply::Signalled { signal }));
    let failure = harness.ask(Command::Kill).unwrap_err();
    assert_eq!(failure.text, "not running (ended by SIGKILL)");
    // A kill also works during a start.
    let start = harness.send(Command::Start(crate::harness::spec(&program, &[])));
    assert_eq!(harness.ask(Command::Kill), Ok(Reply::Done));
    assert!(harness.answer(start).is_err());
}

#[test]
fn signal_sent_during_start_is_not_lost() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    let signal = "SIGTERM".to_owned();
    let mut spec = crate::harness::spec(&program, &[]);
    for stop in [StopAt::Nowhere, StopAt::Main] {
        spec.stop = stop;
        let start = harness.send(Command::Start(spec.clone()));
        for _ in 0..2 {
            harness
                .backend
                .signal_programs(&task(), Signal::SIGTERM as i32, true);
        }
        let started = harness.answer(start);
        let ended = match stop {
            StopAt::Nowhere => started,
            StopAt::Main => {
                assert_eq!(place(&stopped(started)).0, "main");
                harness.run_on()
            }
        };
        let signal = signal.clone();
        assert_eq!(ended, Ok(Reply::Signalled { signal }));
    }
}

#[test]
fn detached_program_runs_to_its_end() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &["7"]);
    harness.break_at(1, "twice").unwrap();
    assert_eq!(harness.ask(Command::Detach), Ok(Reply::Done));
    let ended = harness.wait_event(|event| matches!(event, Event::Exited { .. }));
    assert_eq!(ended, Event::Exited { code: 7 });
    assert_eq!(harness.state(), TaskState::Exited(7));
    harness.wait_output_end();
    assert_eq!(harness.output(Stream::Stdout), b"total 96 x 1\n");
    // A running program is detached while it runs, also by the end of the session.
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    let run = harness.send(Command::Continue);
    harness.wait_output(Stream::Stdout, "spinning");
    harness.backend.shut_down(Instant::now(), EndPolicy::Detach);
    assert_eq!(harness.answer(run), Ok(Reply::Detached));
    harness.wait("the end", |harness| harness.backend.is_down().then_some(()));
    assert!(harness.backend.is_leaving());
    harness.backend.signal_left(Signal::SIGTERM as i32);
    let ended = harness.wait_event(|event| matches!(event, Event::Signalled { .. }));
    let signal = "SIGTERM".to_owned();
    assert_eq!(ended, Event::Signalled { signal });
    assert!(!harness.backend.is_leaving());
    assert_eq!(harness.backend.left_code(), Some(128 + 15));
}

pub(crate) fn gdb_of(harness: &Harness) -> Pid {
    let found = processes_of(&harness.directory);
    let gdb = found.iter().find(|(_, line)| line.contains("-i=mi3"));
    Pid::from_raw(gdb.expect("a gdb").0)
}

#[test]
fn killed_gdb_is_reported_and_ends_its_program() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    let run = harness.send(Command::Continue);
    harness.wait_output(Stream::Stdout, "spinning");
    kill(gdb_of(&harness), Signal::SIGKILL).unwrap();
    let failure = harness.answer(run).unwrap_err();
    assert_eq!(failure.code, FailureCode::GdbDead);
    assert!(failure.text.contains("SIGKILL"), "{failure}");
    harness.wait_event(|event| matches!(event, Event::GdbDied { .. }));
    assert_eq!(harness.state(), TaskState::GdbDead);
    assert_eq!(
        harness.evaluate("1").unwrap_err().code,
        FailureCode::GdbDead
    );
    harness.wait("the program's end", |harness| {
        processes_of(&harness.directory).is_empty().then_some(())
    });
    // The task can be started again.
    harness.start(&program, &[]);
}

#[test]
fn gdb_killed_during_start_fails_the_start() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    let start = harness.send(Command::Start(crate::harness::spec(&program, &[])));
    kill(gdb_of(&harness), Signal::SIGKILL).unwrap();
    assert_eq!(
        harness.answer(start).unwrap_err().code,
        FailureCode::GdbDead
    );
    // gdb begins with a helper, `iconv -l`, which ends by itself.
    harness.wait("the end of gdb's helper", |harness| {
        processes_of(&harness.directory).is_empty().then_some(())
    });
}

#[test]
fn stopped_gdb_does_not_prevent_the_shutdown() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    harness.send(Command::Continue);
    harness.wait_output(Stream::Stdout, "spinning");
    kill(gdb_of(&harness), Signal::SIGSTOP).unwrap();
    harness.shut_down();
}

#[test]
fn four_tasks_start_and_exit_together() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    let all = sdm_idset::IdSet::all_below(4);
    let id = harness.send_to(&all, Command::Start(crate::harness::spec(&program, &["3"])));
    for _ in 0..4 {
        stopped(harness.answer(id));
    }
    let id = harness.send_to(&all, Command::Continue);
    for _ in 0..4 {
        let answer = harness.answer(id);
        assert!(
            matches!(answer, Ok(Reply::Exited { code: 3, .. })),
            "{answer:?}"
        );
    }
}
