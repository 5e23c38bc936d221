//! A program starts with the same variables, arguments, signal masks and search path as without SDM.

use std::os::unix::ffi::OsStrExt;
use std::process::Command as Process;

use sdm_child::{SignalState, StartConfig};
use sdm_debug::command::StopAt;
use sdm_debug::event::Stream;
use sdm_debug::{Command, Reply};

use crate::harness::{Harness, place, spec, stopped};

/// The program's output, line by line.
fn shown(harness: &Harness) -> Vec<String> {
    let output = String::from_utf8(harness.output(Stream::Stdout)).unwrap();
    output.lines().map(str::to_owned).collect()
}

fn of_kind(lines: &[String], kind: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .iter()
        .filter_map(|line| line.strip_prefix(kind))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// The signal masks, without the two signals that the C library reserves. gdb's own C library sets these two, and they
/// cannot be reset.
fn signals(lines: &[String]) -> Vec<(String, u64)> {
    let masks = of_kind(lines, "sig ");
    masks
        .iter()
        .map(|line| {
            let (name, mask) = line.split_once(':').unwrap();
            let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
            (name.to_owned(), mask & !0x1_8000_0000)
        })
        .collect()
}

#[test]
fn program_inherits_the_same_state_as_without_gdb() {
    let mut harness = Harness::starting(StartConfig {
        signals: SignalState::capture(),
        ..StartConfig::default()
    });
    let program = harness.compile("show", &[]);
    let direct = Process::new(&program)
        .current_dir(&harness.directory)
        .output()
        .unwrap();
    let direct: Vec<String> = String::from_utf8(direct.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let mut with_stdin = spec(&program, &[]);
    with_stdin.stdin_tasks = "0".parse().unwrap();
    with_stdin.stop = StopAt::Nowhere;
    let answer = harness.ask(Command::Start(with_stdin));
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 0, .. })),
        "{answer:?}"
    );
    harness.wait_output_end();
    let lines = shown(&harness);
    assert_eq!(signals(&lines), signals(&direct));
    for kind in ["limit ", "fd ", "cwd "] {
        assert_eq!(of_kind(&lines, kind), of_kind(&direct, kind));
    }
    assert!(!of_kind(&lines, "limit ").is_empty());
    // PWD has the requested directory. Nothing else differs.
    let differs = |line: &String| !line.starts_with("PWD=");
    let environment =
        |lines| -> Vec<String> { of_kind(lines, "env ").into_iter().filter(differs).collect() };
    assert_eq!(environment(&lines), environment(&direct));
    assert_eq!(of_kind(&lines, "tty "), ["0 1 0"]);
    assert_eq!(harness.output(Stream::Stderr), b"to stderr\n");
}

#[test]
fn arguments_and_environment_changes_are_passed_bytewise() {
    let mut harness = Harness::new();
    let program = harness.compile("show", &[]);
    // gdb and its shell must also accept a path with blanks, quotes and `=`.
    let odd = harness.directory.join("odd name's = $x");
    std::fs::copy(&program, &odd).unwrap();
    for program in [program, odd] {
        let args: [&[u8]; 11] = [
            b"a b",
            b"'",
            b"\"q\"",
            b"*",
            b"$HOME `id` \\",
            b"",
            b"new\nline\n",
            b"\xff\x01tab\t",
            b"-x",
            b"A=b",
            b"~",
        ];
        let mut changed = spec(&program, &[]);
        changed.args = args.iter().map(|arg| arg.to_vec()).collect();
        changed.environment = vec![
            (
                b"SDM_TEST_NEW".to_vec(),
                Some(b" two\n'lines' $x ".to_vec()),
            ),
            (b"HOME".to_vec(), None),
            (b"LINES".to_vec(), Some(b"7".to_vec())),
        ];
        changed.stop = StopAt::Nowhere;
        harness.events.clear();
        let answer = harness.ask(Command::Start(changed));
        assert!(
            matches!(answer, Ok(Reply::Exited { code: 0, .. })),
            "{answer:?}"
        );
        harness.wait_output_end();
        let lines = shown(&harness);
        let got: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("arg "))
            .collect();
        let expect = [
            "a b",
            "'",
            "\"q\"",
            "*",
            "$HOME `id` \\x5c",
            "",
            "new\\x0aline\\x0a",
            "\\xff\\x01tab\\x09",
            "-x",
            "A=b",
            "~",
        ];
        assert_eq!(got, expect);
        let environment = of_kind(&lines, "env ");
        assert!(
            environment.contains(&"SDM_TEST_NEW= two\\x0a'lines' $x ".to_owned()),
            "{environment:?}"
        );
        assert!(environment.contains(&"LINES=7".to_owned()));
        assert!(!environment.iter().any(|line| line.starts_with("HOME=")));
    }
}

