//! Diagnoses of ten jobs in each run of the tests: one job for each verdict, and five that the commit chooses.

use sdm_tests::job::Folder;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::ways::{self, Expect, RANKS};

use super::cases::Cases;
use super::job::Under;
use super::{check, check_and_keep, installed};
use crate::chosen::by_commit;

/// Number of ways that the commit selects.
const CHOSEN: usize = 5;

fn expectation(compiler: Compiler, ranks: usize, way: &str) -> Expect {
    let found = ways::all(compiler, ranks).find(|expect| expect.way() == way);
    found.expect("the table has it")
}

fn check_way(compiler: Compiler, way: &str) {
    let folder = Folder::new(&format!("hangs-live-{way}"));
    let program = folder.compile(compiler, "hangs");
    // Waiting ranks take whole processors: as few as the way can have.
    let ranks = 4;
    let under = Under {
        ranks,
        ..Under::new(compiler)
    };
    check(under, &program, expectation(compiler, ranks, way));
}

/// The observations are written, and their replay gives the same verdict without the job.
#[test]
fn deadlock_is_diagnosed_and_replayed() {
    let folder = Folder::new("hangs-live-receive");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let expect = expectation(Compiler::OpenMpi, RANKS, "receive");
    let before = check_and_keep(
        Under::new(Compiler::OpenMpi),
        &program,
        expect,
        Some(&folder.0),
    );
    let place = Place::new();
    let kept = folder.0.join("observations");
    let replay = Sdm::new(&place, "diagnose").args(["--json", "--replay"]);
    let done = replay.args([kept]).finish().code(1);
    let mut after = done.records().swap_remove(0);
    after["t_ms"] = before["t_ms"].clone();
    assert_eq!(after, before);
}

#[test]
fn mismatched_collective_has_the_verdict_cannot_go_on() {
    check_way(Compiler::Mpich, "collective");
}

#[test]
fn computing_rank_is_diagnosed_as_holding_up_the_others() {
    let newest = installed().into_iter().next_back();
    check_way(newest.expect("there are two"), "loop");
}

#[test]
fn progressing_job_is_not_diagnosed_as_hanging() {
    check_way(Compiler::OpenMpi, "iterates");
}

#[test]
fn rank_in_kernel_state_d_leaves_the_verdict_open() {
    check_way(Compiler::Mpich, "in_kernel");
}

#[test]
fn hangs_chosen_by_the_commit_are_diagnosed() {
    let mut all: Vec<(Compiler, Expect)> = Vec::new();
    for compiler in installed() {
        all.extend(ways::all(compiler, RANKS).map(|expect| (compiler, expect)));
    }
    let this = hangs_chosen_by_the_commit_are_diagnosed;
    let all = by_commit(this, all, |(compiler, expect)| {
        format!("{compiler:?} {}", expect.way())
    });
    let folder = Folder::new("hangs-live-chosen");
    let mut cases = Cases::default();
    for (compiler, expect) in all.into_iter().take(CHOSEN) {
        let own = folder.0.join(format!("{compiler:?}-{}", expect.way()));
        std::fs::create_dir_all(&own).expect("a folder of the test's");
        let program = own.join("hangs");
        sdm_tests::fixture::compile(compiler, "hangs", &["-g"], &program);
        let under = Under::new(compiler);
        cases.run(under, expect.way(), || check(under, &program, expect));
    }
    cases.finish();
}
