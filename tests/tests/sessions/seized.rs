//! Programs of a batch run without a gdb until something needs one.

use std::path::Path;

use nix::sys::signal::Signal;
use sdm_tests::counted_gdb::CountedGdb;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, signal};
use sdm_tests::run::until;
use sdm_tests::sdm::{Done, Sdm};

fn batch(place: &Place, gdb: &str, program: &Path, words: &[&str]) -> Done {
    Sdm::run(place, 2)
        .args(["--batch", "--no-report", "--gdb", gdb])
        .program(program, words)
        .finish()
}

/// The processes of the program.
fn work(place: &Place) -> Vec<u32> {
    let mut pids = place.pids("spin");
    pids.retain(|pid| processes::name(*pid) == "work");
    pids
}

#[test]
fn programs_that_end_well_need_no_gdb() {
    let place = Place::new();
    let run = |name: &str, words: &[&str], printed: &str| {
        let program = place.compile_with(name, Compiler::C, &["-g", "-pthread"]);
        let done = batch(&place, "/nosuch/gdb", &program, words).code(0);
        assert!(done.united().contains(printed), "{printed}: {done}");
    };
    run("work", &["steps"], "total 6\n");
    run("forks", &[], "children gave 14, and this 114\n");
    run("handlers", &["live"], "5 faults, 1 probes\n");
    run(
        "children",
        &[],
        "ends: -6 -11 3 4 5, shell 6, threads 100\n",
    );
}

#[test]
fn a_program_keeps_its_exit_code_without_gdb() {
    let place = Place::new();
    let program = place.compile("execs", Compiler::C);
    let link = place.path().join("nowhere");
    let done = batch(&place, "/nosuch/gdb", &program, &["1", "2", "3"]).code(4);
    assert!(done.out.contains("exited with code 4"), "{done}");
    let done = batch(&place, "/nosuch/gdb", &link, &[]).code(127);
    assert!(done.out.contains("nowhere: no such file"), "{done}");
}

#[test]
fn a_crash_brings_a_gdb_for_each_that_crashes() {
    let place = Place::new();
    let gdb = CountedGdb::new(&place);
    let program = place.compile("work", Compiler::C);
    let done = batch(&place, gdb.path(), &program, &["steps"]).code(0);
    assert_eq!(gdb.starts(), 0, "{done}");
    let line = Place::line("work.c", "*pointer = 1");
    let done = batch(&place, gdb.path(), &program, &["segv"]).code(139);
    let stopped =
        format!("received signal SIGSEGV, Segmentation fault, write_through () at work.c:{line}");
    assert!(done.united().contains(&stopped), "{done}");
    done.expect_part(
        "[@crashed] bt",
        "#0  write_through (pointer=0x0) at work.c:",
    );
    assert_eq!(gdb.starts(), 2, "{done}");
}

/// A crash that comes while no gdb can be had is told, and nothing is left.
#[test]
fn a_crash_without_any_gdb_loses_its_rank() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let done = batch(&place, "/nosuch/gdb", &program, &["segv"]).code(122);
    assert!(
        done.united().contains("/nosuch/gdb: no such debugger"),
        "{done}"
    );
    place.assert_gone();
}

#[test]
fn a_hang_is_looked_at_without_gdb() {
    let place = Place::new();
    let program = place.compile_with("work", Compiler::C, &["-g", "-pthread"]);
    let done = Sdm::run(&place, 2)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .args(["--hang-timeout", "2"])
        .program(&program, &["spin"])
        .finish()
        .code(120);
    done.expect_part("[@stopped] diagnose", "spin () at work.c:");
    done.expect_part("[@stopped] stacks", "ranks 0-1 (2): main () at work.c:");
    place.assert_gone();
}

#[test]
fn a_program_stopped_by_its_user_stays_so_until_it_is_continued() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .args(["--time-limit", "600"])
        .program(&program, &["spin"])
        .spawn();
    running.out.wait(0, "spinning");
    let pid = work(&place)[0];
    let letter = || processes::of(pid).state().map(|state| state.0);
    signal(pid, Signal::SIGSTOP);
    until("it is stopped", || matches!(letter(), Some('T' | 't')));
    signal(pid, Signal::SIGCONT);
    until("it goes on", || matches!(letter(), Some('S' | 'R')));
    signal(pid, Signal::SIGTERM);
    let done = running.finish().code(143);
    assert!(done.out.contains("terminated by signal SIGTERM"), "{done}");
}

#[test]
fn a_program_ends_with_its_killed_server() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 2)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .program(&program, &["spin"])
        .spawn();
    running.out.wait(0, "spinning");
    assert_eq!(work(&place).len(), 2);
    for server in processes::servers(place.mark()).into_values() {
        signal(server, Signal::SIGKILL);
    }
    let done = running.finish().code(122);
    assert!(done.out.contains("lost"), "{done}");
    place.assert_gone();
}
