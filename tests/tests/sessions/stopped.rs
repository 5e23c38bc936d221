//! After any process of a session was stopped from outside (SIGSTOP), the end of the session leaves no process.
//!
//! A stopped process reacts neither to a signal that asks it to end nor to the end of its input, and does not
//! inform its children. The promised limit is ten seconds; the bound here is that of a busy machine.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_system::proc::State;
use sdm_tests::leftovers;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::processes;
use sdm_tests::relay::{Hold, Relay};
use sdm_tests::run::until;
use sdm_tests::sdm::{Running, Sdm};

/// The kinds of processes to stop, one in each case.
const VICTIMS: [&str; 7] = [
    "server",
    "inner",
    "master",
    "gdb",
    "program",
    "warden",
    "all of them",
];

/// Program names of all members of a session.
const MEMBERS: [&str; 5] = ["sdm-server", "sdm-master", "gdb", "work", "sdm-warden"];

/// The end of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Quit,
    KillSdm,
    KillMaster,
}

/// A `mpirun` whose real one has another parent, a session of its own, and no signals passed on.
const APART: &str = "setsid -w /usr/bin/mpirun \"$@\"";

/// Starts four tasks under a launcher, each with a server of its own: the first two run, the others are stopped.
fn start<'a>(place: &'a Place, launcher: &str) -> Running<'a> {
    let work = place.compile("work", Compiler::C);
    let path = std::env::var("PATH").expect("a path");
    let (launcher, path) = match launcher {
        "mpirun apart" => {
            script(place.path(), "mpirun", APART);
            ("mpirun", format!("{}:{path}", place.path().display()))
        }
        launcher => (launcher, path),
    };
    let mut sdm = Sdm::run(place, 4)
        .env("PATH", path)
        .args(["--launcher", launcher])
        .args(["--tasks-per-server", "1"])
        .talk()
        .program(&work, &["spin"])
        .spawn();
    sdm.out.wait_each(0, "0-3", "at main ()");
    sdm.ask("[0-1] continue &", "continue &\n");
    place.wait_running("work", 2);
    sdm
}

/// The session's processes with this program name.
fn named(place: &Place, name: &str) -> Vec<u32> {
    let held = leftovers::holding(place.mark()).into_iter();
    let all = leftovers::all_pids().collect::<Vec<_>>();
    // Servers name themselves by their numbers.
    let is = |pid: &u32| {
        let comm = processes::name(*pid);
        comm == name || name == "sdm-server" && comm.starts_with("sdm-srv-")
    };
    let mut found: Vec<u32> = held.map(|(pid, _)| pid).filter(is).collect();
    if name == "sdm-warden" {
        // A warden does not have the mark of the session; its parent has.
        let servers = named(place, "sdm-server");
        let ours =
            |pid: &u32| is(pid) && processes::parent(*pid).is_some_and(|it| servers.contains(&it));
        found = all.into_iter().filter(ours).collect();
    }
    found
}

/// The processes to stop. Server 1 has server 2 below it; servers 0 and 3 have no children.
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
        "all of them" => MEMBERS.iter().flat_map(|it| named(place, it)).collect(),
        launchers => named(place, launchers),
    };
    assert!(!found.is_empty(), "{who}");
    found
}

/// Stops the processes of a kind; returns the pids of all processes that the session has.
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
        let stands = |state: State| state.is_stopped() || state.is_held();
        until("it stands", || {
            processes::of(pid).state().is_none_or(stands)
        });
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
        let alive = |pid: &u32| {
            processes::of(*pid)
                .state()
                .is_some_and(|it| !it.has_ended())
        };
        let left = all.iter().copied().filter(alive);
        // Where its master was killed, `sdm` stays at its prompt.
        let left = left.filter(|pid| how != Ending::KillMaster || *pid != sdm.pid());
        left.map(|pid| (pid, processes::name(pid))).collect()
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
fn quit_leaves_no_stopped_process() {
    for who in VICTIMS {
        ends("local", who, Ending::Quit);
    }
}

#[test]
fn killed_front_end_leaves_no_stopped_process() {
    for who in VICTIMS {
        ends("local", who, Ending::KillSdm);
    }
}

#[test]
fn killed_master_leaves_no_stopped_process() {
    for who in VICTIMS {
        ends("local", who, Ending::KillMaster);
    }
}

#[test]
fn ended_session_under_mpirun_leaves_no_stopped_process() {
    for how in [Ending::Quit, Ending::KillSdm, Ending::KillMaster] {
        ends("mpirun", "all of them", how);
    }
}

/// Helpers of launchers are in sessions of their own, and have another parent once their launcher has ended.
#[test]
fn ended_session_leaves_no_stopped_helper_of_a_launcher() {
    for (launcher, who) in [("mpiexec", "hydra_pmi_proxy"), ("mpirun apart", "mpirun")] {
        for how in [Ending::Quit, Ending::KillSdm] {
            ends(launcher, who, how);
        }
    }
}

