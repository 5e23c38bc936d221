//! Some processes of a session are killed together, in any order, at any moment of attaching, inspecting, resuming and
//! detaching. Attached processes run on as before. Where no process is left that could restore them, `sdm rescue` does.
//!
//! A seed gives the killed processes, their order, and the time. `SDM_TEST_SEED=FIRST` begins with another seed,
//! and with `SDM_TEST_FULL=1` there are 400 of them.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use sdm_sim::Rng;
use sdm_tests::job::{below, look, look_after_kill};
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, kill_if_there, signal, wait_state};
use sdm_tests::relay::{Hold, Relay};
use sdm_tests::run::{is_full, until};
use sdm_tests::sdm::{Done, Running, Sdm, command};
use sdm_tests::{binaries, leftovers};

/// Commands of the session. No rank reaches the breakpoint.
const LINES: [&str; 5] = ["bt", "break twice", "continue &", "interrupt", "detach"];
/// Range of the number of the gdb command at which gdb is held.
const COMMANDS: std::ops::RangeInclusive<usize> = 1..=15;
/// Processes of which one must live to undo gdb's stops and breakpoints.
const UNDOERS: [&str; 2] = ["sdm-server", "sdm-warden"];

/// The test case of one seed.
#[derive(Debug)]
struct Cell {
    /// Program names of the processes to kill, in order; `sdm` is the front-end.
    killed: Vec<&'static str>,
    hold: Hold,
    /// True if gdb is released at the held point before the kill.
    is_released: bool,
}

impl Cell {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut killed = vec!["gdb", "sdm-server", "sdm-warden", "sdm-master", "sdm"];
        rng.shuffle(&mut killed);
        // In half of the cases all processes are killed that could restore the job.
        if rng.one_in(2) {
            let count = rng.pick(&[1, 2, 3, 4]).expect("there are some");
            killed.truncate(count);
        }
        let number = rng
            .pick(&COMMANDS.collect::<Vec<_>>())
            .expect("there are some");
        let hold = match rng.below(2) {
            0 => Hold::command(number, ""),
            _ => Hold::answer(number, ""),
        };
        let is_released = rng.below(2) == 0;
        Self {
            killed,
            hold,
            is_released,
        }
    }

    fn leaves_nobody(&self) -> bool {
        UNDOERS.iter().all(|name| self.killed.contains(name))
    }
}

/// A process that waits for its input, and that survives a Ctrl-C from a gdb without a server.
pub(super) fn waiting(place: &Place) -> Child {
    let program = place.compile("work", Compiler::C);
    let mut command = Command::new("/usr/bin/env");
    command.arg("--ignore-signal=INT").arg(program).arg("echo");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let process = lower(&mut command).spawn().expect("it was compiled");
    until("it reads", || {
        processes::name(process.id()) == "work"
            && processes::of(process.id()).wait_channel().contains("pipe")
    });
    process
}

/// Kills the processes of a session that the test case names, in its order.
fn strike(cell: &Cell, running: &Running<'_>) {
    let pids = |name: &&str| match *name {
        "sdm" => vec![running.pid()],
        name => below(running.pid(), name),
    };
    let all: Vec<u32> = cell.killed.iter().flat_map(pids).collect();
    // A killed process may end others.
    all.iter().for_each(|pid| kill_if_there(*pid));
    for pid in all {
        until("it is dead", || {
            processes::of(pid).state().is_none_or(|it| it.has_ended())
        });
    }
}

/// Ends the child on which gdb tries out tracing, which stays stopped for ever where its gdb was killed.
fn end_trials(place: &Place) {
    let held = leftovers::holding(place.mark()).into_iter();
    let trials = held.filter(|(pid, _)| processes::name(*pid) == "gdb");
    trials.for_each(|(pid, _)| kill_if_there(pid));
}

fn rescue(place: &Place, pid: u32) -> Done {
    let mut sdm = command(place, binaries::folder().join("sdm"));
    let output = sdm
        .args(["rescue", &pid.to_string()])
        .output()
        .expect("it runs");
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Done {
        code: output.status.code(),
        out,
        err,
    }
}

