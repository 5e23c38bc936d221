//! Some processes of a session are killed together, in any order, at any moment of attaching, inspecting, resuming and
//! detaching. Attached processes run on as before. Where no process is left that could restore them, `sdm rescue` does.
//!
//! A seed gives the stage of the session, the killed processes, their order, and the moment. The stage and the killed
//! ones of gdb, server and warden are a cell; a run tries each cell once, with seeds that `SDM_TEST_COMMIT` chooses, and
//! with `SDM_TEST_FULL=1` a hundred times. `SDM_TEST_SEED=N` tries one seed. Where gdb has no breakpoint in the process,
//! a gdb alone is killed at the same moment, and leaves as many processes stopped.

mod plain;

use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
use xxhash_rust::xxh3::xxh3_64;

/// Commands of the session. No rank reaches the breakpoint.
const LINES: [&str; 5] = ["bt", "break twice", "continue &", "interrupt", "detach"];
/// Processes of which one must live to undo gdb's stops and breakpoints.
const UNDOERS: [&str; 2] = ["sdm-server", "sdm-warden"];
/// Processes whose deaths differ in their effect on the attached process, and the others.
const DECISIVE: [&str; 3] = ["gdb", "sdm-server", "sdm-warden"];
const OTHERS: [&str; 2] = ["sdm-master", "sdm"];
/// Number of test cases of each cell in a long run.
const ROUNDS_OF_A_LONG_RUN: u64 = 100;
/// The latest moment of the kills after the release of gdb.
const MICROS_MAX: u64 = 3000;

/// The part of the session in which the kills come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Attach,
    Look,
    RunControl,
    Detach,
}

/// The stages, each with the first of gdb's commands for it.
const STAGES: [(Stage, &str); 4] = [
    (Stage::Attach, ""),
    (Stage::Look, "-stack-list-frames"),
    (Stage::RunControl, "-break-insert"),
    (Stage::Detach, "-target-detach"),
];
const CELLS: u64 = 4 << DECISIVE.len();

/// The test case of one seed.
#[derive(Debug)]
struct Cell {
    stage: Stage,
    /// Program names of the processes to kill, in order; `sdm` is the front-end.
    killed: Vec<&'static str>,
    hold: Hold,
    /// Time from the release of gdb to the kill; `None` if gdb is held while it is killed.
    released: Option<Duration>,
}

impl Cell {
    /// The test case of a seed. `numbers` are those of gdb's commands in the stage.
    fn new(seed: u64, numbers: RangeInclusive<usize>) -> Self {
        let mut rng = Rng::new(seed);
        let all = orders(seed / 4 % (1 << DECISIVE.len()));
        let killed = all[usize::try_from(seed / CELLS).expect("small") % all.len()].clone();
        let number = rng.pick(&numbers.collect::<Vec<_>>()).expect("some");
        let hold = match rng.below(2) {
            0 => Hold::command(number, ""),
            _ => Hold::answer(number, ""),
        };
        let micros = rng.below(MICROS_MAX);
        Self {
            stage: stage_of(seed),
            killed,
            hold,
            released: (rng.below(2) == 0).then_some(Duration::from_micros(micros)),
        }
    }

    fn kills(&self, name: &str) -> bool {
        self.killed.contains(&name)
    }

    fn leaves_nobody(&self) -> bool {
        UNDOERS.iter().all(|name| self.kills(name))
    }

    /// Waits for the moment of the kills, which gdb is not held at.
    fn wait_moment(&self, relay: &Relay) {
        if let Some(time) = self.released {
            relay.release();
            let began = Instant::now();
            while began.elapsed() < time {
                std::hint::spin_loop();
            }
        }
    }
}

fn stage_of(seed: u64) -> Stage {
    STAGES[usize::try_from(seed % 4).expect("small")].0
}

/// Every order of every set of processes that has of the decisive ones those of these bits.
fn orders(bits: u64) -> Vec<Vec<&'static str>> {
    let decisive = (0..).zip(DECISIVE).filter(|(bit, _)| bits >> bit & 1 == 1);
    let decisive: Vec<&str> = decisive.map(|(_, name)| name).collect();
    let mut all = Vec::new();
    for others in 0..1_u64 << OTHERS.len() {
        let others = (0..).zip(OTHERS).filter(|(bit, _)| others >> bit & 1 == 1);
        let others = others.map(|(_, name)| name);
        let names: Vec<&str> = decisive.iter().copied().chain(others).collect();
        let mut begun = vec![Vec::new()];
        for _ in &names {
            let longer = begun.iter().flat_map(|order: &Vec<&'static str>| {
                let left = names.iter().filter(|name| !order.contains(name));
                left.map(|name| [&order[..], &[*name]].concat())
            });
            begun = longer.collect();
        }
        all.extend(begun.into_iter().filter(|order| !order.is_empty()));
    }
    all
}

/// The numbers of gdb's commands in each stage of an undisturbed session.
fn numbers_by_stage() -> Vec<RangeInclusive<usize>> {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut process = waiting(&elsewhere);
    let relay = Relay::new(&place, &Hold::command(1, "^never$"));
    let sdm = Sdm::new(&place, "attach").lines(&LINES);
    let pid = process.id().to_string();
    let _ = sdm.args(["--gdb", &relay.gdb(), &pid]).finish().code(0);
    process.kill().expect("it lives");
    process.wait().expect("it is a child");
    let sent = relay.sent();
    let begins = STAGES.map(|(_, first)| {
        let place = sent.iter().position(|line| line.contains(first));
        place.unwrap_or_else(|| panic!("no {first} in {sent:#?}"))
    });
    let ends = begins[1..].iter().copied().chain([sent.len()]);
    let stages = begins.iter().zip(ends);
    stages.map(|(begin, end)| begin + 1..=end).collect()
}

