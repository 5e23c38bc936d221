//! Diagnosis of threads that wait for a thread that does not exist, for a lock of their own, or for each other's
//! locks.

use std::process::Command;

use nix::libc;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;

/// Waits until the main thread of the process that `find` returns sleeps in a futex; returns the pid.
fn waits_for_a_thread(find: impl Fn() -> Option<u32>) -> u32 {
    let mut found = None;
    until("the main thread waits", || {
        found = find().filter(|pid| {
            let call = processes::sleeps_in(&processes::of(*pid));
            call.is_some_and(|(number, _)| number == libc::SYS_futex)
        });
        found.is_some()
    });
    found.expect("it was waited for")
}

#[test]
fn self_deadlocked_thread_is_diagnosed() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("alone", Compiler::Cxx);
    for (way, code, said, place) in [
        (
            "once",
            1,
            "a thread waits for a lock that it holds itself",
            "thread 1 waits in make () at alone.cc:",
        ),
        (
            "child",
            3,
            "it waits for another thread of its process, but there is none",
            "called from child () at alone.cc:",
        ),
    ] {
        let mut process = lower(Command::new(&program).arg(way)).spawn().expect(way);
        let root = process.id();
        let pid = waits_for_a_thread(|| match way {
            "child" => processes::below(root).first().map(|(pid, _)| *pid),
            _ => Some(root),
        });
        let pid = pid.to_string();
        for by in [&[][..], &["--by", "gdb"]] {
            let args = [&["--pids", &pid][..], by].concat();
            let done = Sdm::new(&Place::new(), "diagnose")
                .args(&args)
                .finish()
                .code(code);
            for part in [said, place] {
                assert!(done.out.contains(part), "{way} {by:?}: {part}: {done}");
            }
        }
        process.kill().expect("it lives");
        process.wait().expect("it is a child");
    }
}

/// A lock of OpenMP names no holder, and both threads name theirs by one expression.
#[test]
fn openmp_locks_of_both_threads_are_shown() {
    let elsewhere = Place::new();
    let program = elsewhere.compile_with("openmp_locks", Compiler::C, &["-g", "-fopenmp"]);
    let mut process = lower(&mut Command::new(&program))
        .spawn()
        .expect("it starts");
    let pid = process.id();
    // The locks of cells 3 and 5 are two cells apart.
    until("both threads wait for the other's lock", || {
        let process = processes::of(pid);
        let threads = process.thread_ids().expect("it lives");
        let futexes = threads.filter_map(|thread| {
            let (number, [address, ..]) = processes::sleeps_in(&process.thread(thread))?;
            (number == libc::SYS_futex).then_some(address)
        });
        let futexes: Vec<u64> = futexes.collect();
        matches!(futexes[..], [one, other] if one.abs_diff(other) == 2 * 16)
    });
    let pid = pid.to_string();
    let line = Place::line("openmp_locks.c", "omp_set_lock(&cells[to].lock);");
    let second = format!(
        "thread 2 waits in move () at openmp_locks.c:{line} for &cells[to].lock (cells+48)"
    );
    for by in [&[][..], &["--by", "gdb"]] {
        let args = [&["--pids", &pid][..], by].concat();
        let done = Sdm::new(&Place::new(), "diagnose").args(&args).finish();
        for part in ["for &cells[to].lock (cells+80)", &second] {
            assert!(done.out.contains(part), "{by:?}: {part}: {done}");
        }
    }
    process.kill().expect("it lives");
    process.wait().expect("it is a child");
}
