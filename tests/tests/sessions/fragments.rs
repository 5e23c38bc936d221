//! Stacks that cannot be unwound to their end.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, sleeps_in};
use sdm_tests::run::BOUND;
use sdm_tests::sdm::Sdm;

/// Waits until at least `threads` threads of a process sleep in a system call.
fn wait_asleep(pid: u32, threads: usize) {
    let process = processes::of(pid);
    let asleep = || {
        let ids = process.thread_ids().into_iter().flatten();
        ids.filter(|id| sleeps_in(&process.thread(*id)).is_some())
            .count()
    };
    let began = Instant::now();
    while asleep() < threads {
        assert!(began.elapsed() < BOUND, "{} sleep", asleep());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Two processes in different functions, of which the same fragment is known.
#[test]
fn truncated_stacks_are_not_merged_with_complete_ones() {
    let place = Place::new();
    let (cut, whole) = (Place::new(), Place::new());
    let programs = [(&cut, "-DCUT"), (&whole, "-UCUT")].map(|(place, option)| {
        place.compile_with("musl_waits", Compiler::C, &["-g", "-static", option])
    });
    let start = |program: &PathBuf| {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        let process = lower(&mut command).spawn().expect("it was compiled");
        wait_asleep(process.id(), 3);
        process
    };
    let mut processes = [&programs[0], &programs[0], &programs[1]].map(start);
    let pids = processes.each_ref().map(|it| it.id().to_string());
    let done = Sdm::new(&place, "stacks")
        .args(["--pids", &pids.join(",")])
        .finish();
    for process in &mut processes {
        process.kill().expect("it lives");
        process.wait().expect("it is a child");
    }
    let whole = format!("pid {}: left () at musl_waits.c:", pids[2]);
    assert!(done.out.contains(&whole), "{done}");
    let cut: Vec<&str> = done
        .out
        .lines()
        .filter(|it| it.contains("Backtrace stopped: "))
        .collect();
    assert!(!cut.is_empty(), "{done}");
    assert!(cut.iter().all(|line| !line.contains(&pids[2])), "{done}");
}

#[test]
fn incomplete_stacks_are_marked() {
    let (place, elsewhere) = (Place::new(), Place::new());
    for (is_cut, options) in [
        (true, &["-g", "-static", "-DCUT"][..]),
        (false, &["-g", "-static"][..]),
    ] {
        let program = elsewhere.compile_with("musl_waits", Compiler::C, options);
        let mut command = Command::new(&program);
        command.stdin(Stdio::null());
        let mut process = lower(&mut command).spawn().expect("it was compiled");
        wait_asleep(process.id(), 3);
        let pid = process.id().to_string();
        let stacks = Sdm::new(&place, "stacks").args([&pid]).finish();
        let diagnosis = Sdm::new(&place, "diagnose").args([&pid]).finish();
        if is_cut {
            // Three fragments that are alike are not three threads in one place.
            let begin = format!("pid {pid}, 3 threads: Backtrace stopped: ");
            assert!(stacks.out.starts_with(&begin), "{stacks}");
            // Nor do they say what the process waits for, however often they are seen.
            let why = format!("pid {pid}: not judged: gdb could not read the stack to its end\n");
            assert!(diagnosis.out.contains(&why), "{diagnosis}");
            assert!(!diagnosis.out.contains("no answer"), "{diagnosis}");
            assert_eq!(diagnosis.code, Some(2), "{diagnosis}");
            assert_eq!(stacks.code, Some(2), "{stacks}");
        } else {
            for function in ["left", "right", "main"] {
                let line = format!("pid {pid}: {function} () at musl_waits.c:");
                assert!(stacks.out.contains(&line), "no {line:?} in {stacks}");
            }
            assert!(!diagnosis.out.contains("Backtrace stopped"), "{diagnosis}");
            assert_eq!(stacks.code, Some(0), "{stacks}");
        }
        process.kill().expect("it lives");
        process.wait().expect("it is a child");
    }
}
