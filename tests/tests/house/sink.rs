//! All user-visible output passes the escaping sink.

use std::fs;
use std::path::{Path, PathBuf};

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

/// Files that may use these calls: the sinks, and files that write nothing for the user.
const ALLOWED: [(&str, &str); 15] = [
    ("sdm/src/sys.rs", "asks whether there is a standard output"),
    ("sdm-bootstrap/src/log.rs", "one line of the log, escaped"),
    ("sdm/src/sink.rs", "the sink"),
    (
        "sdm-screen/src/terminal.rs",
        "cells of a frame, whose texts are escaped as they come in",
    ),
    (
        "sdm-bootstrap/src/complaints.rs",
        "escapes all that it is given",
    ),
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
];

/// A name as it is: a line end in it reads as a line of ours (`sdm_text::printable_name` has none).
const RAW_NAMES: [&str; 1] = [".display()"];

/// Files that may, with the reason.
const ALLOWED_RAW: [(&str, &str); 3] = [
    ("sdm-launch/src/manual.rs", "words for a shell, quoted"),
    ("sdm-session/src/key.rs", "an argument that is read again"),
    (
        "sdm-shell/src/shell/report.rs",
        "a library's file, compared and shown later",
    ),
];

/// The lines of a source that have one of these.
fn lines_with<'a>(text: &'a str, ways: &[&str]) -> Vec<&'a str> {
    let code = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let around = |line: &&str| ways.iter().any(|way| line.contains(way));
    lines.filter(around).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let is_test = path
            .file_stem()
            .is_some_and(|name| name == "tests" || name == "stories");
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
            found.push(path);
        }
    }
}

#[test]
fn panic_messages_are_escaped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for program in ["sdm", "sdm-server", "sdm-master"] {
        let main = root.join(program).join("src/main.rs");
        let text = fs::read_to_string(main).expect("a source");
        let (_, main) = text.split_once("fn main() ").expect("it has one");
        let first = main.lines().nth(1).expect("a line");
        assert!(first.ends_with("escape_panics();"), "{program}: {first}");
    }
}

#[test]
fn all_output_passes_the_escaping_sink() {
    let line = "fn a() {\n    eprintln!(\"x\");\n}\n";
    assert_eq!(lines_with(line, &WAYS_AROUND).len(), 1);
    hold(&WAYS_AROUND, &ALLOWED);
}

#[test]
fn names_are_shown_only_escaped() {
    hold(&RAW_NAMES, &ALLOWED_RAW);
}

/// Checks that exactly the allowed files contain one of these texts.
fn hold(ways: &[&str], allowed: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let mut found = Vec::new();
    for name in [
        "sdm",
        "sdm-session",
        "sdm-view",
        "sdm-shell",
        "sdm-system",
        "sdm-core",
        "sdm-bootstrap",
        "sdm-debug",
        "sdm-fake",
        "sdm-hosts",
        "sdm-launch",
        "sdm-keep",
        "sdm-master",
        "sdm-server",
        "sdm-foreign",
        "sdm-mpi",
        "sdm-inspect",
        "sdm-inferior",
        "sdm-diagnose",
        "sdm-backend-gdbmi",
    ] {
        sources(&root.join(name).join("src"), &mut found);
    }
    assert!(found.len() > 100);
    let mut around = Vec::new();
    for path in &found {
        let name = path
            .strip_prefix(root)
            .expect("below it")
            .display()
            .to_string();
        let text = fs::read_to_string(path).expect("a source");
        let lines = lines_with(&text, ways);
        let is_allowed = allowed.iter().any(|(allowed, _)| *allowed == name);
        assert!(!is_allowed || !lines.is_empty(), "{name} needs no leave");
        if !is_allowed {
            around.extend(lines.iter().map(|line| format!("{name}: {}", line.trim())));
        }
    }
    assert!(around.is_empty(), "{}", around.join("\n"));
}
