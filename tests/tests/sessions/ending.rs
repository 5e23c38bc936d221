//! Whatever process is killed from outside, no process of the session is left. Promised are ten seconds; the tests
//! allow 30.

use nix::sys::signal::Signal;
use sdm_tests::leftovers;
use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::processes;
use sdm_tests::sdm::{Running, Sdm};

/// Kills a process by SIGKILL.
fn kill_9(pid: u32) {
    processes::signal(pid, Signal::SIGKILL);
}

/// Starts four tasks under a launcher, each with a server of its own: the first two run, the others are stopped.
fn start<'a>(place: &'a Place, launcher: &str) -> Running<'a> {
    start_sharing(place, launcher, 1)
}

/// As [`start`], with `tasks` tasks for each server.
fn start_sharing<'a>(place: &'a Place, launcher: &str, tasks: u32) -> Running<'a> {
    let compiler = match launcher {
        "mpirun" => Compiler::OpenMpi,
        _ => Compiler::C,
    };
    let (program, what) = match launcher {
        "mpirun" => (place.compile("halo", compiler), &["1000000000"][..]),
        _ => (place.compile("work", compiler), &["spin"][..]),
    };
    let mut sdm = Sdm::run(place, 4)
        .args(["--launcher", launcher])
        .args(["--tasks-per-server", &tasks.to_string()])
        .talk()
        .program(&program, what)
        .spawn();
    sdm.out.wait_each(0, "0-3", "at main ()");
    sdm.ask("[0-1] continue &", "continue &\n");
    let name = match launcher {
        "mpirun" => "halo",
        _ => "work",
    };
    place.wait_running(name, 2);
    sdm
}

/// The children of a process whose command line holds `part`.
fn children_of(place: &Place, parent: u32, part: &str) -> Vec<u32> {
    let of = |pid: &u32| processes::parent(*pid) == Some(parent);
    place.pids(part).into_iter().filter(of).collect()
}

#[test]
fn killed_front_end_leaves_nothing() {
    for launcher in ["local", "mpirun"] {
        let place = Place::new();
        let sdm = start(&place, launcher);
        kill_9(sdm.pid());
        place.assert_gone();
        assert_eq!(sdm.finish().code, None);
    }
}

/// Script in place of Open MPI's `mpirun` that is still mapping many ranks: it starts no server and ignores every
/// signal that can be ignored.
const DEAF_LAUNCHER: &str = r#"
case "$*" in --version) echo "mpirun (Open MPI) 4.1.4"; exit ;; esac
trap '' INT TERM HUP
exec sleep 100000
"#;

/// Begins a session with a launcher that hangs in a `sleep`, and then sends `sdm` a signal. No process may be left.
fn strike_start<'a>(place: &'a Place, launcher: &str, signal: Signal) -> Running<'a> {
    let launcher = script(place.path(), "mpirun", launcher);
    let program = place.compile("work", Compiler::C);
    let sdm = Sdm::run(place, 4)
        .args(["--launcher", launcher.to_str().expect("it is text")])
        .talk()
        .program(&program, &[])
        .spawn();
    place.wait_running("sleep", 1);
    processes::signal(sdm.pid(), signal);
    place.assert_gone();
    sdm
}

#[test]
fn cancelled_start_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let place = Place::new();
        let sdm = strike_start(&place, DEAF_LAUNCHER, signal);
        let code = (signal != Signal::SIGKILL).then_some(128 + signal as i32);
        assert_eq!(sdm.finish().code, code);
    }
}

#[test]
fn cancelled_launcher_version_query_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let place = Place::new();
        let _sdm = strike_start(&place, "exec sleep 100000", signal);
    }
}

#[test]
fn killed_master_leaves_nothing() {
    for launcher in ["local", "mpirun"] {
        let place = Place::new();
        let sdm = start(&place, launcher);
        let masters = place.pids("sdm-master");
        let [master] = masters[..] else {
            panic!("one master, not {masters:?}");
        };
        kill_9(master);
        sdm.out.wait(0, "session ended: ");
        let done = sdm.finish();
        assert_eq!(done.code, Some(122), "{done}");
    }
}

#[test]
fn killed_server_leaves_nothing_and_the_others_continue() {
    let place = Place::new();
    let mut sdm = start(&place, "local");
    for number in [1, 3] {
        let server = processes::servers(place.mark())[&number];
        let gdbs = children_of(&place, server, "gdb");
        let programs = gdbs
            .iter()
            .flat_map(|gdb| children_of(&place, *gdb, "spin"));
        let below: Vec<_> = gdbs.iter().copied().chain(programs).collect();
        assert_eq!(below.len(), 2, "a gdb and its program");
        kill_9(server);
        leftovers::assert_none_left(|| {
            let mut left = leftovers::holding(place.mark());
            left.retain(|(pid, _)| below.contains(pid));
            left
        });
        sdm.out.wait(0, &format!("rank {number}: lost: "));
    }
    sdm.ask("[0,2] print rank", "rank 2: 0\n");
    sdm.ask("[0] interrupt", "rank 0: interrupted, ");
    let done = sdm.finish().code(0);
    assert!(!done.out.contains("session ended"), "{done}");
}

#[test]
fn killed_server_loses_exactly_its_tasks() {
    let place = Place::new();
    let mut sdm = start_sharing(&place, "local", 2);
    let servers = processes::servers(place.mark());
    assert_eq!(servers.len(), 2, "{servers:?}");
    let below = children_of(&place, servers[&0], "gdb");
    assert_eq!(below.len(), 2, "a gdb for each of its tasks");
    kill_9(servers[&0]);
    sdm.out.wait_each(0, "0-1", "lost: ");
    leftovers::assert_none_left(|| {
        let mut left = leftovers::holding(place.mark());
        left.retain(|(pid, _)| below.contains(pid));
        left
    });
    sdm.ask("[2-3] print rank", "ranks 2-3 (2): 0\n");
    let done = sdm.finish().code(0);
    assert!(!done.out.contains("session ended"), "{done}");
}

#[test]
fn server_killed_under_mpirun_ends_the_session_cleanly() {
    let place = Place::new();
    let sdm = start(&place, "mpirun");
    let mut servers = leftovers::holding(place.mark());
    servers.retain(|(_, line)| line.contains("sdm-server") && !line.contains("mpirun"));
    assert_eq!(servers.len(), 4, "{servers:?}");
    kill_9(servers[2].0);
    sdm.out.wait(0, "session ended: ");
    let done = sdm.finish().code(122);
    assert!(done.out.contains("the launcher ended: "), "{done}");
}

#[test]
fn killed_gdb_loses_only_its_task() {
    let place = Place::new();
    let mut sdm = start(&place, "local");
    for number in [1, 3] {
        let server = processes::servers(place.mark())[&number];
        let gdbs = children_of(&place, server, "gdb");
        kill_9(gdbs[0]);
        sdm.out.wait(0, &format!("rank {number}: gdb has ended: "));
    }
    sdm.ask("[2] print rank", "rank 2: 0\n");
    sdm.ask("ranks", "gdb_dead");
    let done = sdm.finish().code(0);
    assert!(!done.out.contains("lost"), "{done}");
}
