//! Choice of the launcher by the MPI of a program, and the messages if the launcher does not fit the program.

use std::path::{Path, PathBuf};

use sdm_tests::fixture;
use sdm_tests::job::Folder;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

use super::hangs::job::{Job, Under};
use super::pmix::lines_of;

/// Compiles `mpi_ring` with `--as-needed`. A Fortran program then needs Open MPI's own library only through the
/// Fortran one.
fn ring(place: &Place, compiler: Compiler) -> PathBuf {
    let program = place.path().join("mpi_ring");
    fixture::compile(compiler, "mpi_ring", &["-Wl,--as-needed"], &program);
    program
}

/// Exit code of a batch run whose ranks have other numbers in `MPI_COMM_WORLD` than their launcher gave them.
pub(super) const ISOLATED: i32 = 118;

fn run(place: &Place, launcher: &[&str], program: &Path, args: &[&str]) -> Done {
    let run = Sdm::run(place, 2).args(["--batch", "--no-report", "--no-stop"]);
    run.args(launcher).program(program, args).finish()
}

#[test]
fn fortran_program_is_started_by_its_own_mpi() {
    for (compiler, launcher, by) in [
        (
            Compiler::FortranOpenMpi,
            "mpirun",
            "libmpi.so.40, needed by libmpi_mpifh.so.40)",
        ),
        (
            Compiler::FortranMpich,
            "mpiexec",
            "libmpich.so.12, needed by libmpichfort.so.12)",
        ),
    ] {
        let place = Place::new();
        let done = run(&place, &[], &ring(&place, compiler), &[]).code(0);
        assert_eq!(
            lines_of(&done.out),
            ["rank 0 of 2", "rank 1 of 2"],
            "{done}"
        );
        let chosen = format!("[launcher] {launcher}, because ");
        assert!(
            done.err.contains(&chosen) && done.err.contains(by),
            "{done}"
        );
    }
}

#[test]
fn launcher_of_another_mpi_causes_a_warning() {
    for (compiler, launcher, fits) in [
        (Compiler::FortranOpenMpi, "mpiexec", "mpirun"),
        (Compiler::FortranMpich, "mpirun", "mpiexec"),
    ] {
        let place = Place::new();
        let done = run(
            &place,
            &["--launcher", launcher],
            &ring(&place, compiler),
            &[],
        )
        .code(ISOLATED);
        let warned = done
            .err
            .lines()
            .filter(|line| line.ends_with(&format!("; use --launcher {fits}")));
        assert_eq!(warned.count(), 1, "{done}");
        let told = "error: the program has rank 0 of 1 in MPI_COMM_WORLD, not the rank that its launcher gave it";
        assert!(done.united().contains(told), "{done}");
    }
}

/// No file shows that a Python script calls MPI. So SDM starts it without MPI's launcher, and each rank is alone.
#[test]
fn ranks_alone_in_their_comm_world_are_an_error() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_alone.py");
    let script = script.to_str().expect("a path of text");
    let python = Path::new("/usr/bin/python3");
    let place = Place::new();
    let done = run(&place, &[], python, &[script]).code(ISOLATED);
    // Both print the same, merged or one after the other.
    assert!(done.united().contains("[0-1] rank 0 of 1\n"), "{done}");
    let told = "ranks 0-1 (2): error: the program has rank 0 of 1 in MPI_COMM_WORLD";
    assert!(done.united().contains(told), "{done}");
    let done = run(&place, &["--launcher", "mpirun"], python, &[script]).code(0);
    assert_eq!(
        lines_of(&done.out),
        ["rank 0 of 2", "rank 1 of 2"],
        "{done}"
    );
    assert!(!done.out.contains("error:"), "{done}");
}

/// Without a PMIx server, and under the other launcher. The program has a copy of its own of the library's objects.
#[test]
fn isolated_ranks_of_a_linked_program_are_an_error() {
    let place = Place::new();
    let program = place.compile("mpi_sum", Compiler::OpenMpi);
    for launcher in [
        &["--launcher", "local", "--pmix", "off"][..],
        &["--launcher", "mpiexec"],
    ] {
        let done = run(&place, launcher, &program, &[]).code(ISOLATED);
        assert!(
            done.united().contains("[0-1] rank 0 of 1: sum 1\n"),
            "{launcher:?}: {done}"
        );
        let told = "ranks 0-1 (2): error: the program has rank 0 of 1 in MPI_COMM_WORLD";
        assert!(done.united().contains(told), "{launcher:?}: {done}");
    }
}

/// The library that uses PMIx is needed by another library only.
#[test]
fn fortran_program_finds_its_ranks_without_a_launcher() {
    let place = Place::new();
    let program = ring(&place, Compiler::FortranOpenMpi);
    let done = run(&place, &["--launcher", "local"], &program, &[]).code(0);
    let ranks = ["rank 0 of 2", "rank 1 of 2"];
    assert_eq!(lines_of(&done.out), ranks, "{done}");
}

/// Jobs that run already, each under the launcher of the other MPI: every process waits for itself.
#[test]
fn isolated_ranks_are_reported_without_a_debugger() {
    for (compiler, of_launcher) in [
        (Compiler::Mpich, Compiler::OpenMpi),
        (Compiler::OpenMpi, Compiler::Mpich),
    ] {
        let folder = Folder::new("stray");
        let program = folder.compile(compiler, "mpi_stray");
        let under = Under {
            ranks: 3,
            ..Under::new(of_launcher)
        };
        let job = Job::start(under, &program, "alone");
        let place = Place::new();
        let prefix = ["env", "--default-signal=INT"];
        let target = job.launcher.id().to_string();
        let done = Sdm::wrapped(&prefix, &place, "diagnose")
            .args([&target])
            .finish();
        drop(job);
        let told = "ranks 0-2 (3): error: the program has rank 0 of 1 in MPI_COMM_WORLD";
        assert!(done.united().contains(told), "{compiler:?}: {done}");
    }
}

#[test]
fn a_script_is_started_by_the_mpi_of_its_program() {
    let place = Place::new();
    let program = ring(&place, Compiler::FortranMpich);
    let program = program.to_str().expect("a path of text");
    let script = place.path().join("job.sh");
    std::fs::write(&script, format!("set -e\n\"{program}\" && true\n")).expect("there is room");
    let script = script.to_str().expect("a path of text");
    for args in [&[script][..], &["-c", &format!("{program}; true")]] {
        let done = run(&place, &[], Path::new("/bin/sh"), args);
        let ranks = ["rank 0 of 2", "rank 1 of 2"];
        assert_eq!(lines_of(&done.out), ranks, "{done}");
        let chosen = "[launcher] mpiexec, because /bin/sh is called with an argument that is a program linked with MPICH or a derivative (in its arguments ";
        assert!(done.err.contains(chosen), "{done}");
    }
}
