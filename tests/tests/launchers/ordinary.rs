//! Use by an ordinary user, who may not read processes that are not dumpable.

use sdm_tests::control;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Done;

/// Launchers, each with the compiler of its programs.
const LAUNCHERS: [(&str, Compiler); 3] = [
    ("local", Compiler::C),
    ("mpirun", Compiler::OpenMpi),
    ("mpiexec", Compiler::Mpich),
];

#[test]
fn a_program_runs_reads_and_prints_under_every_launcher() {
    for (launcher, compiler) in LAUNCHERS {
        let place = Place::new();
        let streams = place.compile("streams", compiler);
        let done = ordinary::run(&place, 2)
            .args(["--launcher", launcher, "--stdin", "0"])
            .lines(&["continue &", "send 0 a word", "send 0 --eof", "wait"])
            .program(&streams, &["1234567"])
            .finish()
            .code(7);
        assert!(both_say(&done, "", "to output"), "{launcher}: {done}");
        assert!(both_say(&done, " err", "to error"), "{launcher}: {done}");
        assert!(both_say(&done, "", "read to the end"), "{launcher}: {done}");
        assert!(done.out.contains("[0] read a word\n"), "{launcher}: {done}");
        let ends = |who: &str| done.out.contains(&format!("{who}: exited with code 7\n"));
        let both = ends("ranks 0-1 (2)") || ends("rank 0") && ends("rank 1");
        assert!(both, "{launcher}: {done}");
    }
}

#[test]
fn launcher_forwards_input_and_output() {
    for (launcher, compiler) in LAUNCHERS {
        let place = Place::new();
        let streams = place.compile("streams", compiler);
        let words = place.path().join("words");
        std::fs::write(&words, "a word\n").expect("a file");
        let done = ordinary::run(&place, 1)
            .args(["--launcher", launcher, "--output", "launcher"])
            .args(["--batch", "--no-report"])
            .program(&streams, &["123"])
            .reads(&words)
            .finish()
            .code(3);
        let lines = "to output\nread a word\nread to the end\n";
        assert!(done.out.contains(lines), "{launcher}: {done}");
        assert!(done.err.contains("to error\n"), "{launcher}: {done}");
    }
}

#[test]
fn job_held_by_its_launcher_is_debugged() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let options = ["--launcher", "mpirun", "--control", "mpir"];
    let sdm = ordinary::run(&place, 4).args(options);
    control::four_ranks_add_up(sdm, &sum, &[]);
}

#[test]
fn several_programs_run_under_every_launcher() {
    for (launcher, compiler) in LAUNCHERS {
        ordinary::several_programs_run(launcher, compiler, &[]);
    }
}

/// True if ranks 0 and 1 have printed a line, merged or one after the other.
fn both_say(done: &Done, stream: &str, line: &str) -> bool {
    let say = |who: &str| done.out.contains(&format!("[{who}{stream}] {line}\n"));
    say("0-1") || say("0") && say("1")
}
