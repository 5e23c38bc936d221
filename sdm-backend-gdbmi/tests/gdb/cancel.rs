//! Cancelled commands leave nothing in gdb: no breakpoints, settings or interrupts.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_debug::command::{BreakSpec, CatchEvent, CatchSpec, WatchKind, WatchSpec};
use sdm_debug::event::Stream;
use sdm_debug::reply::StopReason;
use sdm_debug::{Backend, Command, FailureCode, Reply, TaskState};

use crate::harness::{Harness, stopped};

/// Numbers of turns of the event loop after which a command is cancelled. After 0 turns gdb has not read a byte of
/// the command.
const TURNS: std::ops::Range<usize> = 0..5;

/// Breakpoints, the setting `may-call-functions` and the handling of signals in gdb, in its own words.
fn held_by_gdb(harness: &mut Harness) -> Vec<String> {
    let lines = ["-break-list", "-gdb-show may-call-functions"];
    let mut held = Vec::new();
    for line in lines {
        let line = line.to_owned();
        let Ok(Reply::Mi { result, .. }) = harness.ask(Command::Mi { line }) else {
            panic!("no MI");
        };
        held.push(result);
    }
    let line = "info signals".to_owned();
    let Ok(Reply::Text(signals)) = harness.ask(Command::Console { line }) else {
        panic!("no text");
    };
    held.push(signals);
    held
}

fn makers() -> Vec<Command> {
    let point = |location: &str, regex| {
        Command::BreakInsert(BreakSpec {
            number: 7,
            location: location.to_owned(),
            regex,
            ..BreakSpec::default()
        })
    };
    let watch = |location, condition: Option<&str>| {
        Command::WatchInsert(WatchSpec {
            number: 7,
            expression: "rounds".to_owned(),
            kind: WatchKind::Write,
            location,
            condition: condition.map(ToOwned::to_owned),
            ignore: 1,
        })
    };
    let catch = Command::CatchInsert(CatchSpec {
        number: 7,
        event: CatchEvent::Fork,
        condition: Some("1 == 1".to_owned()),
        temporary: false,
    });
    let object = Command::VarCreate {
        name: "fresh".to_owned(),
        expression: "1 + 1".to_owned(),
    };
    vec![
        point("main", false),
        point(".", true),
        watch(false, None),
        watch(true, Some("1 == 1")),
        catch,
        object,
    ]
}

#[test]
fn cancelled_command_leaves_no_object_in_gdb() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "main").unwrap();
    let before = held_by_gdb(&mut harness);
    let mut cancelled = 0;
    for command in makers() {
        for turns in TURNS {
            let id = harness.send(command.clone());
            (0..turns).for_each(|_| harness.turn());
            harness.backend.cancel(Instant::now(), id);
            let answer = harness.answer(id);
            let at = format!("{command:?} cancelled after {turns} turns: {answer:?}");
            match answer {
                Err(failure) if failure.code == FailureCode::Cancelled => cancelled += 1,
                // The command was completed before, or is not possible here.
                Ok(Reply::VarObject(_)) => {
                    let name = "fresh".to_owned();
                    harness.ask(Command::VarDelete { name }).expect(&at);
                }
                Ok(_) => {
                    let gone = harness.ask(Command::BreakDelete { number: 7 });
                    gone.expect(&at);
                }
                Err(failure) => assert_eq!(failure.code, FailureCode::Gdb, "{at}"),
            }
            assert_eq!(held_by_gdb(&mut harness), before, "{at}");
        }
        // The name and the number are free, so the driver's records and gdb's agree.
        match harness.ask(command.clone()) {
            Ok(Reply::VarObject(_)) => {
                let name = "fresh".to_owned();
                harness.ask(Command::VarDelete { name }).unwrap();
            }
            Ok(_) => drop(harness.ask(Command::BreakDelete { number: 7 }).unwrap()),
            Err(failure) => assert_eq!(failure.code, FailureCode::Gdb, "{command:?}"),
        }
    }
    // Each command is cancelled at least in the turn in which gdb has not read it.
    assert!(cancelled >= makers().len(), "{cancelled} were cancelled");
    harness.shut_down();
}

#[test]
fn foreign_sigint_is_reported_after_a_cancelled_interrupt() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &[]);
    for turns in TURNS {
        // gdb must not pass a SIGINT on to the program.
        let run = harness.send(Command::Continue);
        harness.wait_output(Stream::Stdout, "spinning");
        let id = harness.send(Command::Interrupt);
        (0..turns).for_each(|_| harness.turn());
        harness.backend.cancel(Instant::now(), id);
        let answer = harness.answer(id);
        let at = format!("cancelled after {turns} turns: {answer:?}");
        // The next interrupt stops the program, whether the cancelled one is still on its way or was discarded.
        if harness.state() == TaskState::Running {
            harness.ask(Command::Interrupt).expect(&at);
        }
        let stop = stopped(harness.answer(run));
        assert_eq!(stop.reason, StopReason::Interrupted, "{at}");
        let run = harness.send(Command::Continue);
        let line = "-list-thread-groups".to_owned();
        let Ok(Reply::Mi { result, .. }) = harness.ask(Command::Mi { line }) else {
            panic!("no MI");
        };
        let pid = result
            .split("pid=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let pid = Pid::from_raw(pid.unwrap().parse().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        let stop = stopped(harness.answer(run));
        let is_signal = matches!(&stop.reason, StopReason::Signal { name, .. } if name == "SIGINT");
        assert!(is_signal, "{at}: {:?}", stop.reason);
    }
    harness.shut_down();
}
