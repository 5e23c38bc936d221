//! Arguments of MPI calls in Fortran programs, as a diagnosis shows them: calls over several lines, with elements of
//! arrays, in free and in fixed form.

use sdm_tests::fixture;
use sdm_tests::job::Folder;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

use super::job::{Job, Under};

fn diagnosis(compiler: Compiler, fixture: &str, options: &[&str], by: &[&str]) -> String {
    let folder = Folder::new("fortran");
    let program = folder.0.join(fixture);
    fixture::compile(compiler, fixture, options, &program);
    let mpi = match compiler {
        Compiler::FortranMpich => Compiler::Mpich,
        _ => Compiler::OpenMpi,
    };
    let under = Under {
        ranks: 3,
        ..Under::new(mpi)
    };
    let job = Job::start(under, &program, "mesh");
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let prefix = ["env", "--default-signal=INT"];
    let done = Sdm::wrapped(&prefix, &place, "diagnose")
        .args([pid])
        .args(by)
        .finish();
    drop(job);
    assert_eq!(done.code, Some(1), "{compiler:?} {fixture}: {done}");
    done.out.clone()
}

fn check(found: &str, parts: &[&str]) {
    for part in parts {
        assert!(found.contains(part), "no {part:?} in {found}");
    }
    // The programs' own names begin like the library's.
    let other = found.replace("mpi_mesh", "").replace("mpi_fixed", "");
    assert!(!other.contains("mpi_"), "a compiler's name: {found}");
}

#[test]
fn send_call_over_several_lines_shows_its_arguments() {
    let both = [Compiler::FortranOpenMpi, Compiler::FortranMpich];
    let ways = [
        ("", &[][..]),
        ("-DF08", &[]),
        ("-DMPIFH", &[]),
        ("", &["--by", "gdb"]),
    ];
    let all = both.into_iter().flat_map(|it| ways.map(|way| (it, way)));
    for (compiler, (option, by)) in all {
        let options: Vec<&str> = ["-g", "-cpp", option]
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect();
        let found = diagnosis(compiler, "mpi_mesh.f90", &options, by);
        check(
            &found,
            &[
                "waiting in MPI_Ssend",
                "call MPI_SSEND(sent, 1, MPI_INTEGER, PROCESS(NOM), 100 + mod(me, np), MPI_COMM_WORLD, ierr)",
                "to rank+1 [0-1], 0 [2] (PROCESS(NOM)), tag rank+100 (100 + mod(me, np)",
            ],
        );
    }
}

#[test]
fn receive_in_fixed_source_form_shows_its_arguments() {
    for compiler in [Compiler::FortranOpenMpi, Compiler::FortranMpich] {
        let found = diagnosis(compiler, "mpi_fixed.f", &["-g"], &[]);
        check(
            &found,
            &[
                "waiting in MPI_Recv",
                "from rank+1 [0-1], 0 [2] (LIST(NEXT)), tag 7",
            ],
        );
    }
}
