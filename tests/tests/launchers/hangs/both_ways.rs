//! Observations of a job without gdb agree with those by gdb.

use std::path::Path;

use sdm_tests::job::Folder;
use sdm_tests::place::Compiler;
use sdm_tests::ways;
use serde_json::Value;

use super::job::{Job, Under};
use super::{PLAIN, told};

/// Ways to hang in which every rank stays where it is: calls of each kind, communicators, requests, locks, files,
/// threads.
const WAYS: [&str; 9] = [
    "receive",
    "exchange",
    "waits_any",
    "request",
    "operations_of_duplicate",
    "halves",
    "ring_of_some",
    "joined_locks",
    "file_part",
];

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

fn check(under: Under, program: &Path, way: &str) {
    let job = Job::start(under, program, way);
    let folder = program.parent().expect("it lies in a folder");
    let ours = observed(&job, folder, "snapshot");
    let of_gdb = observed(&job, folder, "gdb");
    assert_eq!(ours, of_gdb, "{way} under {under:?}: ours, and gdb's");
}

fn check_all(compiler: Compiler, options: &[&str]) {
    let folder = Folder::new(&format!("hangs-both-{compiler:?}"));
    let program = folder.0.join("hangs");
    sdm_tests::fixture::compile(compiler, "hangs", options, &program);
    for way in WAYS {
        assert!(ways::HANGS.iter().any(|(known, ..)| *known == way), "{way}");
        check(Under::new(compiler), &program, way);
    }
}

#[test]
fn gdb_and_looker_observe_the_same_under_open_mpi() {
    check_all(Compiler::OpenMpi, &["-g"]);
}

#[test]
fn gdb_and_looker_observe_the_same_under_mpich() {
    check_all(Compiler::Mpich, &["-g"]);
}

#[test]
fn gdb_and_looker_observe_the_same_of_optimised_code() {
    let folder = Folder::new("hangs-both-optimised");
    let program = folder.0.join("hangs");
    sdm_tests::fixture::compile(Compiler::OpenMpi, "hangs", &["-g", "-O2"], &program);
    for way in ["receive", "operations_of_duplicate", "halves"] {
        check(Under::new(Compiler::OpenMpi), &program, way);
    }
}
