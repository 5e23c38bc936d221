//! Whoever is stopped from outside (SIGSTOP), nothing of the session is left when it ends.
//!
//! A process that is stopped does nothing about a signal that asks it to end, nor about the end of its input, and does not
//! tell those below it. Promised are ten seconds; the bound here is that of a busy machine.

use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_tests::leftovers;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::{Running, Sdm};

/// Who is stopped.
const VICTIMS: [&str; 7] = [
    "server",
    "inner",
    "master",
    "gdb",
    "program",
    "warden",
    "all of them",
];

/// All of them, as they are called.
const MEMBERS: [&str; 5] = ["sdm-server", "sdm-master", "gdb", "work", "sdm-warden"];

/// How the session ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Quit,
    KillSdm,
    KillMaster,
}

/// Four tasks under a launcher: the first two run, the others stand still.
fn start<'a>(place: &'a Place, launcher: &str) -> Running<'a> {
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(place, 4)
        .args(["--launcher", launcher])
        .talk()
        .program(&work, &["spin"])
        .spawn();
    sdm.out.wait(0, "ranks 0-3 (4): at main ()");
    sdm.ask("[0-1] continue &", "continue &\n");
    sdm.ask("print 1", "running: ranks 0-1 (2) (interrupt first)\n");
    sdm
}

/// The processes of the session, by what they are called in a list of processes.
fn named(place: &Place, name: &str) -> Vec<u32> {
    let held = leftovers::holding(place.mark()).into_iter();
    let all = leftovers::all_pids().collect::<Vec<_>>();
    // Servers name themselves by their numbers.
    let is = |pid: &u32| {
        let comm = comm(*pid);
        comm == name || name == "sdm-server" && comm.starts_with("sdm-srv-")
    };
    let mut found: Vec<u32> = held.map(|(pid, _)| pid).filter(is).collect();
    if name == "sdm-warden" {
        // It has left no trace of what it was started with; its parent has.
        let servers = named(place, "sdm-server");
        let ours = |pid: &u32| is(pid) && parent(*pid).is_some_and(|it| servers.contains(&it));
        found = all.into_iter().filter(ours).collect();
    }
    found
}

fn comm(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// What follows the name in a process's `stat`: its state, its parent.
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    Some((fields.next()?, fields.next()?.parse().ok()?))
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

/// The processes to stop. Server 1 has server 2 below it; servers 0 and 3 have nobody.
fn victims(place: &Place, who: &str) -> Vec<u32> {
    let numbered = |numbers: &[u32]| {
        let servers = processes::servers(place.mark());
        numbers.iter().map(|number| servers[number]).collect()
    };
    let found: Vec<u32> = match who {
        "server" => numbered(&[0, 3]),
        "inner" => numbered(&[1]),
        "master" => named(place, "sdm-master"),
        "gdb" => named(place, "gdb"),
        "program" => named(place, "work"),
        "warden" => named(place, "sdm-warden"),
        _ => MEMBERS.iter().flat_map(|it| named(place, it)).collect(),
    };
    assert!(!found.is_empty(), "{who}");
    found
}

/// Stops them; gives everything that the session has now.
fn stop(place: &Place, who: &str) -> Vec<u32> {
    let all = leftovers::holding(place.mark())
        .into_iter()
        .map(|(pid, _)| pid);
    let all: Vec<u32> = all.chain(named(place, "sdm-warden")).collect();
    let victims = victims(place, who);
    for pid in &victims {
        processes::signal(*pid, Signal::SIGSTOP);
    }
    for pid in victims {
        // A traced one is its gdb's to stop.
        while stat(pid).is_some_and(|(state, _)| !["T", "t"].contains(&&*state)) {
            std::thread::yield_now();
        }
    }
    all
}

fn ends(launcher: &str, who: &str, how: Ending) {
    let place = Place::new();
    let mut sdm = start(&place, launcher);
    let masters = named(&place, "sdm-master");
    let all = stop(&place, who);
    let began = Instant::now();
    match how {
        Ending::Quit => drop(sdm.ask("quit", "")),
        Ending::KillSdm => processes::signal(sdm.pid(), Signal::SIGKILL),
        Ending::KillMaster => processes::signal(masters[0], Signal::SIGKILL),
    }
    leftovers::assert_none_left(|| {
        let alive = |pid: &u32| stat(*pid).is_some_and(|(state, _)| state != "Z");
        let left = all.iter().copied().filter(alive);
        // Where its master was killed, `sdm` stays at its prompt.
        let left = left.filter(|pid| how != Ending::KillMaster || *pid != sdm.pid());
        left.map(|pid| (pid, comm(pid))).collect()
    });
    println!(
        "{launcher}, {who}, {how:?}: {:.1} s",
        began.elapsed().as_secs_f32()
    );
    let done = sdm.finish();
    match how {
        Ending::Quit => drop(done.code(0)),
        Ending::KillSdm => assert_eq!(done.code, None, "{done}"),
        Ending::KillMaster => assert_eq!(done.code, Some(122), "{done}"),
    }
}

#[test]
fn nothing_is_left_behind_a_quit() {
    for who in VICTIMS {
        ends("local", who, Ending::Quit);
    }
}

#[test]
fn nothing_is_left_of_a_killed_front_end() {
    for who in VICTIMS {
        ends("local", who, Ending::KillSdm);
    }
}

#[test]
fn nothing_is_left_of_a_killed_master() {
    for who in VICTIMS {
        ends("local", who, Ending::KillMaster);
    }
}

#[test]
fn nothing_is_left_under_runtimes() {
    for how in [Ending::Quit, Ending::KillSdm, Ending::KillMaster] {
        ends("mpirun", "all of them", how);
    }
}
