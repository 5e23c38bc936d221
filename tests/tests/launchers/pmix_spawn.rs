//! Programs that MPI programs start themselves (`MPI_Comm_spawn`): they become tasks of the session.

use std::path::Path;

use sdm_tests::ordinary;
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm, command};

fn local(place: &Place, count: u32) -> Sdm<'_> {
    ordinary::run(place, count).args(["--launcher", "local"])
}

/// The programs' output without the labels of ranks, sorted.
fn printed(out: &str) -> Vec<String> {
    let said = out.lines().map(|line| match line.split_once("] ") {
        Some((rank, said)) if rank.starts_with('[') => said,
        _ => line,
    });
    let is_program = |line: &&str| line.starts_with("worker ") || line.contains("has started");
    let mut said: Vec<String> = said.filter(is_program).map(str::to_owned).collect();
    said.sort_unstable();
    said
}

fn batch(place: &Place, count: u32, program: &Path, args: &[&str]) -> Done {
    local(place, count)
        .args(["--batch", "--no-report", "--no-stop"])
        .program(program, args)
        .finish()
}

/// The output is the same as under mpirun.
#[test]
fn spawned_programs_print_the_same_as_under_mpirun() {
    let place = Place::new();
    let spawn = place.compile("mpi_spawn", Compiler::OpenMpi);
    for (count, args) in [(1, &["2"][..]), (3, &["1", "3"])] {
        let mut mpirun = command(&place, "mpirun.openmpi");
        mpirun.args(["--oversubscribe", "-n", &count.to_string()]);
        let expected = ordinary::lower(&mut mpirun).arg(&spawn).args(args).output();
        let expected = expected.expect("Open MPI's mpirun");
        assert!(expected.status.success(), "{expected:?}");
        let expected = printed(&String::from_utf8_lossy(&expected.stdout));
        let done = batch(&place, count, &spawn, args).code(0);
        assert_eq!(printed(&done.out), expected, "{done}");
    }
}

/// Spawned tasks have the breakpoints of their parents, and get all commands to all tasks; another run begins without
/// them.
fn they_are_debugged(place: &Place, spawn: &Path, options: &[&str]) {
    let done = local(place, 2)
        .args(options)
        .lines(&["break together", "continue", "print is_worker"])
        .lines(&["[2-4] up", "[2-4] print size", "[2-4] print rank"])
        .lines(&["info breakpoints", "run", "ranks", "delete", "continue"])
        .program(spawn, &["3"])
        .finish()
        .code(0);
    let started = format!(
        "ranks 2-4 (3): started by rank 0, command line: {} worker",
        spawn.display()
    );
    assert!(done.out.matches(&started).count() == 2, "{done}");
    done.expect_part(
        "continue",
        "ranks 0-4 (5): stopped at breakpoint 1, together ()",
    );
    done.expect("print is_worker", "ranks 2-4 (3): 1\nranks 0-1 (2): 0\n");
    done.expect("[2-4] print size", "ranks 2-4 (3): 3\n");
    done.expect("[2-4] print rank", "rank 2: 0\nrank 3: 1\nrank 4: 2\n");
    done.expect_part(
        "info breakpoints",
        "ranks 0-4 (5): together at mpi_spawn.c:",
    );
    done.expect_part("ranks", "ranks 0-4 (5)  stopped");
    for line in ["worker 0 of 3: 1005", "rank 1 has started 3: 1005"] {
        assert!(done.out.contains(line), "no {line} in {done}");
    }
}

#[test]
fn spawned_programs_stop_at_breakpoints_as_further_ranks() {
    let place = Place::new();
    let spawn = place.compile("mpi_spawn", Compiler::OpenMpi);
    for options in [&[][..], &["--tasks-per-server", "1"]] {
        they_are_debugged(&place, &spawn, options);
    }
}

#[test]
fn programs_spawned_by_open_mpi_5_stop_at_breakpoints() {
    if parts::openmpi5().is_none() {
        return;
    }
    let place = Place::new();
    let spawn = place.compile("mpi_spawn", Compiler::OpenMpi5);
    they_are_debugged(&place, &spawn, &[]);
}

/// A missing program fails the call, and no tasks are reported for it.
#[test]
fn missing_program_fails_its_spawn_call() {
    let place = Place::new();
    let spawn = place.compile("mpi_spawn", Compiler::OpenMpi);
    let done = batch(&place, 1, &spawn, &["nothing"]).code(5);
    assert!(done.out.contains("nothing was started: 1"), "{done}");
    let why =
        "rank 0: rank 0 requested programs that cannot be started: /nowhere/worker: no such file";
    assert!(done.out.contains(why), "{done}");
    assert!(!done.out.contains("started by"), "{done}");
}

/// The processes of a job and of the job that it has spawned connect and disconnect (`PMIx_Connect`).
#[test]
fn spawned_job_connects_with_its_parent() {
    let place = Place::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/pmix_connect.py");
    let done = local(&place, 2)
        .args(["--batch", "--no-report", "--no-stop", "--pmix", "on"])
        .program(Path::new("/usr/bin/python3"), &["-W", "ignore", fixture])
        .finish()
        .code(0);
    for who in ["parent", "child"] {
        for rank in 0..2 {
            for verb in ["connect", "disconnect"] {
                let line = format!("{who} {rank}: {verb} 0\n");
                assert!(done.out.contains(&line), "no {line:?}: {done}");
            }
        }
    }
}
