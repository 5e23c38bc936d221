//! Diagnosis of threads that wait for a thread that does not exist, or for a lock that they hold themselves.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::libc;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::Sdm;

const BOUND: Duration = Duration::from_secs(60);

/// Waits until the main thread of the process that `find` returns sleeps in a futex; returns the pid.
fn waits_for_a_thread(find: impl Fn() -> Option<u32>) -> u32 {
    let begin = Instant::now();
    loop {
        let found = find().filter(|pid| {
            let call = processes::sleeps_in(&processes::of(*pid));
            call.is_some_and(|(number, _)| number == libc::SYS_futex)
        });
        if let Some(pid) = found {
            return pid;
        }
        assert!(begin.elapsed() < BOUND, "it does not wait");
        std::thread::yield_now();
    }
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
            "they wait for another thread of their process, but there is none",
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
