//! Diagnosis of programs that hang, each in its own way, and of some that do not, under MPICH.

use std::process::{Command, Stdio};

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use serde_json::Value;

/// The functions in which ranks of the fixture hang: a busy machine lets them come there late.
fn arrivals(way: &str) -> &'static [(&'static str, &'static str)] {
    match way {
        "receive" => &[("0-2", "MPI_Allreduce"), ("3", "MPI_Recv")],
        "collective" => &[("0-2", "MPI_Allreduce"), ("3", "MPI_Barrier")],
        "loop" => &[("0-2", "MPI_Allreduce"), ("3", "spin")],
        "dead" => &[("0-2", "MPI_Allreduce")],
        "locks" => &[("0-3", "worker")],
        "ring" => &[("0-3", "MPI_Recv")],
        "file" => &[("0-3", "flock")],
        _ => &[],
    }
}

/// Diagnosis of four ranks of the fixture where they hang.
fn diagnose(place: &Place, way: &str) -> Value {
    let program = place.path().join("stuck");
    let mut lines = vec!["tbreak begin".to_owned(), "continue".to_owned()];
    for (ranks, function) in arrivals(way) {
        lines.push(format!("[{ranks}] tbreak {function}"));
        lines.push(format!("[{ranks}] continue"));
    }
    lines.extend(["continue &".to_owned(), "diagnose".to_owned()]);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let done = Sdm::run(place, 4)
        .args(["--launcher", "mpiexec", "--json"])
        .lines(&lines)
        .program(&program, &[way, "lock"])
        .finish()
        // A rank that has left before MPI_Finalize is the outcome of the script.
        .code(if way == "dead" { 121 } else { 0 });
    let records = done.records();
    let found = records.iter().find(|record| record["kind"] == "diagnosis");
    let found = found.unwrap_or_else(|| panic!("{way}: {done}")).clone();
    println!("{way}: {found:#}");
    found
}

fn text(found: &Value) -> String {
    found.to_string()
}

#[test]
fn hangs_are_diagnosed_from_samples() {
    let place = Place::new();
    let _program = place.compile("stuck", Compiler::Mpich);
    for (way, step, named, parts) in [
        (
            "receive",
            "deadlock",
            "0,3",
            ["MPI_Recv, called from receive", "from 0 (neighbour)"],
        ),
        (
            "collective",
            "cannot_go_on",
            "3",
            ["different collective", "MPI_Barrier"],
        ),
        (
            "loop",
            "held_up",
            "3",
            ["spin ()", "an endless loop, or a long computation"],
        ),
        (
            "dead",
            "cannot_go_on",
            "3",
            [
                "_exit before MPI_Finalize with code 1, in exit, called from dead ()",
                "waiting in MPI_Allreduce",
            ],
        ),
        (
            "locks",
            "deadlock",
            "0-3",
            ["each other's locks", "for &second, which thread"],
        ),
        (
            "ring",
            "deadlock",
            "",
            ["in a cycle", "no single rank is to blame"],
        ),
    ] {
        let found = diagnose(&place, way);
        assert_eq!(found["step"], step, "{way}: {found:#}");
        let list = match step {
            "held_up" => "held_up_by",
            _ => "suspects",
        };
        assert_eq!(found[list], named, "{way}: {found:#}");
        for part in parts {
            assert!(text(&found).contains(part), "{way}: {part}: {found:#}");
        }
    }
    // The test's own lock on the file that all ranks want to lock.
    let lock = std::fs::File::create(place.path().join("lock")).expect("a file for the test");
    lock.lock().expect("nobody else has it");
    let found = diagnose(&place, "file");
    assert_eq!(found["step"], "held_up", "{found:#}");
    let own = format!("lock; the wait depends on process {} (", std::process::id());
    for part in ["wait for a file, in flock", &own] {
        assert!(text(&found).contains(part), "{part}: {found:#}");
    }
}

#[test]
fn progressing_rank_is_not_blamed() {
    let place = Place::new();
    let _program = place.compile("stuck", Compiler::Mpich);
    for way in ["balanced", "slow", "farm"] {
        let found = diagnose(&place, way);
        assert_eq!(found["step"], "no_hang_seen", "{way}: {found:#}");
        assert_eq!(found["stuck"], false, "{way}: {found:#}");
    }
}

/// A job that was started without SDM is diagnosed, and runs on afterwards.
#[test]
fn diagnosed_running_job_is_left_unchanged() {
    let place = Place::new();
    // Not in the place of the session, whose processes are all to be gone.
    let other = Place::new();
    let program = other.compile("loop", Compiler::C);
    let start = || Command::new(&program).stdout(Stdio::null()).spawn();
    let mut children: Vec<_> = (0..2).map(|_| start().expect("it starts")).collect();
    let pids: Vec<_> = children
        .iter()
        .map(|child| child.id().to_string())
        .collect();
    let done = Sdm::new(&place, "diagnose").args([pids.join(",")]).finish();
    let mut running = Vec::new();
    for child in &mut children {
        running.push(child.try_wait().expect("it is ours").is_none());
        let _ = child.kill();
        let _ = child.wait();
    }
    assert_eq!(running, [true, true], "{done}");
    assert!(done.out.contains("No hang seen: "), "{done}");
    let _done = done.code(0);
}
