//! Observations of a job without gdb agree with those by gdb.

use std::path::Path;

use sdm_tests::job::Folder;
use sdm_tests::place::Compiler;
use sdm_tests::ways;
use serde_json::Value;

use super::cases::Cases;
use super::job::{Job, Under};
use super::{PLAIN, told};
use crate::chosen::by_commit;

/// Number of programs that hang (`ways`) that a hash of the commit selects for each MPI.
const CHOSEN: usize = 9;

/// Ways that are not compared, with reasons.
const APART: &[(&str, &str)] = &[
    ("requests_of_some", "four ranks compute"),
    ("ring_beside", "four ranks compute"),
    ("pair_beside", "other ranks exchange messages all the time"),
    ("root", "ranks go on within MPI_Reduce"),
    ("record_lock", "a debugger changes the holder's state"),
    (
        "file_lock_of_a_rank",
        "a debugger changes the holder's state",
    ),
];

/// The ways that are compared under MPICH.
const OF_MPICH: &[&str] = &[
    "broadcast",
    "duplicate",
    "exchange",
    "file_part",
    "halves",
    "hub",
    "joined_locks",
    "locks",
    "operations_of_duplicate",
    "own_lock",
    "own_message",
    "pair",
    "probe",
    "receive",
    "request",
    "requests",
    "ring_of_some",
    "send_ring",
    "waits_any",
    "wanted",
    "wrong_source",
];

/// The ways to compare: those in which every rank stays where it is, so that none computes, polls or sleeps for a
/// while. Those of [`APART`] are left out, and under MPICH all but those of [`OF_MPICH`].
fn staying(compiler: Compiler) -> Vec<&'static str> {
    let stays = |case: &&ways::Case| ["deadlock", "cannot_go_on"].contains(&case.1);
    let all = ways::HANGS.iter().filter(stays).map(|case| case.0);
    all.filter(|way| APART.iter().all(|(apart, _)| apart != way))
        .filter(|way| compiler != Compiler::Mpich || OF_MPICH.contains(way))
        .collect()
}

/// Observations at each sample: the tasks' locations, the calls in which they wait, with arguments, and the verdict.
fn observed(job: &Job, folder: &Path, by: &str) -> Value {
    let path = folder.join(by);
    let text = path.to_str().expect("a path of text");
    let told = told(PLAIN, job, &["--by", by, "--observations", text]);
    let text = std::fs::read_to_string(&path).expect("what was observed");
    let mut file: Value = serde_json::from_str(&text).expect("it is JSON");
    let samples = file["samples"].as_array_mut().expect("a list");
    for sample in samples {
        let sample = sample.as_object_mut().expect("an object");
        // The kernel's counters are of another time, and the process states differ under a debugger.
        for field in ["cpu", "processes", "marks", "within"] {
            sample.remove(field);
        }
        sample.values_mut().for_each(remove_states);
    }
    let [step, suspects, conclusion] =
        ["step", "suspects", "conclusion"].map(|it| told.found[it].clone());
    serde_json::json!({
        "samples": file["samples"],
        "stacks": file["stacks"],
        "step": step,
        "suspects": suspects,
        "conclusion": conclusion,
    })
}

/// Removes the states of the processes at the other ends of what is waited for: gdb has those that it debugs stopped.
fn remove_states(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(remove_states),
        Value::Object(fields) => {
            if fields.contains_key("pid") {
                fields.remove("state");
            }
            fields.values_mut().for_each(remove_states);
        }
        _ => {}
    }
}

fn check(under: Under, program: &Path, way: &str) {
    let job = Job::start(under, program, way);
    let folder = program.parent().expect("it lies in a folder");
    let ours = observed(&job, folder, "snapshot");
    let of_gdb = observed(&job, folder, "gdb");
    assert_eq!(ours, of_gdb, "{way} under {under:?}: ours, and gdb's");
}

fn check_all(test: impl Fn(), compiler: Compiler) {
    let folder = Folder::new(&format!("hangs-both-{compiler:?}"));
    let program = folder.0.join("hangs");
    sdm_tests::fixture::compile(compiler, "hangs", &["-g"], &program);
    let mut cases = Cases::default();
    let all = by_commit(test, staying(compiler), |way| format!("{compiler:?} {way}"));
    for way in all.into_iter().take(CHOSEN) {
        let under = Under::new(compiler);
        cases.run(under, way, || check(under, &program, way));
    }
    cases.finish();
}

#[test]
fn exception_lists_name_existing_hangs() {
    let named = APART.iter().map(|(way, _)| way).chain(OF_MPICH);
    for way in named {
        assert!(ways::HANGS.iter().any(|case| case.0 == *way), "{way}");
    }
}

#[test]
fn observations_with_and_without_gdb_agree_under_open_mpi() {
    check_all(
        observations_with_and_without_gdb_agree_under_open_mpi,
        Compiler::OpenMpi,
    );
}

#[test]
fn observations_with_and_without_gdb_agree_under_mpich() {
    check_all(
        observations_with_and_without_gdb_agree_under_mpich,
        Compiler::Mpich,
    );
}

#[test]
fn observations_with_and_without_gdb_agree_for_optimised_code() {
    let folder = Folder::new("hangs-both-optimised");
    let program = folder.0.join("hangs");
    sdm_tests::fixture::compile(Compiler::OpenMpi, "hangs", &["-g", "-O2"], &program);
    for way in ["receive", "operations_of_duplicate", "halves"] {
        check(Under::new(Compiler::OpenMpi), &program, way);
    }
}