/// The seeds of this run for a stage.
fn seeds(stage: Stage) -> Vec<u64> {
    let asked = std::env::var("SDM_TEST_SEED").ok();
    let asked = asked.map(|text| text.parse::<u64>().expect("a number"));
    let commit = std::env::var("SDM_TEST_COMMIT").unwrap_or_default();
    let rounds = if is_full() { ROUNDS_OF_A_LONG_RUN } else { 1 };
    let first = xxh3_64(commit.as_bytes()) % 1_000_000 * CELLS;
    let all = asked.map_or(first..first + rounds * CELLS, |seed| seed..seed + 1);
    all.filter(|seed| stage_of(*seed) == stage).collect()
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
    all.into_iter().for_each(wait_dead);
}

fn wait_dead(pid: u32) {
    until("it is dead", || {
        processes::of(pid).state().is_none_or(|it| it.has_ended())
    });
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

/// Numbers of processes that stayed stopped: those of sessions, and those of a gdb alone.
#[derive(Debug, Default)]
struct Stopped {
    ours: u32,
    plain: u32,
    of: u32,
}

/// Runs a test case.
fn carry_out(seed: u64, cell: &Cell, stopped: &mut Stopped) {
    println!("SDM_TEST_SEED={seed}: {cell:?}");
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut process = waiting(&elsewhere);
    let pid = process.id();
    let before = look(pid);
    let relay = Relay::new(&place, &cell.hold);
    let sdm = Sdm::new(&place, "attach").lines(&LINES);
    let running = sdm.args(["--gdb", &relay.gdb(), &pid.to_string()]).spawn();
    let gdb = relay.wait(&running);
    cell.wait_moment(&relay);
    strike(cell, &running);
    let sent = relay.sent();
    relay.release();
    if cell.leaves_nobody() {
        // Until it reads the end of its commands, or cannot write, it goes on, and may begin a trial.
        wait_dead(gdb);
        end_trials(&place);
    }
    let done = running.finish();
    leftovers::assert_gone(place.mark());
    let is_stopped = || processes::of(pid).state().is_some_and(|it| it.is_stopped());
    if cell.leaves_nobody() {
        // A released gdb can come from its look to `continue`, for which it inserts breakpoints.
        let has_continued = sent.iter().any(|line| line.contains("-exec-continue"));
        if !has_continued || cell.stage == Stage::Detach {
            let ours = is_stopped();
            let plain = plain::stays_stopped(cell, &sent, pid);
            println!("stays stopped: {ours}, with gdb alone: {plain}");
            // A gdb that goes on while its server is gone can be in any of its stops.
            let may_differ = cell.released.is_some() || !cell.kills("gdb");
            assert!(!ours || plain || may_differ, "seed {seed}: {done}");
            stopped.ours += u32::from(ours);
            stopped.plain += u32::from(plain);
            stopped.of += 1;
        }
        let done = rescue(&place, pid).code(0);
        print!("{}", done.out);
    } else {
        until("it runs", || !is_stopped());
    }
    assert_eq!(look_after_kill(pid), before, "seed {seed}: {done}");
    drop(process.stdin.take());
    let status = process.wait().expect("it is a child");
    assert_eq!(status.code(), Some(0), "seed {seed}: {done}");
}

/// Runs the test cases of a stage. No more processes stay stopped than with a gdb alone. A kill at a moment after the
/// release of gdb comes earlier or later in gdb's work from time to time, which three standard deviations allow for.
fn carry_out_stage(stage: Stage) {
    let seeds = seeds(stage);
    if seeds.is_empty() {
        return;
    }
    let numbers = numbers_by_stage();
    let place = STAGES
        .iter()
        .position(|(it, _)| *it == stage)
        .expect("one of them");
    let mut stopped = Stopped::default();
    for seed in seeds {
        carry_out(seed, &Cell::new(seed, numbers[place].clone()), &mut stopped);
    }
    println!("stayed stopped until they were rescued: {stopped:?}");
    let Stopped { ours, plain, .. } = stopped;
    let more = f64::from(ours) - f64::from(plain);
    assert!(more <= 3.0 * f64::from(ours + plain).sqrt(), "{stopped:?}");
}

#[test]
fn process_survives_any_kills_while_gdb_attaches() {
    carry_out_stage(Stage::Attach);
}

#[test]
fn process_survives_any_kills_while_gdb_looks() {
    carry_out_stage(Stage::Look);
}

#[test]
fn process_survives_any_kills_during_run_control() {
    carry_out_stage(Stage::RunControl);
}

#[test]
fn process_survives_any_kills_while_gdb_detaches() {
    carry_out_stage(Stage::Detach);
}

#[test]
fn every_order_of_every_set_is_a_test_case() {
    let all: Vec<_> = (0..1 << DECISIVE.len()).flat_map(orders).collect();
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    // One to five of five, in each order.
    assert_eq!((all.len(), distinct.len()), (325, 325));
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
