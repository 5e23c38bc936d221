//! MPI programs without a launcher of MPI where something fails: the PMIx library, or a rank that never connects to it.

use sdm_tests::place::{Compiler, Place};

use super::choice::ISOLATED;
use super::pmix::{assert_no_folder, lines_of, local};

/// A rank that ends without `MPI_Init` ends the job, as under mpirun. (mpirun waits for ever where such a rank ends
/// with 0.)
#[test]
fn rank_ending_before_mpi_init_ends_the_job() {
    let place = Place::new();
    let absent = place.compile("mpi_absent", Compiler::OpenMpi);
    for (own, code) in [("7", 7), ("0", 1)] {
        let done = local(&place, 3).args(["--batch", "--no-report"]);
        let done = done.program(&absent, &[own]).finish().code(code);
        let why = format!("rank 1 ends the job with status {code}: it has ended without MPI_Init");
        assert!(done.out.contains(&why), "{done}");
    }
    let sum = place.compile("mpi_sum", Compiler::Mpich);
    let done = local(&place, 2).args(["--batch", "--no-report"]);
    let done = done.program(&sum, &[]).finish().code(ISOLATED);
    assert!(
        done.err.contains("each process would be rank 0 of 1"),
        "{done}"
    );
}

/// A library that crashes or hangs costs its own process, whose end is reported.
#[test]
fn failing_pmix_library_is_reported_and_session_continues() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let run = |fault: &str| {
        let library = place.path().join(format!("{fault}.so"));
        let fault = format!("-D{fault}");
        let options = [
            &fault,
            "-shared",
            "-fPIC",
            "-Wl,--no-as-needed",
            "-l:libpmix.so.2",
        ];
        sdm_tests::fixture::compile(Compiler::C, "faulty_library", &options, &library);
        let batch = ["--batch", "--no-report"];
        let sdm = local(&place, 2).args(batch).program(&sum, &[]);
        sdm.env("SDM_PMIX_LIBRARY", library)
    };
    let alone = "rank 0 of 1: sum 1";
    let done = run("CRASHES").finish().code(118);
    let why = "ranks 0-1 (2): no PMIx server: sdm-pmix: killed by SIGABRT: the store is full; each MPI process is a job of its own";
    assert!(done.out.contains(why), "{done}");
    // Equal output of both within a moment is one line.
    let printed = |out: &str| {
        let lines = out.lines().filter(|line| !line.contains("error: "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let is_alone = |out: &str| lines_of(&printed(out)).iter().all(|it| *it == alone);
    assert!(is_alone(&done.out), "{done}");
    if sdm_tests::run::is_full() {
        let running = run("HANGS").spawn();
        let why = "sdm-pmix takes too long; each MPI process is a job of its own";
        running.out.wait(0, why);
        let done = running.finish().code(118);
        assert!(is_alone(&done.out), "{done}");
    }
    assert_no_folder(&place);
}