/// Runs the test case of a seed; true if the process stayed stopped until it was rescued.
fn carry_out(seed: u64) -> bool {
    let cell = Cell::new(seed);
    println!("seed {seed}: {cell:?}");
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut process = waiting(&elsewhere);
    let pid = process.id();
    let before = look(pid);
    let relay = Relay::new(&place, &cell.hold);
    let sdm = Sdm::new(&place, "attach").lines(&LINES);
    let running = sdm.args(["--gdb", &relay.gdb(), &pid.to_string()]).spawn();
    let _ = relay.wait(&running);
    if cell.is_released {
        relay.release();
    }
    strike(&cell, &running);
    relay.release();
    if cell.leaves_nobody() {
        end_trials(&place);
    }
    let done = running.finish();
    leftovers::assert_gone(place.mark());
    let was_stopped = processes::of(pid).state().is_some_and(|it| it.is_stopped());
    if cell.leaves_nobody() {
        let done = rescue(&place, pid).code(0);
        print!("{}", done.out);
    } else {
        until("it runs", || {
            !processes::of(pid).state().is_some_and(|it| it.is_stopped())
        });
    }
    assert_eq!(look_after_kill(pid), before, "seed {seed}: {done}");
    drop(process.stdin.take());
    let status = process.wait().expect("it is a child");
    assert_eq!(status.code(), Some(0), "seed {seed}: {done}");
    was_stopped
}

#[test]
fn attached_process_survives_any_killed_sdm_processes() {
    let first = std::env::var("SDM_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
    let count = if is_full() { 400 } else { 6 };
    let stopped = (first..first + count)
        .filter(|seed| carry_out(*seed))
        .count();
    println!("{stopped} of {count} stayed stopped until they were rescued");
}

/// `sdm doctor` names the remedy, `sdm rescue`, which removes the breakpoint and continues the process.
#[test]
fn process_with_a_breakpoint_of_a_dead_gdb_is_rescued() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut process = waiting(&elsewhere);
    let pid = process.id();
    let before = look(pid);
    let mut running = Sdm::new(&place, "attach")
        .args([&*pid.to_string()])
        .talk()
        .spawn();
    let _ = running.ask("break twice", "breakpoint 1");
    let _ = running.ask("continue &", "continue &\n");
    until("the breakpoint is in it", || {
        super::unharmed::changed_bytes(pid) > 0
    });
    let [gdb] = below(running.pid(), "gdb")[..] else {
        panic!("one gdb");
    };
    // The warden goes on when its server is dead.
    let undoers = ["sdm-warden", "sdm-server"].map(|name| below(running.pid(), name));
    let undoers = undoers.concat();
    // They are not to act on its death, of which the kernel tells the process only as long as they are there.
    undoers.iter().for_each(|pid| signal(*pid, Signal::SIGSTOP));
    signal(gdb, Signal::SIGKILL);
    wait_state(gdb, "Z");
    // Its files are closed with the last of its threads.
    until("all of it is dead", || {
        let mut threads = processes::of(gdb).thread_ids().into_iter().flatten();
        threads.all(|id| id == i32::try_from(gdb).expect("a pid"))
    });
    undoers.iter().for_each(|pid| kill_if_there(*pid));
    let _ = running.finish();
    until("the kernel has stopped it", || {
        processes::of(pid).state().is_some_and(|it| it.is_stopped())
    });
    let mut sdm = command(&place, binaries::folder().join("sdm"));
    let doctor = sdm.arg("doctor").output().expect("it runs");
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains(&format!("sdm rescue {pid}")), "{told}");
    let done = rescue(&place, pid).code(0);
    assert!(done.out.contains("removed"), "{done}");
    assert!(done.out.contains("work+0x"), "{done}");
    assert!(
        done.out
            .ends_with("; was stopped, and was continued by sdm\n"),
        "{done}"
    );
    assert_eq!(look(pid), before);
    let done = rescue(&place, pid).code(0);
    assert_eq!(
        done.out,
        format!("process {pid}: no leftover breakpoint was found; keeps running\n")
    );
    drop(process.stdin.take());
    assert_eq!(process.wait().expect("it is a child").code(), Some(0));
    let done = rescue(&place, pid).code(2);
    assert!(done.err.contains("no such process"), "{done}");
}
