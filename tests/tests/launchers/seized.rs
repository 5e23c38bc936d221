//! Ranks of a batch run without a gdb until something needs one, under every launcher.

use sdm_tests::counted_gdb::CountedGdb;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

/// Launchers, each with an MPI that it starts.
const LAUNCHERS: [(&str, Compiler); 3] = [
    ("mpirun", Compiler::OpenMpi),
    ("mpiexec", Compiler::Mpich),
    ("local", Compiler::OpenMpi),
];

fn batch(place: &Place, launcher: &str, gdb: &str, program: &str, how: &[&str]) -> Done {
    let program = place.path().join(program);
    Sdm::run(place, 4)
        .args([
            "--launcher",
            launcher,
            "--batch",
            "--no-report",
            "--gdb",
            gdb,
        ])
        .program(&program, how)
        .finish()
}

#[test]
fn ranks_that_exit_normally_need_no_gdb() {
    for (launcher, compiler) in LAUNCHERS {
        let place = Place::new();
        let _program = place.compile("mpi_sum", compiler);
        let _done = batch(&place, launcher, "/nosuch/gdb", "mpi_sum", &[]).code(0);
    }
}

#[test]
fn rank_ending_early_stops_at_its_call() {
    for (launcher, compiler) in LAUNCHERS {
        let place = Place::new();
        let gdb = CountedGdb::new(&place);
        let _program = place.compile("mpi_ends", compiler);
        for (how, code, shown) in [
            (
                "segv",
                139,
                "rank 2: received signal SIGSEGV, Segmentation fault, leave ()",
            ),
            (
                "abort",
                121,
                "rank 2: about to call MPI_Abort, in MPI_Abort, called from leave ()",
            ),
            (
                "exit",
                121,
                "rank 2: about to call _exit before MPI_Finalize",
            ),
        ] {
            let before = gdb.starts();
            let done = batch(&place, launcher, gdb.path(), "mpi_ends", &[how]).code(code);
            assert!(done.out.contains(shown), "{launcher} {how}: {done}");
            let stacks = done.answer("[@stopped] stacks");
            assert!(stacks.contains("MPI_Allreduce"), "{launcher} {how}: {done}");
            assert_eq!(gdb.starts() - before, 1, "the others run: {done}");
        }
    }
}
