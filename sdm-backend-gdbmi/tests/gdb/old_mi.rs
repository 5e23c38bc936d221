//! The gaps in MI of gdb 10 and 11, with a newer gdb behind a script that behaves like them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sdm_child::StartConfig;
use sdm_debug::command::{AttachSpec, BreakSpec};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Reply};

use crate::attach::Running;
use crate::harness::{Harness, stopped};

/// A gdb that claims to be gdb 10.1. Its `-break-insert` knows no `--qualified`. A condition set by `-break-condition`
/// is never true, because that command takes it for a quoted string.
fn old(folder: &Path) -> PathBuf {
    script(
        folder,
        r"s/ --qualified/ --nosuch/; s/\(-break-condition [0-9]*\) .*/\1 0/",
    )
}

/// A gdb whose input passes through these `sed` commands, and that claims to be gdb 10.1.
fn script(folder: &Path, commands: &str) -> PathBuf {
    let gdb = std::env::var("SDM_GDB").unwrap_or_else(|_| "gdb".to_owned());
    let answers = r#"s/^~"GNU gdb .*/~"GNU gdb (GDB) 10.1\\n"/"#;
    let text = format!("#!/bin/sh\nsed -u '{commands}' | {gdb} \"$@\" | sed -u '{answers}'\n");
    let path = folder.join("old-gdb");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// An old gdb attaches incompletely to a further process, so that each task gets a gdb of its own.
#[test]
fn old_gdb_is_started_separately_for_each_attached_task() {
    let folder = Harness::new();
    let mut harness = Harness::starting(StartConfig {
        gdb: Some(script(&folder.directory, "")),
        ..StartConfig::default()
    });
    let running = [(); 2].map(|()| Running::new(&harness, &[]));
    let pids = running.iter().map(Running::pid);
    let attach = Command::Attach(AttachSpec {
        pids: (0..).zip(pids).collect(),
        ..AttachSpec::default()
    });
    for answer in harness
        .ask_all(&"0-1".parse().unwrap(), attach)
        .into_values()
    {
        stopped(answer);
    }
    let [one, other] = running.each_ref().map(Running::tracer);
    assert!(one > 0 && other > 0 && one != other, "{one} {other}");
    // Detaches, as the end of a traced process would not be noticed.
    harness.ask_all(&"0-1".parse().unwrap(), Command::Detach);
}

#[test]
fn old_gdb_stops_programs_and_evaluates_conditions() {
    let folder = Harness::new();
    let old = || StartConfig {
        gdb: Some(old(&folder.directory)),
        ..StartConfig::default()
    };
    let mut harness = Harness::starting(old());
    let program = harness.compile("crash", &[]);
    harness.start(&program, &["abort"]);
    let stop = stopped(harness.run_on());
    let what = "abort".to_owned();
    assert_eq!(stop.reason, StopReason::Internal { what });
    drop(harness);
    // A method and a function in a namespace have the same name.
    let mut harness = Harness::starting(old());
    let program = harness.compile_cxx("aborts");
    harness.start(&program, &[]);
    let stop = stopped(harness.run_on());
    let what = "abort".to_owned();
    assert_eq!(stop.reason, StopReason::Internal { what });
    assert_eq!(stop.inside.as_deref(), Some("abort"));
    assert_eq!(harness.evaluate("calls").unwrap().text, "2");
    drop(harness);
    let mut harness = Harness::starting(old());
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let twice = BreakSpec {
        number: 1,
        location: "twice".to_owned(),
        ..BreakSpec::default()
    };
    harness.ask(Command::BreakInsert(twice)).unwrap();
    let condition = |text: &str| Command::BreakCondition {
        number: 1,
        condition: Some(text.to_owned()),
    };
    assert_eq!(harness.ask(condition("n == 2")), Ok(Reply::Done));
    harness.ask(condition("nosuch")).unwrap_err();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
    assert_eq!(harness.evaluate("n").unwrap().text, "2");
}
