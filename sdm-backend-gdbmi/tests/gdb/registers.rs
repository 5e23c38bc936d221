//! Registers that gdb does not know, with and without the library that completes its writes.
//!
//! gdb sees a processor with AMX (`scripts/crippled-gdb`), whatever the real one is.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use sdm_child::{Completion, StartConfig};
use sdm_debug::command::{Arrangement, AttachSpec, BreakSpec, StartSpec, StepKind};
use sdm_debug::event::Stream;
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, Failure, FailureCode, Reply};
use sdm_idset::IdSet;

use crate::attach::Running;
use crate::harness::{Answer, Harness, place, spec, stopped};

/// The error for a command that would write vector registers.
const REFUSAL: &str = "cannot write registers on this processor (its register state is larger than this gdb supports); \
                       use gdb 14 or later: --gdb PATH";

/// A gdb that cannot write vector registers; `None` if none is available.
fn crippled(name: &str, options: &[&str]) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("sdm-{name}-{}", std::process::id()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/crippled-gdb");
    let made = Process::new(script).args(options).arg(&folder).output();
    let made = made.unwrap();
    if !made.status.success() {
        println!("SKIP: {}", String::from_utf8_lossy(&made.stderr).trim());
        return None;
    }
    Some(folder.join("gdb"))
}

/// Runs a test with a gdb that cannot write vector registers, if there is one. The gdb's directory is removed
/// afterwards.
fn with_crippled(name: &str, options: &[&str], completion: Completion, test: impl FnOnce(Harness)) {
    let Some(gdb) = crippled(name, options) else {
        return;
    };
    let folder = gdb.parent().unwrap().to_owned();
    test(Harness::starting(StartConfig {
        gdb: Some(gdb),
        completion,
        ..StartConfig::default()
    }));
    std::fs::remove_dir_all(folder).unwrap();
}

fn console(harness: &mut Harness, line: &str) -> Answer {
    let line = line.to_owned();
    harness.ask(Command::Console { line })
}

fn set(harness: &mut Harness, expression: &str) -> Answer {
    let expression = expression.to_owned();
    harness.ask(Command::SetVariable { expression })
}

fn give_back(harness: &mut Harness, value: &str) -> Answer {
    let value = Some(value.to_owned());
    harness.ask(Command::Return { value })
}

fn step(harness: &mut Harness, count: u32) {
    let kind = StepKind::Over;
    stopped(harness.ask(Command::Step { kind, count }));
}

/// Runs the program to its end.
fn ends(harness: &mut Harness) {
    let answer = harness.run_on();
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 0, .. })),
        "{answer:?}"
    );
}

fn text(harness: &mut Harness, expression: &str) -> String {
    harness.evaluate(expression).unwrap().text
}

#[test]
fn xstate_preload_lets_limited_gdb_write_vector_registers() {
    with_crippled("completed", &[], Completion::Always, |mut harness| {
        let program = harness.compile("vectors", &[]);
        harness.start(&program, &[]);
        assert_eq!(text(&mut harness, "half(3.0)"), "1.5");
        assert_eq!(text(&mut harness, "called"), "1");
        set(&mut harness, "$xmm0.v4_int32[2] = 7").unwrap();
        set(&mut harness, "$ymm3.v8_int32[7] = 9").unwrap();
        console(&mut harness, "maint flush register-cache").unwrap();
        assert_eq!(text(&mut harness, "$xmm0.v4_int32[2]"), "7");
        assert_eq!(text(&mut harness, "$ymm3.v8_int32[7]"), "9");
        // Steps forward and back over code that uses vector registers.
        console(&mut harness, "record").unwrap();
        let before = text(&mut harness, "total");
        step(&mut harness, 3);
        assert_ne!(text(&mut harness, "total"), before);
        let stop = stopped(harness.ask(Command::ReverseContinue));
        assert_eq!(stop.reason, StopReason::NoHistory);
        assert_eq!(text(&mut harness, "total"), before);
        console(&mut harness, "record stop").unwrap();
        harness.break_at(1, "half").unwrap();
        stopped(harness.run_on());
        let Ok(Reply::Frame(view)) = give_back(&mut harness, "2.5") else {
            panic!("no frame");
        };
        assert_eq!(view.frame.function, "main");
        harness.break_at(2, "twice").unwrap();
        stopped(harness.run_on());
        harness.wait_output(Stream::Stdout, "2.5\n");
        ends(&mut harness);
    });
}

/// Checks that a command was refused, with the expected code and text.
fn check_refused(answer: Answer) {
    let failure: Failure = answer.expect_err("it cannot be done");
    assert_eq!(failure.code, FailureCode::Unsupported, "{failure}");
    let (gdb, rest) = failure.text.split_at(failure.text.find(" cannot").unwrap());
    assert_eq!(rest.trim_start(), REFUSAL);
    let version = gdb.strip_prefix("gdb ").unwrap();
    let mut numbers = version.split('.');
    assert!(numbers.all(|number| number.parse::<u32>().is_ok()), "{gdb}");
}

