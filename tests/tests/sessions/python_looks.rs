//! Python's functions in looks without gdb.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use sdm_tests::ordinary::lower;
use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;

use crate::looking::{Waiting, stacks};

const PYTHON: &str = "/usr/bin/python3";

/// A Python program that prints a line and computes from then on.
fn computing(text: &str) -> Waiting {
    let mut command = Command::new(PYTHON);
    let command = command.args(["-c", text]).stdin(Stdio::null());
    let mut process = lower(command.stdout(Stdio::piped()))
        .spawn()
        .expect("it is there");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let begun = lines.next().and_then(Result::ok);
    assert_eq!(begun.as_deref(), Some("begun"));
    Waiting(process)
}

#[test]
fn python_functions_are_shown_without_gdb() {
    let text = "import sys\ndef waits(depth):\n    if depth:\n        return waits(depth - 1)\n    sys.stdin.read()\nwaits(2)\n";
    let python = Waiting::start(Command::new(PYTHON).args(["-c", text]));
    let without = stacks(&["--pids", &python.pid(), "--gdb", "/no/gdb"]).code(0);
    let lines: Vec<&str> = without.out.lines().map(str::trim).collect();
    let own = ["waits () at <string>:4 (rec x2)", "waits () at <string>:5"];
    assert!(lines.windows(2).any(|it| it == own), "{without}");
    let by_gdb = stacks(&["--pids", &python.pid(), "--by", "gdb"]).code(0);
    assert_eq!(without.out, by_gdb.out);
}

/// Between any two moments its frames differ: they are read at the moment of the stack.
#[test]
fn computing_python_program_is_shown_without_gdb() {
    let text = "def inner(n):\n    return n + 1\ndef spins():\n    n = 0\n    print('begun', flush=True)\n    while True:\n        n = inner(n)\nspins()\n";
    let running = [(); 4].map(|()| computing(text));
    let pids = running.each_ref().map(Waiting::pid).join(",");
    let done = stacks(&["--pids", &pids, "--gdb", "/no/gdb"]);
    // They are in one place or in several, as they compute.
    assert!(matches!(done.code, Some(0 | 1)), "{done}");
    let lines = done.out.lines().map(str::trim);
    let functions = |name: &str| lines.clone().filter(|line| line.contains(name)).count();
    assert_eq!(functions("<module> () at <string>:8"), 1, "{done}");
    assert!(functions("spins () at <string>:") > 0, "{done}");
    assert!(!done.united().contains("_PyEval"), "{done}");
}

#[test]
fn profile_of_a_python_program_shows_its_functions() {
    let text = "def spins():\n    n = 0\n    print('begun', flush=True)\n    while True:\n        n += 1\nspins()\n";
    let python = computing(text);
    let pid = python.pid();
    for verb in ["profile", "stacks"] {
        let words = ["--pids", &pid, "--gdb", "/no/gdb", "--for", "1"];
        let place = Place::new();
        let done = Sdm::new(&place, verb).args(words).finish().code(0);
        assert!(done.out.contains("spins () at <string>:"), "{done}");
        assert!(!done.united().contains("_PyEval"), "{done}");
    }
}

/// The program's function computes, and the module that called it stays at one line.
#[test]
fn function_of_a_computing_python_program_is_diagnosed() {
    let text = "def spins():\n    n = 0\n    print('begun', flush=True)\n    while True:\n        n += 1\nspins()\n";
    let python = computing(text);
    let words = ["--pids", &python.pid(), "--gdb", "/no/gdb"];
    let done = Sdm::new(&Place::new(), "diagnose")
        .args(words)
        .finish()
        .code(0);
    let told = "running within spins () at <string> in each sample; its variables changed";
    assert!(done.out.contains(told), "no {told:?} in {done}");
}

#[test]
fn deep_python_stack_is_marked_as_cut() {
    let start = |depth: &str| {
        let text = "import sys\nsys.setrecursionlimit(30000)\ndef deep(n):\n    if n:\n        deep(n - 1)\n    sys.stdin.read()\ndeep(int(sys.argv[1]))\n";
        Waiting::start(Command::new(PYTHON).args(["-c", text, depth]))
    };
    let (deep, shallow) = (start("1100"), start("900"));
    let pids = format!("{},{}", deep.pid(), shallow.pid());
    let without = stacks(&["--pids", &pids, "--gdb", "/no/gdb"]);
    let marked = format!(
        "pid {}: Backtrace stopped: more than 1024 frames",
        deep.pid()
    );
    assert!(without.out.contains(&marked), "no {marked:?} in {without}");
    let marks = without.out.matches("Backtrace stopped").count();
    assert_eq!(marks, 1, "{without}");
    let by_gdb = stacks(&["--pids", &pids, "--by", "gdb"]);
    assert_eq!((&without.out, without.code), (&by_gdb.out, by_gdb.code));
    for (python, marks) in [(&deep, 1), (&shallow, 0)] {
        let place = Place::new();
        let attach = Sdm::new(&place, "attach").args(["--pids", &python.pid(), "-c", "bt 2000"]);
        let done = attach.finish().code(0);
        let marked = done
            .out
            .matches("Backtrace stopped: more than 1024 frames")
            .count();
        assert_eq!(marked, marks, "{done}");
    }
    let words = ["--pids", &deep.pid(), "--gdb", "/no/gdb"];
    let done = Sdm::new(&Place::new(), "diagnose").args(words).finish();
    assert!(!done.out.contains("Cannot tell"), "{done}");
}

/// A script in the place of Python, as the shims of pyenv.
#[test]
fn python_behind_a_script_is_debugged() {
    let place = Place::new();
    let program = place.path().join("program.py");
    fs::write(&program, "import sys\nprint('from', sys.argv[1])\n").expect("a file");
    let shim = place.path().join("python3");
    let text = format!("#!/bin/sh\nexec {PYTHON} \"$@\"\n");
    fs::write(&shim, text).expect("a file");
    fs::set_permissions(&shim, Permissions::from_mode(0o755)).expect("it is ours");
    let sdm = Sdm::run(&place, 1).lines(&["continue"]);
    let words = [program.to_str().expect("text"), "below"];
    let done = sdm.program(&shim, &words).finish().code(0);
    let said = format!(" is a script that starts {PYTHON}, which is debugged\n");
    assert!(done.err.contains(&said), "{done}");
    assert!(done.out.contains("from below\n"), "{done}");
}
