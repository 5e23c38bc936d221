//! All ways to hang under each MPI, and tests that need many samples: `scripts/test --full` only.
//!
//! Each way runs once with 8 ranks and once with 32, or `SDM_TEST_REPEATS` times: the parts repeat them over the commits.

use std::path::{Path, PathBuf};

use sdm_tests::fixture;
use sdm_tests::job::Folder;
use sdm_tests::observations::folder_of;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;
use sdm_tests::ways::{self, ALIKE, Expect, MANY};

use super::cases::Cases;
use super::job::{Job, Ranks, Ready, Under};
use super::processes::{PARENTS, check_parents};
use super::{PLAIN, Told, check_and_keep, check_case, installed, may_count, told};

fn repeats() -> usize {
    let said = std::env::var("SDM_TEST_REPEATS").ok();
    said.map_or(1, |said| {
        said.parse().expect("SDM_TEST_REPEATS is a number")
    })
}

/// Checks all ways repeatedly. The first time the observations are stored in `record`; ways that are there already
/// are skipped, so that an interrupted recording continues.
fn check_all(under: Under, times: usize, record: Option<PathBuf>) {
    if !installed().contains(&under.compiler) {
        return;
    }
    let folder = Folder::new(&format!("hangs-{:?}-{}", under.compiler, under.ranks));
    let program = folder.compile(under.compiler, "hangs");
    let mut cases = Cases::default();
    for time in 0..times {
        let record = record.as_deref().filter(|_| time == 0);
        for expect in ways::all(under.compiler, under.ranks) {
            if record.is_some_and(|folder| is_recorded(folder, under.compiler, expect.way())) {
                continue;
            }
            cases.run(under, expect.way(), || {
                check_and_keep(under, &program, expect, record);
            });
        }
    }
    cases.finish();
}

fn is_recorded(folder: &Path, compiler: Compiler, way: &str) -> bool {
    let folder = folder.join(folder_of(compiler));
    folder.join(format!("{way}.json")).is_file()
}

fn check_under(compiler: Compiler) {
    let record = std::env::var_os("SDM_RECORD").map(PathBuf::from);
    check_all(Under::new(compiler), repeats(), record);
}

#[test]
fn every_hang_is_diagnosed_under_open_mpi() {
    check_under(Compiler::OpenMpi);
}

#[test]
fn every_hang_is_diagnosed_under_mpich() {
    check_under(Compiler::Mpich);
}

#[test]
fn every_hang_is_diagnosed_under_open_mpi_5() {
    check_under(Compiler::OpenMpi5);
}

#[test]
fn all_parents_waiting_for_spawned_ranks_are_no_deadlock() {
    check_parents(&PARENTS);
}

/// Checks all ways in a job of many ranks, once: such a job occupies all processors for a long time.
fn check_many_ranks(compiler: Compiler) {
    let under = Under {
        ranks: MANY,
        ..Under::new(compiler)
    };
    check_all(under, repeats(), None);
}

#[test]
fn every_hang_of_many_ranks_is_diagnosed_under_open_mpi() {
    check_many_ranks(Compiler::OpenMpi);
}

#[test]
fn every_hang_of_many_ranks_is_diagnosed_under_mpich() {
    check_many_ranks(Compiler::Mpich);
}

#[test]
fn every_hang_of_many_ranks_is_diagnosed_under_open_mpi_5() {
    check_many_ranks(Compiler::OpenMpi5);
}

/// Without source and debug information only the state of frames shows the ranks that wait.
#[test]
fn program_without_debug_information_is_diagnosed() {
    let folder = Folder::new("hangs-bare");
    let program = folder.0.join("hangs");
    fixture::compile(Compiler::Mpich, "hangs", &["-O2"], &program);
    for case in [
        ("ring", "deadlock", "", "MPI_Recv"),
        ("loop_of_calls", "held_up", "3", "while it computes"),
        (
            "joined_locks",
            "deadlock",
            "3",
            "waits in worker () for &first",
        ),
    ] {
        check_case(Under::new(Compiler::Mpich), &program, case);
    }
}

