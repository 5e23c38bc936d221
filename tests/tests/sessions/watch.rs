//! `sdm stacks --watch`: processes that are sampled again and again, and run on as before.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::job::below;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, signal};
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;

/// A process that waits for its input.
fn waiting(place: &Place) -> Child {
    let program = place.compile("work", Compiler::C);
    let mut command = Command::new(program);
    command
        .arg("echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let process = command.spawn().expect("it was compiled");
    // From the first snapshot on, nothing of the process changes.
    processes::wait_state(process.id(), "S");
    process
}

#[test]
fn watch_shows_changes_only_and_reports_the_end() {
    // Only a tracer gets a process's exit status.
    for (way, gdb, what, told) in [
        ("snapshot", "/no/gdb", "the process has ended", ""),
        ("gdb", "gdb", "ended or detached", "exited"),
    ] {
        let (place, elsewhere) = (Place::new(), Place::new());
        let mut process = waiting(&elsewhere);
        let pid = process.id().to_string();
        let running = Sdm::new(&place, "stacks")
            .args([&*pid, "--watch=1", "--by", way, "--gdb", gdb])
            .spawn();
        running.out.wait(0, "echo () at work.c");
        let attached = running.out.mark();
        drop(process.stdin.take());
        running
            .out
            .wait(attached, &format!("pid {pid}: {what}, after "));
        let done = running.finish().code(0);
        assert_eq!(done.out.matches("main () at work.c").count(), 1, "{done}");
        assert!(done.out.contains(told), "{done}");
        let status = process.wait().expect("it is a child");
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn ctrl_c_and_signals_leave_watched_processes_running() {
    let elsewhere = Place::new();
    let mut process = waiting(&elsewhere);
    let pid = process.id().to_string();
    for (number, code, reason) in [
        (Signal::SIGINT, 130, "interrupted; every process was left"),
        (Signal::SIGTERM, 143, "signal 15 (SIGTERM)"),
        (Signal::SIGHUP, 129, "signal 1 (SIGHUP)"),
    ] {
        let place = Place::new();
        let running = Sdm::new(&place, "stacks")
            .args([&*pid, "--watch", "--gdb", "/no/gdb"])
            .spawn();
        running.out.wait(0, "echo () at work.c");
        signal(running.pid(), number);
        let done = running.finish().code(code);
        assert!(done.out.contains(reason), "{done}");
        assert_eq!(processes::tracer(process.id()), None, "{done}");
        let ended = process.try_wait().expect("it is a child");
        assert_eq!(ended, None, "{number:?}: {done}");
    }
    drop(process.stdin.take());
    assert_eq!(process.wait().expect("it is a child").code(), Some(0));
}

#[test]
fn killed_gdb_is_not_reported_as_process_end() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut process = waiting(&elsewhere);
    let pid = process.id().to_string();
    let running = Sdm::new(&place, "stacks")
        .args([&*pid, "--watch=1", "--by", "gdb"])
        .spawn();
    running.out.wait(0, "echo () at work.c");
    let gdb = below(running.pid(), "gdb");
    assert_eq!(gdb.len(), 1, "{gdb:?}");
    signal(gdb[0], Signal::SIGKILL);
    let done = running.finish().code(2);
    assert!(done.out.contains("gdb was killed"), "{done}");
    drop(process.stdin.take());
    assert_eq!(process.wait().expect("it is a child").code(), Some(0));
}

/// Number of times that a process has gone to sleep.
fn sleeps(pid: u32) -> u64 {
    let status = processes::of(pid).status().expect("it lives");
    let number = status.number("voluntary_ctxt_switches");
    number.expect("the kernel counts it")
}

#[test]
fn ctrl_c_shows_the_partial_profile() {
    let elsewhere = Place::new();
    let mut process = waiting(&elsewhere);
    let (pid, slept) = (process.id(), sleeps(process.id()));
    let place = Place::new();
    let running = Sdm::new(&place, "profile")
        .args([&*pid.to_string(), "--for", "3600"])
        .spawn();
    // A snapshot wakes the process once or twice; the next one begins when the previous one has been reported.
    until("it was looked at again", || sleeps(pid) >= slept + 5);
    signal(running.pid(), Signal::SIGINT);
    let done = running.finish().code(0);
    assert!(done.out.contains("100.0 % pid "), "{done}");
    assert!(done.out.contains("always in the same place"), "{done}");
    assert_eq!(processes::tracer(pid), None, "{done}");
    drop(process.stdin.take());
    assert_eq!(process.wait().expect("it is a child").code(), Some(0));
}
