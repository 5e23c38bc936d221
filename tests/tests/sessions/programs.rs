//! Several programs in one job: real launchers, real gdb.

use std::path::PathBuf;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

/// Compiles the programs `ocean` and `air`; returns the path of `ocean`.
fn two(place: &Place, compiler: Compiler) -> PathBuf {
    let named = |name: &str, options: &[&str]| {
        let compiled = place.compile_with("mpi_two", compiler, options);
        let program = place.path().join(name);
        std::fs::rename(compiled, &program).expect("it was compiled");
        program
    };
    named("air", &["-g"]);
    named("ocean", &["-g", "-DOCEAN"])
}

/// Ranks in the order of the programs, which the runtime knows; a breakpoint whose location only one program
/// has, also in a later job; and the program of each rank.
#[test]
fn two_programs_form_one_job() {
    for (launcher, compiler) in [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)] {
        let place = Place::new();
        let ocean = two(&place, compiler);
        let done = Sdm::run(&place, 2)
            .args(["--launcher", launcher])
            .lines(&["break only_air", "ranks", "continue &", "wait @air"])
            .lines(&[
                "info breakpoints",
                "[@air] set args z",
                "run &",
                "wait @air",
            ])
            .lines(&["[@air] up", "[@air] print argc", "show args", "kill"])
            .program(&ocean, &["x", ":", "-n", "3", "./air", "y"])
            .finish()
            .code(0);
        let place = format!("mpi_two.c:{}", Place::line("mpi_two.c", "only_air"));
        let set = format!(
            "ranks 2-4 (3): breakpoint 1 at {place}\n\
             ranks 0-1 (2): Function \"only_air\" not defined.\n\
             breakpoint 1: only ranks 2-4 (3) of 5 can stop at it; the other ranks have no code at the location\n"
        );
        done.expect("break only_air", &set);
        done.expect_part("ranks", "ranks 0-1 (2)  ocean  stopped");
        done.expect_part("ranks", "ranks 2-4 (3)  air    stopped");
        let met = "ranks 2-4 (3): stopped at breakpoint 1, only_air ()";
        done.expect_part("wait @air", met);
        done.expect_part("info breakpoints", "ranks 2-4 (3): only_air at");
        done.expect("[@air] print argc", "ranks 2-4 (3): 2\n");
        done.expect_part("show args", "ranks 0-1 (2): x\n");
        done.expect_part("show args", "ranks 2-4 (3): z\n");
    }
}

/// Both programs run to their end, MPI's runtime gives their ranks the number of the program, and a second run has
/// another argument for one of them.
#[test]
fn mpi_runtime_numbers_the_program_of_each_rank() {
    for (launcher, compiler) in [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)] {
        let place = Place::new();
        let ocean = two(&place, compiler);
        let done = Sdm::run(&place, 2)
            .args(["--launcher", launcher])
            .lines(&["run", "[@air] run z"])
            .program(&ocean, &["x", ":", "-n", "1", "--", "./air", "y"])
            .finish()
            .code(0);
        for line in [
            "[0] ocean rank 0 of 3, program 0, sum 8, arg x\n",
            "[1] ocean rank 1 of 3, program 0, sum 8, arg x\n",
            "[2] air rank 2 of 3, program 1, sum 8, arg y\n",
        ] {
            assert!(done.out.contains(line), "no {line:?} in {done}");
        }
        let again = "[2] air rank 2 of 3, program 1, sum 8, arg z\n";
        done.expect_part("[@air] run z", again);
    }
}

/// Several programs without a runtime; errors are reported before anything starts.
#[test]
fn programs_run_without_mpi_and_wrong_lists_are_refused() {
    let place = Place::new();
    let first = place.compile("loop", Compiler::C);
    let _second = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 1)
        .lines(&[
            "tbreak step",
            "ranks",
            "start",
            "ranks",
            "[@work] print code",
        ])
        .program(&first, &[":", "-n", "2", "./work", "lines", "1"])
        .finish()
        .code(0);
    done.expect_part("ranks", "rank 0         loop  stopped");
    done.expect_part("[@work] print code", "ranks 1-2 (2): ");
    for (words, part) in [
        (
            &[":", "-n", "0", "./work"][..],
            "`: -n 0`: expected a number",
        ),
        (
            &[":", "-n", "2", "--bind", "./work"],
            "expected `--` between",
        ),
        (
            &[":", "-n", "2", "--bind", "--", "./work"],
            "no option for only one of several programs",
        ),
        (&[":", "-n", "2", "./nothing"], "./nothing: no such file"),
    ] {
        let done = Sdm::run(&place, 1).program(&first, words).finish();
        assert_ne!(done.code, Some(0), "{done}");
        let said = format!("{}{}", done.out, done.err);
        assert!(said.contains(part), "no {part:?} in {done}");
    }
}