/// Ranks of a communicator or request are shown as ranks of the job. They are read from the memory of MPI libraries.
#[test]
fn ranks_of_communicators_and_requests_map_to_job_ranks() {
    for (number, compiler) in installed().into_iter().enumerate() {
        let folder = Folder::new(&format!("hangs-ranks-{number}"));
        let from = "from 0 (its request), tag 99";
        let program = folder.compile(compiler, "hangs");
        for case in [
            ("ring_of_some", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("grid", "deadlock", "", "0 -> 3 -> 7 -> 4 -> 0"),
            ("ring_beside", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("requests", "deadlock", "", "0 -> 7 -> 6 -> 5 -> 4"),
            ("request", "deadlock", "0,3", from),
            ("requests_of_some", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("halves", "deadlock", "0,3", "in half (ranks 0-3)"),
            ("twins", "cannot_go_on", "3", "different communicators"),
        ] {
            check_case(Under::new(compiler), &program, case);
        }
    }
}

#[test]
fn diagnosis_names_the_killed_rank_that_others_await() {
    let folder = Folder::new("hangs-killed");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    // Otherwise the launcher would end the other ranks.
    let options = &[
        "--enable-recovery",
        "--mca",
        "orte_abort_on_non_zero_status",
        "0",
    ];
    let under = Under {
        options,
        ..Under::new(Compiler::OpenMpi)
    };
    let case = (
        "killed",
        "cannot_go_on",
        "3",
        "the process no longer exists",
    );
    check_case(under, &program, case);
}

/// No signal stops a rank in state D (uninterruptible sleep), also in a job that `sdm` has started.
#[test]
fn rank_in_state_d_is_named_in_a_job_that_sdm_started() {
    let folder = Folder::new("hangs-started");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let file = folder.0.join("file");
    let mut ready = Ready::at(&file);
    let place = Place::new();
    let mut sdm = Sdm::run(&place, 4)
        .args(["--launcher", "mpirun", "--no-stop"])
        .talk()
        .program(
            &program,
            &["in_kernel", file.to_str().expect("a path of text")],
        )
        .spawn();
    ready.wait(4);
    let ranks = Ranks::of(&program);
    sdm.out.wait(0, "rank 3: the process has forked a child");
    // Three are in a barrier, where Open MPI computes; one is in state D.
    until("all ranks are in their places", || {
        ranks.computing().len() == 3 && ranks.in_state("D").len() == 1
    });
    let told = sdm.ask("diagnose", " samples in ");
    assert!(
        told.contains("ranks 0-2 (3): waiting in MPI_Barrier"),
        "{told}"
    );
    for part in [
        "Cannot tell: some ranks wait for others whose activity is unknown",
        "rank 3: the process could not be stopped",
        "process state D",
    ] {
        assert!(told.contains(part), "no {part:?}: {told}");
    }
    let mark = sdm.out.mark();
    sdm.ask("kill", "killed (SIGKILL)");
    sdm.out.wait_each(mark, "3", "killed (SIGKILL)");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// Inspected ranks count as waiting for each other only as far as observed: a rank outside the inspection may let
/// them go on.
#[test]
fn uninspected_rank_leaves_the_verdict_open() {
    let folder = Folder::new("hangs-part");
    let program = folder.compile(Compiler::Mpich, "hangs");
    for (way, ranks) in [("receive", "0-3"), ("ring", "2-6"), ("any_source", "3")] {
        let job = Job::start(Under::new(Compiler::Mpich), &program, way);
        let Told { found, code } = told(PLAIN, &job, &["--ranks", ranks]);
        assert_eq!(found["step"], "cannot_tell", "{way}: {found:#}");
        assert_eq!(
            (&found["suspects"], code),
            (&"".into(), Some(2)),
            "{found:#}"
        );
        assert!(found.to_string().contains("not sampled"), "{found:#}");
    }
    // These two wait for each other, whatever the rest does.
    let job = Job::start(Under::new(Compiler::Mpich), &program, "pair");
    let found = told(PLAIN, &job, &["--ranks", "2-3"]).found;
    assert_eq!(found["step"], "deadlock", "{found:#}");
}

/// A rank that repeats a call is seen in the same call each time, and does not count as waiting. Without the kernel's
/// performance events the repetition is not seen, but no rank is reported to wait for ever.
#[test]
fn rank_repeating_a_call_is_not_reported_as_waiting() {
    /// Number of starts of each.
    const TIMES: usize = 5;
    if !may_count() {
        println!("SKIP: a part: the kernel lets nobody count (kernel.perf_event_paranoid)");
    }
    let by_tcp = Under {
        options: &["--mca", "btl", "self,tcp"],
        ..Under::new(Compiler::OpenMpi)
    };
    let under = [
        by_tcp,
        Under::new(Compiler::OpenMpi),
        Under::new(Compiler::Mpich),
    ];
    for (number, under) in under.into_iter().enumerate() {
        let folder = Folder::new(&format!("hangs-alike-{number}"));
        let program = folder.compile(under.compiler, "hangs");
        let uncounted = folder.compile(Compiler::C, "uncounted");
        let uncounted = uncounted.to_str().expect("a path of text");
        // That bytes on connections are seen one way is enough to show.
        let ways = if number == 0 { &["token"] } else { ALIKE };
        for way in ways {
            for _ in 0..TIMES {
                let job = Job::start(under, &program, way);
                let found = told(&[uncounted], &job, &[]).found;
                let fault = Expect::Alike(way).fault(&found, false);
                assert_eq!(fault, None, "uncounted, {way} under {under:?}: {found:#}");
                if may_count() {
                    let Told { found, code } = told(PLAIN, &job, &[]);
                    let said = format!("{way} under {under:?}: {found:#}");
                    assert_eq!(Expect::Alike(way).fault(&found, true), None, "{said}");
                    assert_eq!(code, Some(0), "{said}");
                }
            }
        }
    }
}

/// Stacks are read while MPI polls, where gdb sometimes cannot unwind. An incomplete stack must not count as a running
/// rank.
#[test]
fn waiting_rank_is_never_reported_as_running() {
    /// Number of diagnoses of the job.
    const TIMES: usize = 25;
    for (number, compiler) in [(0, Compiler::OpenMpi), (1, Compiler::Mpich)] {
        let folder = Folder::new(&format!("hangs-again-{number}"));
        let program = folder.compile(compiler, "hangs");
        let job = Job::start(Under::new(compiler), &program, "receive");
        let pid = job.launcher.id().to_string();
        for time in 0..TIMES {
            let expect = "Deadlock: likely to blame: ranks 3-4 (2): rank 3 waits for rank 4";
            let place = Place::new();
            let done = Sdm::new(&place, "diagnose").args([&pid]);
            let done = done.ask_again("each of many diagnoses is right").finish();
            assert!(done.out.starts_with(expect), "{compiler:?}, {time}: {done}");
        }
    }
}
