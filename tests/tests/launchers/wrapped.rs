//! `sdm run --batch` with a program that a wrapper starts: SDM watches the program, and not the wrapper.

use std::path::Path;

use nix::sys::signal::Signal;
use sdm_tests::counted_gdb::CountedGdb;
use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::processes::{self, signal};
use sdm_tests::sdm::{Done, Sdm};

/// A wrapper that stays and passes on the program's exit code.
const STAYS: &str = "\"$@\"\ncode=$?\nexit $code";
/// A wrapper in Python.
const PYTHON: &str = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]) % 256)";

fn batch<'a>(place: &'a Place, launcher: &str, count: u32, gdb: &str) -> Sdm<'a> {
    Sdm::run(place, count).args([
        "--launcher",
        launcher,
        "--batch",
        "--no-report",
        "--gdb",
        gdb,
    ])
}

fn check_crash(done: Done, how: &str) {
    let done = done.code(139);
    let shown = "rank 2: received signal SIGSEGV, Segmentation fault, leave ()";
    assert!(done.out.contains(shown), "{how}: {done}");
    let stacks = done.answer("[@stopped] stacks");
    assert!(stacks.contains("MPI_Allreduce"), "{how}: {done}");
}

#[test]
fn crash_below_a_wrapper_is_the_crash_of_its_rank() {
    let place = Place::new();
    let gdb = CountedGdb::new(&place);
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    let ends = ends.to_str().expect("a plain path");
    let stays = script(place.path(), "stays", STAYS);
    let stays = stays.to_str().expect("a plain path");
    let pipeline = ["sh", "-c", "\"$@\" 2>&1 | cat", "sh", ends, "segv"];
    let python = ["/usr/bin/python3", "-c", PYTHON, ends, "segv"];
    let nested = ["timeout", "100", "sh", stays, ends, "segv"];
    let cases: [(&str, &[&str]); 5] = [
        ("mpirun", &["timeout", "100", ends, "segv"]),
        ("mpirun", &pipeline),
        ("mpirun", &python),
        ("local", &nested),
        ("local", &[stays, ends, "segv"]),
    ];
    for (launcher, words) in cases {
        let before = gdb.starts();
        let done = batch(&place, launcher, 4, gdb.path());
        let done = done.program(Path::new(words[0]), &words[1..]).finish();
        check_crash(done, words[0]);
        assert_eq!(gdb.starts() - before, 1, "{words:?}");
    }
    place.assert_gone();
}

#[test]
fn crash_below_a_wrapper_is_found_with_mpich() {
    let place = Place::new();
    let gdb = CountedGdb::new(&place);
    let ends = place.compile("mpi_ends", Compiler::Mpich);
    let stays = script(place.path(), "stays", STAYS);
    let words = [ends.to_str().expect("a plain path"), "segv"];
    let done = batch(&place, "mpiexec", 4, gdb.path());
    check_crash(done.program(&stays, &words).finish(), "mpiexec");
    assert_eq!(gdb.starts(), 1);
}

#[test]
fn early_exit_below_a_wrapper_stops_its_rank_before_exit() {
    let place = Place::new();
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    let stays = script(place.path(), "stays", STAYS);
    let words = [ends.to_str().expect("a plain path"), "exit"];
    let done = batch(&place, "mpirun", 4, "gdb");
    let done = done.program(&stays, &words).finish().code(121);
    let shown = "rank 2: about to call _exit before MPI_Finalize with code 7";
    assert!(done.out.contains(shown), "{done}");
}

#[test]
fn exit_code_of_a_rank_is_the_one_of_its_wrapper() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    for launcher in ["mpirun", "local"] {
        let done = batch(&place, launcher, 2, "/nosuch/gdb");
        let sum = sum.to_str().expect("a plain path");
        let done = done.program(Path::new("sh"), &["-c", "\"$@\"; exit 4", "sh", sum]);
        let done = done.finish().code(4);
        assert!(done.out.contains("exited with code 4"), "{done}");
    }
}

#[test]
fn hang_below_a_wrapper_is_diagnosed_in_its_program() {
    let place = Place::new();
    let stuck = place.compile("stuck", Compiler::OpenMpi);
    let stays = script(place.path(), "stays", STAYS);
    let words = [stuck.to_str().expect("a plain path"), "collective"];
    let done = batch(&place, "mpirun", 4, "/nosuch/gdb").args(["--hang-timeout", "2"]);
    let done = done.program(&stays, &words).finish().code(120);
    done.expect_part("[@stopped] diagnose", "different collective");
    let stacks = done.answer("[@stopped] stacks");
    assert!(stacks.contains("MPI_Barrier"), "{done}");
    place.assert_gone();
}

#[test]
fn crash_of_a_child_is_reported_but_is_no_crash_of_its_rank() {
    let place = Place::new();
    let crashes = place.compile("child_crashes", Compiler::C);
    let done = batch(&place, "local", 1, "/nosuch/gdb");
    let done = done.program(&crashes, &[]).finish().code(0);
    assert!(done.out.contains("the child ended by signal 11"), "{done}");
    let told = ", a process that the program has started, was ended by SIGSEGV";
    assert!(done.united().contains(told), "{done}");
}

/// A wrapper that is a debugger can trace its program.
#[test]
fn program_started_by_a_debugger_wrapper_is_not_traced() {
    let place = Place::new();
    let program = place.compile("execs", Compiler::C);
    let words = ["-q", "-batch", "-ex", "run", "--args"];
    let words = words.into_iter().chain(program.to_str()).chain(["1"]);
    let words: Vec<&str> = words.collect();
    let done = batch(&place, "local", 1, "/nosuch/gdb");
    let done = done.program(Path::new("gdb"), &words).finish().code(0);
    assert!(done.out.contains("exited with code"), "{done}");
}

#[test]
fn process_that_outlives_its_wrapper_is_not_ended() {
    let place = Place::new();
    let program = place.compile_with("work", Compiler::C, &["-g", "-pthread"]);
    let begins = "\"$@\" < /dev/null > /dev/null 2>&1 &\necho $! > pid";
    let begins = script(place.path(), "begins", begins);
    let words = [program.to_str().expect("a plain path"), "spin"];
    let done = batch(&place, "local", 1, "/nosuch/gdb");
    let directory = place.path().to_str().expect("a plain path");
    let done = done.args(["--directory", directory]);
    let running = done.program(&begins, &words).spawn();
    running.out.wait(0, "exited normally");
    let text = std::fs::read_to_string(place.path().join("pid")).expect("its number");
    let pid: u32 = text.trim().parse().expect("a number");
    let state = processes::of(pid).state().map(|state| state.0);
    assert!(matches!(state, Some('S' | 'R')), "{state:?}");
    signal(pid, Signal::SIGKILL);
    let _done = running.finish().code(0);
}
