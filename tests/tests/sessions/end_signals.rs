//! Signals that end a command end its session too, if only the front-end receives them. No process of the session
//! is left, and inspected processes run on as before.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::job::{Look, look, look_after_kill, wait_looking, wait_traced};
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::Sdm;

/// A long command, its arguments after the pids, the signal that ends it, and its exit code.
type End = (&'static str, &'static [&'static str], Signal, Option<i32>);

const ENDS: [End; 8] = [
    ("diagnose", &["--for=1002"], Signal::SIGTERM, Some(143)),
    (
        "diagnose",
        &["--for=1000", "--by", "gdb"],
        Signal::SIGTERM,
        Some(143),
    ),
    (
        "diagnose",
        &["--for=1001", "--by", "gdb"],
        Signal::SIGKILL,
        None,
    ),
    (
        "stacks",
        &["--watch=1000", "--by", "gdb"],
        Signal::SIGHUP,
        Some(129),
    ),
    (
        "stacks",
        &["--watch=1001", "--by", "gdb"],
        Signal::SIGINT,
        Some(130),
    ),
    ("profile", &["--for=1000"], Signal::SIGTERM, Some(143)),
    ("attach", &["-c", "continue"], Signal::SIGTERM, Some(143)),
    (
        "attach",
        &["-c", "diagnose for 1000"],
        Signal::SIGTERM,
        Some(143),
    ),
];

fn are_ended(ends: &[End], prefix: &[&str]) {
    let elsewhere = Place::new();
    let work = elsewhere.compile("work", Compiler::C);
    let start = || {
        let mut command = Command::new(&work);
        let command = command.arg("spin").stdin(Stdio::null());
        let command = lower(command.stdout(Stdio::piped()));
        let mut process = command.spawn().expect("it was compiled");
        let mut line = String::new();
        let out = process.stdout.take().expect("it is piped");
        let read = BufReader::new(out).read_line(&mut line);
        assert!(read.is_ok() && line.contains("spinning"), "{line}");
        process
    };
    let mut processes: Vec<Child> = (0..2).map(|_| start()).collect();
    let pids: Vec<u32> = processes.iter().map(Child::id).collect();
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let looks = || -> Vec<Look> { pids.iter().map(|pid| look(*pid)).collect() };
    let before = looks();
    for (verb, more, signal, code) in ends {
        let place = Place::new();
        let sdm = Sdm::wrapped(prefix, &place, verb);
        let sdm = sdm.args([list.join(",")]).args(*more).spawn();
        match more.contains(&"gdb") || *verb == "attach" {
            true => wait_traced(&pids),
            false => wait_looking(sdm.pid()),
        }
        processes::signal(sdm.pid(), *signal);
        let done = sdm.finish();
        assert_eq!(done.code, *code, "{verb} {more:?}, {signal}: {done}");
        let after = match code {
            Some(_) => looks(),
            None => pids.iter().map(|pid| look_after_kill(*pid)).collect(),
        };
        assert!(after == before, "{verb} {more:?}, {signal}");
    }
    for process in &mut processes {
        process.kill().expect("it lives");
        process.wait().expect("it is a child");
    }
}

#[test]
fn a_signal_ends_each_command_and_its_session() {
    are_ended(&ENDS, &["/usr/bin/env", "--default-signal=INT"]);
}

/// A command inherits blocked signals from a thread that blocks them.
#[test]
fn initially_blocked_signal_ends_a_command() {
    are_ended(&ENDS[..1], &["/usr/bin/env", "--block-signal=TERM"]);
}
