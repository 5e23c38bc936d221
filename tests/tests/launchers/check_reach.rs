//! `--check` reports a session or program that it has not checked, and the compilation of its library.

use std::path::Path;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

use super::check::{checked, errors};

/// The exit code where no rank has come to a checked MPI.
const UNCHECKED: i32 = 117;

#[test]
fn mpi_4_session_without_mpi_init_is_reported_unchecked() {
    let place = Place::new();
    let program = place.compile("mpi_sessions", Compiler::Mpich);
    let done = checked(&place, "mpiexec", 2, &["--check", "--batch"]);
    let done = done.program(&program, &[]).finish().code(UNCHECKED);
    assert_eq!(errors(&place, &done), [], "{done}");
    assert!(done.out.contains("2 ranks"), "{done}");
    let told = "ranks 0-1 (2): --check: nothing was checked";
    assert!(done.out.contains(told), "no {told} in {done}");
}

#[test]
fn program_without_mpi_is_reported_unchecked() {
    let place = Place::new();
    for how in [
        &["--check", "--batch", "--junit", "j.xml"][..],
        &["--check", "--batch", "-c", "continue"],
    ] {
        let done = checked(&place, "mpirun", 2, how);
        let done = done
            .program(Path::new("/bin/true"), &[])
            .finish()
            .code(UNCHECKED);
        let end = "session ended: --check has checked nothing: no rank has begun MPI";
        assert!(done.out.contains(end), "{done}");
        let report = std::fs::read_to_string(place.path().join("report.json"));
        assert!(
            report.expect("a report").contains("checked nothing"),
            "{done}"
        );
    }
    let xml = std::fs::read_to_string(place.path().join("j.xml")).expect("it was asked for");
    assert!(
        xml.contains("<failure") && xml.contains("checked nothing"),
        "{xml}"
    );
}

#[test]
fn right_program_below_a_script_is_checked() {
    let place = Place::new();
    let program = place.compile("mpi_errors", Compiler::OpenMpi);
    let script = format!("{} right_requests; exit 0", program.display());
    let done = checked(&place, "mpirun", 2, &["--check", "--batch"]);
    let done = done
        .program(Path::new("/bin/sh"), &["-c", &script])
        .finish()
        .code(0);
    assert!(!done.out.contains("nothing was checked"), "{done}");
}

/// Rank 1 waits for rank 0, which stops at its error.
#[test]
fn script_of_a_batch_continues_after_mpi_errors() {
    let place = Place::new();
    let program = place.compile("mpi_matching", Compiler::OpenMpi);
    let how = ["--check", "--batch", "-c", "continue"];
    let done = checked(&place, "mpirun", 2, &how);
    let done = done.program(&program, &["never_received"]).finish();
    let done = done.code(119);
    assert!(done.out.contains("errors in the use of MPI: 1\n"), "{done}");
    let told = errors(&place, &done);
    assert!(
        matches!(&told[..], [(what, tasks)] if what.contains("M503 ") && tasks == "0"),
        "{told:#?}"
    );
}

#[test]
fn check_library_compilation_is_announced_before_it_begins() {
    let place = Place::new();
    let program = place.compile("mpi_errors", Compiler::OpenMpi);
    let cache = place.path().join("cache");
    let left = cache.join("sdm-check/new-1");
    std::fs::create_dir_all(&left).expect("there is room");
    for folder in [&cache, &cache.join("sdm-check")] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(folder, mode).expect("it is ours");
    }
    for is_first in [true, false] {
        let sdm = Sdm::run(&place, 1).env("XDG_CACHE_HOME", &cache);
        let sdm = sdm.args(["--launcher", "mpirun", "--check", "--batch"]);
        let done = sdm.program(&program, &["right_requests"]).finish().code(0);
        let is_said = done.err.contains("--check: compiling the library");
        assert_eq!(is_said, is_first, "{done}");
    }
    assert!(!left.exists(), "what a killed build has left is removed");
}