/// Processes of the same program that wait for their input.
fn waiting(place: &Place, count: usize) -> Vec<Child> {
    let program = place.compile("work", Compiler::C);
    let start = || {
        let mut command = Command::new(&program);
        command.arg("echo").stdin(Stdio::piped());
        command.stdout(Stdio::null());
        lower(&mut command).spawn().expect("it was compiled")
    };
    (0..count).map(|_| start()).collect()
}

/// The activity during which the gdb is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Busy {
    Attaching,
    Watching,
    Running,
}

/// Ends a command by the first Ctrl-C while its gdb is stopped; the command's own limit is ten minutes.
fn given_up(pids: &[u32], busy: Busy) {
    let place = Place::new();
    let target: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let target = target.join(",");
    let relay = Relay::new(&place, &Hold::command(1, "^-target-attach "));
    let verb = match busy {
        Busy::Running => "attach",
        _ => "stacks",
    };
    let sdm = Sdm::new(&place, verb).args([&*target, "--timeout", "600"]);
    let sdm = match busy {
        Busy::Attaching => sdm.args(["--by", "gdb", "--gdb", &relay.gdb()]),
        Busy::Watching => sdm.args(["--by", "gdb", "--watch=600"]),
        Busy::Running => sdm.talk(),
    };
    let mut running = sdm.spawn();
    let gdb = match busy {
        Busy::Attaching => Some(relay.wait(&running)),
        Busy::Watching => {
            running.out.wait(0, "echo () at work.c");
            gdb_of(&place)
        }
        Busy::Running => {
            running.ask("continue &", "continue &\n");
            running.ask("wait", "wait\n");
            let held = |pid: &u32| processes::of(*pid).state().is_some_and(State::is_held);
            until("they run", || !pids.iter().any(held));
            gdb_of(&place)
        }
    };
    let gdb = gdb.expect("a gdb of its server's");
    processes::signal(gdb, Signal::SIGSTOP);
    until("it stands still", || {
        processes::of(gdb).state().is_some_and(State::is_stopped)
    });
    // From here on gdb is to attach.
    relay.release();
    processes::signal(running.pid(), Signal::SIGINT);
    if busy == Busy::Running {
        let stopped = running.ask("print 40 + 2", ": 42");
        assert!(!stopped.contains("running"), "{stopped}");
        running.ask("quit", "");
        let done = running.finish().code(0);
        assert!(done.out.contains("interrupted"), "{done}");
    } else {
        let done = running.finish().code(130);
        assert!(!done.out.contains("no answer"), "{busy:?}: {done}");
    }
    for pid in pids {
        let status = processes::of(*pid).status().expect("it lives");
        assert_eq!(status.tracer(), None, "{busy:?}");
    }
}

/// The gdb that a server has started; one that begins has a child of the same name for a moment.
fn gdb_of(place: &Place) -> Option<u32> {
    let is_server = |pid: u32| processes::name(pid).starts_with("sdm-s");
    let mut gdbs = named(place, "gdb").into_iter();
    gdbs.find(|pid| processes::parent(*pid).is_some_and(is_server))
}

#[test]
fn first_ctrl_c_ends_a_command_whose_gdb_is_stopped() {
    let elsewhere = Place::new();
    for count in [1, 3] {
        let mut processes = waiting(&elsewhere, count);
        let pids: Vec<u32> = processes.iter().map(Child::id).collect();
        for busy in [Busy::Attaching, Busy::Watching, Busy::Running] {
            given_up(&pids, busy);
        }
        for process in &mut processes {
            drop(process.stdin.take());
            assert_eq!(process.wait().expect("it is a child").code(), Some(0));
        }
    }
}

/// After the end of its server only the warden does the remaining work.
#[test]
fn warden_stopped_after_its_server_ended_still_ends() {
    let place = Place::new();
    let mut sdm = start(&place, "local");
    let server = processes::servers(place.mark())[&2];
    let below = |name: &str| sdm_tests::job::below(server, name);
    let ([warden], [gdb], [program]) = (
        &below("sdm-warden")[..],
        &below("gdb")[..],
        &below("work")[..],
    ) else {
        panic!("one of each");
    };
    // A gdb that waits for it does not read the end of its input, and the warden has something to do for seconds.
    sdm.ask("[2] print wait_for_ever(0)", "print wait_for_ever(0)\n");
    until("it is called", || {
        processes::of(*program).state() == Some(State('S'))
    });
    processes::signal(server, Signal::SIGKILL);
    until("the server is gone", || {
        processes::parent(*warden) != Some(server)
    });
    processes::signal(*warden, Signal::SIGSTOP);
    leftovers::assert_none_left(|| {
        let alive = |pid: &&u32| {
            let state = processes::of(**pid).state();
            state.is_some_and(|it| !it.has_ended())
        };
        let left = [warden, gdb, program].into_iter().filter(alive);
        left.map(|pid| (*pid, processes::name(*pid))).collect()
    });
    let _ = sdm.finish();
}