fn refuse_and_go_on(mut harness: Harness) {
    let program = harness.compile("vectors", &[]);
    harness.start(&program, &[]);
    let expression = "half(3.0)".to_owned();
    check_refused(harness.ask(Command::Evaluate { expression }));
    let expression = "twice(3)".to_owned();
    check_refused(harness.ask(Command::Call { expression }));
    check_refused(console(&mut harness, "print twice(3)"));
    // The function was not called, as its effects on registers could not be undone.
    assert_eq!(text(&mut harness, "called"), "0");
    check_refused(set(&mut harness, "$xmm0.v4_int32[2] = 7"));
    check_refused(console(&mut harness, "record"));
    check_refused(harness.ask(Command::ReverseContinue));
    let line = "-exec-next --reverse".to_owned();
    check_refused(harness.ask(Command::Mi { line }));
    // Everything else works.
    set(&mut harness, "$r12 = 5").unwrap();
    assert_eq!(text(&mut harness, "$r12"), "5");
    set(&mut harness, "total = 4").unwrap();
    step(&mut harness, 2);
    harness.break_at(1, "half").unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(place(&stop).0, "half");
    let general = |harness: &mut Harness| {
        let format = sdm_debug::command::ValueFormat::Hexadecimal;
        let names = Vec::new();
        harness.ask(Command::Registers { names, format }).unwrap()
    };
    let before = general(&mut harness);
    // gdb fails after it has left the frame.
    check_refused(give_back(&mut harness, "2.5"));
    assert_eq!(general(&mut harness), before);
    assert_eq!(text(&mut harness, "of"), "36");
    harness.break_at(2, "twice").unwrap();
    stopped(harness.run_on());
    harness.wait_output(Stream::Stdout, "18\n");
    let Ok(Reply::Frame(view)) = give_back(&mut harness, "77") else {
        panic!("no frame");
    };
    assert_eq!(view.frame.function, "main");
    ends(&mut harness);
    harness.wait_output_end();
    assert_eq!(harness.output(Stream::Stdout), b"18\n77\n");
}

#[test]
fn calls_that_would_corrupt_registers_are_refused() {
    with_crippled("deaf", &["--deaf"], Completion::Always, refuse_and_go_on);
}

#[test]
fn function_call_in_an_attached_task_is_refused() {
    for arrangement in [Arrangement::Shared, Arrangement::PerTask] {
        let options = ["--deaf"];
        with_crippled("attached", &options, Completion::Always, |mut harness| {
            let running = [Running::new(&harness, &[]), Running::new(&harness, &[])];
            let both: IdSet = "0-1".parse().unwrap();
            let attach = Command::Attach(AttachSpec {
                pids: (0..).zip(running.iter().map(Running::pid)).collect(),
                arrangement,
                ..AttachSpec::default()
            });
            for (_, answer) in harness.ask_all(&both, attach) {
                stopped(answer);
            }
            let expression = "getpid()".to_owned();
            let answers = harness.ask_all(&both, Command::Evaluate { expression });
            assert_eq!(answers.len(), 2);
            for (_, answer) in answers {
                check_refused(answer);
            }
            for (_, answer) in harness.ask_all(&both, Command::Detach) {
                answer.unwrap();
            }
            for running in &running {
                assert!(running.runs());
            }
        });
    }
}

#[test]
fn condition_with_a_call_that_gdb_refuses_is_reported() {
    with_crippled(
        "condition",
        &["--deaf"],
        Completion::Always,
        |mut harness| {
            let program = harness.compile("vectors", &[]);
            harness.start(&program, &[]);
            let spec = BreakSpec {
                number: 1,
                location: "twice".to_owned(),
                condition: Some("half(of) > 100".to_owned()),
                ..BreakSpec::default()
            };
            harness.ask(Command::BreakInsert(spec)).unwrap();
            let ended = harness.run_on();
            assert!(
                matches!(ended, Ok(Reply::Exited { code: 0, .. })),
                "nobody is stopped: {ended:?}"
            );
            let said = |event: &Event| matches!(event, Event::Notice { text } if text.starts_with("gdb 1") && text.ends_with(REFUSAL));
            harness.wait_event(said);
        },
    );
}

/// The lines of a program's output that list its open descriptors and its `LD_PRELOAD`.
fn shown(output: &[u8]) -> Vec<String> {
    let output = String::from_utf8_lossy(output).into_owned();
    let of_interest = |line: &&str| line.starts_with("fd ") || line.starts_with("env LD_PRELOAD=");
    let lines = output.lines().filter(of_interest);
    lines.map(str::to_owned).collect()
}

#[test]
fn program_does_not_inherit_the_preloaded_library() {
    for wrapper in [&[][..], &["nice", "-n", "0"]] {
        for value in [None, Some("/lib/x86_64-linux-gnu/libm.so.6")] {
            with_crippled("seen", &[], Completion::Always, |mut harness| {
                let program = harness.compile("show", &[]);
                let mut direct = Process::new(&program);
                direct
                    .env_remove("LD_PRELOAD")
                    .envs(value.map(|it| ("LD_PRELOAD", it)));
                let direct = direct.output().unwrap();
                let value = value.map(|it| it.as_bytes().to_vec());
                let start = StartSpec {
                    environment: vec![(b"LD_PRELOAD".to_vec(), value)],
                    wrapper: wrapper.iter().map(|it| it.as_bytes().to_vec()).collect(),
                    ..spec(&program, &[])
                };
                stopped(harness.ask(Command::Start(start)));
                ends(&mut harness);
                harness.wait_output_end();
                let output = harness.output(Stream::Stdout);
                assert_eq!(shown(&output), shown(&direct.stdout));
                assert_eq!(harness.output(Stream::Stderr), direct.stderr);
            });
        }
    }
}
