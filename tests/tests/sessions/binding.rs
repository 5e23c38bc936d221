//! Processor affinity: the program keeps the binding of its launcher, and its debugger is freed from it.

use std::collections::BTreeMap;
use std::path::Path;

use sdm_tests::leftovers::all_pids;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::{Running, Sdm};

fn allowed(pid: u32) -> Option<String> {
    let status = processes::of(pid).status().ok()?;
    status.field("Cpus_allowed_list").map(str::to_owned)
}

/// The processors of the processes below `root`, by the programs' names.
fn allowed_below(root: u32) -> BTreeMap<String, Vec<String>> {
    let below = sdm_tests::job::descendants(root);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pid in all_pids().filter(|pid| below.contains(pid)) {
        let name = processes::name(pid);
        // Servers name themselves by their numbers.
        let name = name.trim_end_matches(|it: char| it.is_ascii_digit());
        found
            .entry(name.to_owned())
            .or_default()
            .extend(allowed(pid));
    }
    found
}

fn check(sdm: &Running<'_>, work: &Path, is_right: impl Fn(&[String]) -> bool, all: &str) {
    let found = allowed_below(sdm.pid());
    let name = work
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    assert!(is_right(&found[&name]), "{found:?}");
    for debugger in ["sdm-srv-", "gdb"] {
        let sets = &found[debugger];
        assert!(
            sets.iter().all(|it| it == all) && !sets.is_empty(),
            "{found:?}"
        );
    }
}

#[test]
fn program_keeps_its_cpu_binding_and_gdb_has_none() {
    let all = allowed(std::process::id()).expect("its own");
    if all == "0" || !all.starts_with("0-") {
        println!("SKIP: binding: this machine lets us use the processors {all} only");
        return;
    }
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::behind(&["taskset", "-c", "0"], &place, 2)
        .talk()
        .program(&work, &["spin"])
        .spawn();
    sdm.out.wait_each(0, "0-1", "at main ()");
    check(&sdm, &work, |sets| sets == ["0", "0"], &all);
    // The program is still bound while it runs, and so are its own children.
    sdm.ask("continue &", "spinning");
    check(&sdm, &work, |sets| sets == ["0", "0"], &all);
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let mut sdm = Sdm::run(&place, 2)
        .args(["--launcher", "mpirun", "--launcher-option=--bind-to"])
        .args(["--launcher-option=core"])
        .talk()
        .program(&sum, &[])
        .spawn();
    sdm.out.wait_each(0, "0-1", "at main ()");
    // One core for each, with all processors of a core.
    let apart = |sets: &[String]| sets.len() == 2 && sets[0] != sets[1] && !sets.contains(&all);
    check(&sdm, &sum, apart, &all);
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
}
