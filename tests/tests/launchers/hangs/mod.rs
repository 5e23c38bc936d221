//! Diagnoses by `sdm diagnose` of jobs that hang, each in its own way, and of some that do not. Checked are the
//! verdict, the tasks that it names, and the evidence. Each job runs without a debugger until `sdm diagnose`
//! attaches to it.
//!
//! [`live`] has ten jobs in each run. [`full`] has all of them under each MPI, and tests that need many samples; it
//! records the observations where `SDM_RECORD` names a folder. The test program `house` judges the recorded
//! observations again.

mod both_ways;
mod cases;
mod fortran;
mod full;
pub(super) mod job;
mod live;
mod processes;

use std::path::Path;

use sdm_tests::observations::{folder_of, normalised};
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::ways::{Case, Expect};
use serde_json::Value;

use job::{Job, Under};

const _: () = sdm_tests::run::test_group("crowded", "eight to 32 ranks that poll");

/// Prefix of the `sdm` command line that only restores the default action of SIGINT.
const PLAIN: &[&str] = &["env", "--default-signal=INT"];

/// The diagnosis of a job, as the record, with the exit code.
struct Told {
    found: Value,
    code: Option<i32>,
}

/// Runs `PREFIX sdm diagnose` on a job.
fn told(prefix: &[&str], job: &Job, options: &[&str]) -> Told {
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let line = [&["--json", &pid], options].concat();
    let done = Sdm::wrapped(prefix, &place, "diagnose").args(line).finish();
    let records = done.records();
    let found = records.iter().find(|record| record["kind"] == "diagnosis");
    let found = found.unwrap_or_else(|| panic!("{}: {done}", job.way));
    Told {
        found: found.clone(),
        code: done.code,
    }
}

/// Starts a job, diagnoses it once, and compares the diagnosis with the expected one.
fn check(under: Under, program: &Path, expect: Expect) {
    check_and_keep(under, program, expect, None);
}

/// As [`check`], and stores the observations in a folder. Returns the record of the diagnosis.
fn check_and_keep(under: Under, program: &Path, expect: Expect, folder: Option<&Path>) -> Value {
    let way = expect.way();
    // The test takes the lock before any rank asks for it.
    let lock = (way == "file_lock").then(|| {
        let path = program.with_file_name("file");
        let lock = std::fs::File::create(path).expect("a file of the test's");
        lock.lock().expect("nobody else has it");
        lock
    });
    let job = Job::start(under, program, way);
    let observed = program.with_file_name("observations");
    let told = match folder {
        Some(_) => {
            let path = observed.to_str().expect("a path of text");
            told(PLAIN, &job, &["--observations", path])
        }
        None => told(PLAIN, &job, &[]),
    };
    drop((lock, job));
    let expected_code = match told.found["step"].as_str() {
        Some("no_hang_seen") => 0,
        Some("deadlock") => 1,
        Some("cannot_tell") => 2,
        Some("cannot_go_on") => 3,
        _ => 4,
    };
    let fault = expect.fault(&told.found, may_count());
    if let Some(folder) = folder {
        let folder = folder.join(folder_of(under.compiler));
        std::fs::create_dir_all(&folder).expect("a folder of who has asked for it");
        let text = std::fs::read_to_string(&observed).expect("what was observed");
        match fault {
            Some(_) => std::fs::write(folder.join(format!("{way}.wrong")), text),
            None => {
                let text = normalised(&text, program.parent().expect("it lies in a folder"));
                std::fs::write(folder.join(format!("{way}.json")), text)
            }
        }
        .expect("a file of who has asked for it");
    }
    let said = format!("{way} under {under:?}: {:#}", told.found);
    assert!(fault.is_none(), "{}: {said}", fault.unwrap_or_default());
    assert_eq!(told.code, Some(expected_code), "{said}");
    told.found
}

fn check_case(under: Under, program: &Path, case: Case) {
    check(under, program, Expect::Case(case));
}

/// The MPIs of the tests: Open MPI and MPICH, and Open MPI 5 if it is installed.
fn installed() -> Vec<Compiler> {
    let mut all = vec![Compiler::OpenMpi, Compiler::Mpich];
    if parts::openmpi5().is_some() {
        all.push(Compiler::OpenMpi5);
    }
    all
}

/// True if the kernel allows an ordinary user performance events, by which SDM counts returned calls.
fn may_count() -> bool {
    let allowed = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let allowed = allowed.ok().and_then(|text| text.trim().parse().ok());
    allowed.is_some_and(|level: i32| level <= 2)
}
