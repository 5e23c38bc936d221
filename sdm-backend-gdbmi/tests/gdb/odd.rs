//! Broken gdbs, which die, hang, print without end, or do not speak MI.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use sdm_backend_gdbmi::GdbConfig;
use sdm_child::StartConfig;
use sdm_debug::{Command, FailureCode, TaskState};

use crate::harness::{Harness, spec};

/// Maximum time for which a gdb may be silent: long enough for a real gdb on a loaded machine.
const SILENT_MAX: Duration = Duration::from_secs(20);

/// Starts a program with a script in place of gdb; returns the failure of the start.
fn start_under(script: &str) -> (FailureCode, String) {
    let mut harness = Harness::with(GdbConfig {
        start: StartConfig {
            gdb: Some(PathBuf::from("gdb")),
            ..StartConfig::default()
        },
        command_wait: SILENT_MAX,
        symbols_wait: SILENT_MAX,
        ..GdbConfig::default()
    });
    let gdb = harness.directory.join("gdb");
    std::fs::write(&gdb, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&gdb, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = harness.compile("steps", &[]);
    let mut start = spec(&program, &[]);
    start.gdb = Some(gdb.to_str().unwrap().as_bytes().to_vec());
    let failure = harness.ask(Command::Start(start)).unwrap_err();
    let state = harness.state();
    assert!(
        matches!(state, TaskState::Absent | TaskState::GdbDead),
        "{state:?}"
    );
    // The session continues: the task can be started with a real gdb.
    harness.start(&program, &[]);
    (failure.code, failure.text)
}

#[test]
fn exiting_gdb_is_reported_with_its_stderr() {
    let (code, text) = start_under("echo 'libpython is missing' >&2; exit 127");
    assert_eq!(code, FailureCode::GdbDead);
    assert!(
        text.contains("127") && text.contains("libpython is missing"),
        "{text}"
    );
}

#[test]
fn silent_gdb_times_out() {
    let (code, _) = start_under("trap '' INT; while read -r line; do :; done");
    assert_eq!(code, FailureCode::TimedOut);
}

#[test]
fn output_that_is_not_mi_is_ignored() {
    // Megabytes without a line end, invalid UTF-8, unknown records, answers without a question, and an exit.
    let (code, text) = start_under(
        "head -c 20000000 /dev/zero | tr '\\0' 'x'; printf '\\n\\377\\376\\n*odd,a=[{\\n\
         =never-heard,b=\"c\"\\n99999^done,x={}\\n^done\\n%%%%\\n'; exit 3",
    );
    assert_eq!(code, FailureCode::GdbDead);
    assert!(text.contains("exited with 3"), "{text}");
}

#[test]
fn failed_start_reports_the_error_text_of_gdb() {
    let script = "while read -r line; do n=${line%%-*}; echo \"$n^error,msg=\\\"no $n\\\"\"; done";
    let (code, text) = start_under(script);
    assert!(
        matches!(code, FailureCode::Gdb | FailureCode::NoProgram),
        "{code:?} {text}"
    );
    assert!(text.contains("no "), "{text}");
}
