//! Processes killed from outside are noticed and reported: a process under gdb, gdb itself, and the master.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::job::descendants;
use sdm_tests::leftovers;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, signal};
use sdm_tests::screen::ranks_of;
use sdm_tests::sdm::Sdm;

/// The pids of this place's processes with the name `name`.
fn named(place: &Place, name: &str) -> Vec<u32> {
    let pids = leftovers::holding(place.mark())
        .into_iter()
        .map(|(pid, _)| pid);
    pids.filter(|pid| processes::name(*pid) == name).collect()
}

#[test]
fn process_killed_while_stopped_is_reported_as_ended() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(&place, 2).talk().program(&work, &["spin"]).spawn();
    sdm.out.wait_each(0, "0-1", "at main ()");
    let ranks = named(&place, "work");
    assert_eq!(ranks.len(), 2);
    signal(ranks[0], Signal::SIGKILL);
    sdm.out.wait(0, ": killed (SIGKILL)");
    let _ = sdm.ask("print 40 + 2", "not running (ended by SIGKILL)");
    let _ = sdm.finish();
}

#[test]
fn attached_process_that_is_killed_is_reported_as_ended() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let work = elsewhere.compile("work", Compiler::C);
    let start = || {
        let mut command = Command::new(&work);
        command
            .arg("echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        lower(&mut command).spawn().expect("it was compiled")
    };
    // One has a gdb of its own, several share one.
    for count in [1, 3] {
        let mut processes: Vec<Child> = (0..count).map(|_| start()).collect();
        let pids: Vec<String> = processes.iter().map(|it| it.id().to_string()).collect();
        let mut sdm = Sdm::new(&place, "attach")
            .args([pids.join(",")])
            .talk()
            .spawn();
        let _ = sdm.ask("print 40 + 2", ": 42");
        processes[0].kill().expect("it lives");
        sdm.out
            .wait(0, &format!("pid {}: killed (SIGKILL)", pids[0]));
        let _ = sdm.finish();
        for process in &mut processes {
            let _ = process.kill();
            process.wait().expect("it is a child");
        }
    }
}

#[test]
fn batch_exits_with_122_if_its_gdb_is_killed() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 1)
        // With a setting it has its gdb from the beginning.
        .args(["--batch", "--gdb-setting", "set width 0"])
        .program(&work, &["spin"])
        .spawn();
    running.out.wait(0, "spinning");
    let gdb = named(&place, "gdb");
    assert_eq!(gdb.len(), 1, "{:?}", descendants(running.pid()));
    signal(gdb[0], Signal::SIGKILL);
    let done = running.finish().code(122);
    let said = format!("{}{}", done.out, done.err);
    assert!(
        said.contains(
            "gdb was killed by SIGKILL: by a user, or by the kernel because memory ran out"
        ),
        "{said}"
    );
    assert!(
        said.contains("gdb was killed or failed on rank 0"),
        "{said}"
    );
}

#[test]
fn ended_task_is_not_lost_with_the_master() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(&place, 3).talk().program(&work, &["spin"]).spawn();
    sdm.out.wait_each(0, "0-2", "at main ()");
    let _ = sdm.ask("[1] kill", "rank 1: killed");
    let master = named(&place, "sdm-master");
    assert_eq!(master.len(), 1);
    signal(master[0], Signal::SIGKILL);
    let said = sdm.out.wait_each(0, "0,2", "lost");
    let lost = said.lines().filter_map(|line| ranks_of(line, "lost"));
    assert_eq!(lost.collect::<Vec<_>>(), ["0,2".parse().expect("a set")]);
    let _ = sdm.finish();
}