#[test]
fn program_starts_with_given_blocked_and_ignored_signals() {
    let mut harness = Harness::starting(StartConfig {
        signals: SignalState {
            blocked: vec![12, 14],
            ignored: vec![1, 2],
        },
        ..StartConfig::default()
    });
    let program = harness.compile("show", &[]);
    let mut start = spec(&program, &[]);
    start.stop = StopAt::Nowhere;
    let answer = harness.ask(Command::Start(start));
    assert_eq!(
        answer,
        Ok(Reply::Exited {
            code: 0,
            before_finalize: false
        })
    );
    harness.wait_output_end();
    let lines = shown(&harness);
    let signals = of_kind(&lines, "sig ").join("\n");
    let mask = |field: &str| {
        let line = signals
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap_or_else(|| panic!("no {field} in {lines:?}"));
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    assert_eq!(mask("SigBlk:"), 1 << 11 | 1 << 13);
    assert_eq!(mask("SigIgn:") & 0x7fff_ffff, 0b11);
}

#[test]
fn program_is_looked_up_on_the_path_of_its_environment() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    let mut start = spec(&program, &["2"]);
    start.program = b"steps".to_vec();
    start.environment = vec![(
        b"PATH".to_vec(),
        Some(harness.directory.as_os_str().as_bytes().to_vec()),
    )];
    start.stop = StopAt::Nowhere;
    let answer = harness.ask(Command::Start(start));
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 2, .. })),
        "{answer:?}"
    );
}

#[test]
fn program_behind_a_wrapper_of_several_execs_stops_at_main() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    let script = harness.directory.join("bind it.sh");
    std::fs::write(
        &script,
        "#!/bin/sh\nexec nice -n 0 env WRAPPED=\"$1\" \"$@\"\n",
    )
    .unwrap();
    let mut mode = std::fs::metadata(&script).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let mut start = spec(&program, &["a b"]);
    start.wrapper = vec![script.to_str().unwrap().as_bytes().to_vec()];
    let stop = stopped(harness.ask(Command::Start(start.clone())));
    assert_eq!(stop.reason, sdm_debug::reply::StopReason::AtMain);
    assert_eq!(place(&stop).0, "main");
    let text = harness.evaluate("argv[1]").unwrap().text;
    assert!(text.ends_with("\"a b\""), "{text}");
    let number = harness.evaluate("argc").unwrap().text;
    assert_eq!(number, "2");
    harness.break_at(1, "twice").unwrap();
    stopped(harness.run_on());
    harness.ask(Command::Kill).unwrap();
    // Without a stop at the start the program reaches the earlier breakpoint.
    start.stop = sdm_debug::command::StopAt::Nowhere;
    let stop = stopped(harness.ask(Command::Start(start.clone())));
    assert_eq!(
        stop.reason,
        sdm_debug::reply::StopReason::Breakpoint { number: 1 }
    );
    harness.ask(Command::Kill).unwrap();
    // The end of a wrapper that never runs the program is reported.
    start.wrapper = vec![b"false".to_vec()];
    let end = harness.ask(Command::Start(start.clone()));
    assert!(matches!(end, Ok(Reply::Exited { code: 1, .. })), "{end:?}");
    start.wrapper = vec![b"A=1".to_vec()];
    let failure = harness.ask(Command::Start(start)).unwrap_err();
    assert_eq!(failure.code, sdm_debug::FailureCode::BadCommand);
}
