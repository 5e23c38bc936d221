//! All output for the user passes the sink that escapes control characters.

use std::collections::BTreeSet;

use crate::sources::{Source, all};

/// Calls that write to a terminal without the sink.
const WAYS_AROUND: [&str; 7] = [
    "print!(",
    "println!(",
    "dbg!(",
    "io::stdout",
    "io::stderr",
    "/dev/tty",
    "STDOUT_FILENO",
];

/// Files that may use calls of [`WAYS_AROUND`]: the sinks, and files that write nothing for the user.
const ALLOWED: [(&str, &str); 20] = [
    ("sdm/src/sys.rs", "asks whether there is a standard output"),
    ("sdm-bootstrap/src/log.rs", "one line of the log, escaped"),
    ("sdm/src/sink.rs", "the sink"),
    ("sdm-text/src/complaints.rs", "escapes all that it is given"),
    (
        "sdm-keep/src/client.rs",
        "a terminal's bytes from the session that has escaped them",
    ),
    (
        "sdm-keep/src/keeper.rs",
        "one fixed line for who has started it",
    ),
    (
        "sdm-server/src/announce.rs",
        "announcements for the launcher",
    ),
    (
        "sdm-server/src/doctor.rs",
        "lines for sdm doctor, escaped as they are made, and again as they are read",
    ),
    (
        "sdm-foreign/src/msgq/mod.rs",
        "has a process's memory there, for reading",
    ),
    (
        "sdm-foreign/src/messages.rs",
        "tells who has started it, which shows it escaped",
    ),
    (
        "sdm-foreign/src/main.rs",
        "answers for who has started it, which shows them escaped",
    ),
    (
        "sdm-foreign/src/tool/mod.rs",
        "frames for who has started it; the library's own output goes to its standard error",
    ),
    (
        "sdm-child/src/stdio/inherited.rs",
        "descriptors for the program",
    ),
    (
        "sdm-inspect/src/looker/mod.rs",
        "frames for the server that has started it",
    ),
    (
        "sdm-agent/src/main.rs",
        "errors, escaped, and frames for the process that has started it",
    ),
    (
        "sdm-agent/src/service.rs",
        "an error, escaped, for the process that has started it",
    ),
    (
        "sdm-agent/src/invoke/run.rs",
        "bytes of the invoke protocol for the client that has started it",
    ),
    ("sdm-rm/src/main.rs", "an error, escaped"),
    (
        "sdm-rm/src/process.rs",
        "one fixed word for the process that has started it",
    ),
    (
        "sdm-sim/src/main.rs",
        "results of the simulator, a program for developers",
    ),
];

/// Calls that show a path unescaped: a line end in the path could pass for a line of SDM. `sdm_text::printable_name`
/// escapes it.
const RAW_NAMES: [&str; 1] = [".display()"];

/// Files that may use calls of [`RAW_NAMES`], each with the reason.
const ALLOWED_RAW: [(&str, &str); 5] = [
    ("sdm-launch/src/manual.rs", "words for a shell, quoted"),
    ("sdm-session/src/key.rs", "an argument that is read again"),
    (
        "sdm-shell/src/shell/report.rs",
        "a library's file, compared and shown later",
    ),
    (
        "sdm-agent/src/local/mod.rs",
        "an argument of a program that is started",
    ),
    (
        "sdm-check/src/library.rs",
        "compared with a kept text, and not shown",
    ),
];

/// The lines of code that contain one of these texts.
fn lines_with<'a>(code: &'a str, ways: &[&str]) -> Vec<&'a str> {
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let around = |line: &&str| ways.iter().any(|way| line.contains(way));
    lines.filter(around).collect()
}

#[test]
fn panic_messages_are_escaped() {
    let sources = all();
    let is_program = |it: &&Source| it.path.ends_with("src/main.rs") && it.member != "sdm-sim";
    let programs: Vec<&Source> = sources.iter().filter(is_program).collect();
    assert!(programs.len() >= 6, "{}", programs.len());
    for program in programs {
        let (_, main) = program.text.split_once("fn main() ").expect("it has one");
        let first = main.lines().nth(1).expect("a line");
        assert!(
            first.ends_with("escape_panics();"),
            "{}: {first}",
            program.path
        );
    }
}

#[test]
fn all_output_passes_the_escaping_sink() {
    let line = "fn a() {\n    eprintln!(\"x\");\n}\n";
    assert_eq!(lines_with(line, &WAYS_AROUND).len(), 1);
    hold(&WAYS_AROUND, &ALLOWED);
}

#[test]
fn only_listed_files_display_paths_without_escaping() {
    hold(&RAW_NAMES, &ALLOWED_RAW);
}

/// Checks that exactly the allowed files contain one of these texts, in every crate that a user runs.
fn hold(ways: &[&str], allowed: &[(&str, &str)]) {
    let mut around = Vec::new();
    let mut used = BTreeSet::new();
    for source in all() {
        if source.is_test || ["tests", "benches"].contains(&&*source.member) {
            continue;
        }
        let lines = lines_with(source.shipped(), ways);
        match allowed.iter().find(|(path, _)| *path == source.path) {
            Some((path, _)) if !lines.is_empty() => drop(used.insert(*path)),
            _ => around.extend(
                lines
                    .iter()
                    .map(|line| format!("{}: {}", source.path, line.trim())),
            ),
        }
    }
    assert!(around.is_empty(), "{}", around.join("\n"));
    let unused = allowed.iter().filter(|(path, _)| !used.contains(path));
    assert_eq!(unused.count(), 0, "of {allowed:?} only {used:?} are needed");
}
