//! Sessions on kernels that lack the newer system calls. The kernel is told to refuse these to all of a session.

use std::process::Command;

use nix::libc;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

use crate::looking::Waiting;

/// `sdm VERB` where the kernel lacks a system call; with `-` behind its number, also those of a higher number.
pub(crate) fn without_call<'a>(place: &'a Place, verb: &str, call: &str) -> Sdm<'a> {
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sdm-inspect/tests/fixtures/forbid_call.py"
    );
    let errno = libc::ENOSYS.to_string();
    Sdm::wrapped(&["python3", fixture, call, &errno], place, verb)
}

/// `sdm VERB` where the calls are refused that Linux 4.18 and later added: `rseq` was its first.
fn old<'a>(place: &'a Place, verb: &str) -> Sdm<'a> {
    without_call(place, verb, &format!("{}-", libc::SYS_rseq))
}

#[test]
fn old_kernel_runs_a_program_under_gdb() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let done = old(&place, "run")
        .args(["-n", "2"])
        .lines(&["break write_through", "continue", "bt", "continue"])
        .program(&program, &["segv"])
        .finish();
    let frames = "#0  write_through (pointer=0x0) at work.c:";
    for part in [frames, "received signal SIGSEGV"] {
        assert!(done.out.contains(part), "no {part:?} in {done}");
    }
}

#[test]
fn old_kernel_shows_stacks_and_a_diagnosis() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let program = elsewhere.compile("work", Compiler::C);
    let own = Waiting::start(Command::new(&program).arg("echo"));
    let done = old(&place, "stacks").args(["--pids", &own.pid()]);
    let done = done.finish().code(0);
    assert!(done.out.contains("echo () at work.c:"), "{done}");
    let done = old(&place, "diagnose").args(["--pids", &own.pid()]);
    let done = done.finish();
    assert!(done.out.contains("echo () at work.c:"), "{done}");
}

#[test]
fn old_kernel_reports_a_crash_of_a_batch() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let done = old(&place, "run")
        .args(["-n", "2", "--batch", "--no-report"])
        .program(&program, &["segv"])
        .finish();
    let stack = "write_through (pointer=0x0) at work.c:";
    for part in ["received signal SIGSEGV", stack] {
        assert!(done.united().contains(part), "no {part:?} in {done}");
    }
}
