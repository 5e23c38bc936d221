//! Kinds of processes, with the expected result of an inspection of each.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use sdm_inspect::looker::Looker;
use sdm_inspect::snapshot::Refusal;

use crate::programs::{AGAIN, C, NARROW, Program, THREADS};
use crate::safety::{Counting, assert_at_large, looker};
use crate::{look, look_with};

#[test]
fn zombie_is_reported_as_ended() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().cast_signed();
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(Pid::from_raw(pid)), ended).unwrap();
    assert_eq!(look(&[pid]), [Err(Refusal::Ended)]);
    child.wait().unwrap();
    assert_eq!(look(&[pid]), [Err(Refusal::Ended)]);
}

#[test]
fn stacks_of_a_thousand_threads_are_read() {
    let program = Program::new(THREADS, "O0");
    let counting = Counting::start(&program, &[]);
    let stacks = look(&[counting.pid()]).remove(0).unwrap();
    assert_eq!(stacks.threads.len(), 1001);
    for thread in &stacks.threads {
        assert!(thread.is_whole, "{thread:?}");
        let is_main = thread.thread == counting.pid();
        let expect = if is_main { "main" } else { "wait_for_ever" };
        let mut functions = thread.frames.iter().flat_map(|it| &it.function);
        assert!(functions.any(|name| name == expect), "{thread:?}");
    }
    assert_at_large(counting.pid());
    assert_eq!(counting.end(), "0\n");
}

#[test]
fn process_that_executes_programs_is_unharmed() {
    let program = Program::new(AGAIN, "O0");
    let counting = Counting::start(&program, &[]);
    let mut looker = looker();
    for _ in 0..100 {
        match look_with(&mut looker, &[counting.pid()]).remove(0) {
            Ok(_) | Err(Refusal::Executed) => {}
            // The process's files were opened before it executed another program.
            Err(Refusal::System { .. }) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    drop(looker);
    assert_at_large(counting.pid());
    assert_eq!(counting.end(), "0\n");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn process_with_32_bits_is_refused() {
    let program = Program::new(NARROW, "");
    let running = program.run().unwrap();
    assert_eq!(look(&[running.pid()]), [Err(Refusal::Architecture)]);
    assert_at_large(running.pid());
}

#[test]
fn refused_ptrace_is_reported_with_its_reason() {
    let program = Program::new(C, "O0");
    let running = program.run().unwrap();
    let script = program.folder().join("forbidden");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/forbid_tracing.py");
    let looker = env!("CARGO_BIN_EXE_sdm-looker");
    let text = format!(
        "#!/bin/sh\nexec python3 '{}' '{looker}' \"$@\"\n",
        fixture.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut looker = Looker::start(&script, true).unwrap();
    let refused = look_with(&mut looker, &[running.pid()]).remove(0);
    assert!(
        matches!(refused, Err(Refusal::NotAllowed { .. })),
        "{refused:?}"
    );
    assert_at_large(running.pid());
}
