//! Some processes of a session without gdb are killed together, in any order, at any moment of a look. The processes
//! that were looked at run on as before, by themselves: the kernel lets go of what a dead process traced.
//!
//! A seed gives the use, the killed processes, their order, and the moment. `SDM_TEST_COMMIT` chooses the first seed, or
//! `SDM_TEST_SEED=FIRST` names it; with `SDM_TEST_FULL=1` there are 1,000 of them.

use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_sim::Rng;
use sdm_tests::job::{below, look, look_after_kill};
use sdm_tests::leftovers::{self, descendants_living};
use sdm_tests::place::Place;
use sdm_tests::processes::{self, kill_if_there, signal, tracer};
use sdm_tests::questions::changed_outside;
use sdm_tests::relay::{Hold, Relay};
use sdm_tests::run::{BOUND, is_full};
use sdm_tests::sdm::{Running, Sdm};
use xxhash_rust::xxh3::xxh3_64;

use super::killed_together::waiting;

/// The uses of a session that looks at processes without gdb.
const USES: [(&str, &[&str]); 3] = [
    ("stacks", &["--watch=1"]),
    ("profile", &["--for", "2", "--rate", "50"]),
    ("diagnose", &[]),
];
/// The latest moment of the kills after the start, where they do not wait for a look.
const MILLIS_MAX: u64 = 600;
/// The first argument of a looker.
const LOOKER: &str = "--look";

/// The test case of one seed.
#[derive(Debug)]
struct Cell {
    verb: &'static str,
    options: &'static [&'static str],
    /// The processes to kill, in order.
    killed: Vec<&'static str>,
    moment: Moment,
}

/// The moment of the kills.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// This time after the start.
    After(Duration),
    /// While a process is traced, the first, second, ... time that this is seen.
    During(u32),
}

impl Cell {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (verb, options) = rng.pick(&USES).expect("there are some");
        let mut killed = vec!["sdm", "sdm-master", "sdm-server", "looker", "child"];
        rng.shuffle(&mut killed);
        let count = rng.pick(&[1, 1, 2, 3, 5]).expect("there are some");
        killed.truncate(count);
        let moment = match rng.below(3) {
            0 => Moment::After(Duration::from_millis(rng.below(MILLIS_MAX))),
            _ => Moment::During(rng.pick(&[1, 2, 3]).expect("there are some")),
        };
        Self {
            verb,
            options,
            killed,
            moment,
        }
    }
}

/// Waits for the moment, or for the end of `sdm`.
fn wait_moment(moment: Moment, running: &Running<'_>, pids: &[u32]) {
    let began = Instant::now();
    let is_over = || {
        let state = processes::of(running.pid()).state();
        state.is_none_or(|it| it.has_ended())
    };
    let mut seen = (0, false);
    while !is_over() {
        let is_traced = pids.iter().any(|pid| tracer(*pid).is_some());
        seen = (seen.0 + u32::from(is_traced && !seen.1), is_traced);
        let has_come = match moment {
            Moment::After(time) => began.elapsed() >= time,
            Moment::During(count) => seen.0 >= count,
        };
        if has_come {
            return;
        }
        assert!(began.elapsed() < BOUND, "waited for {moment:?}");
        std::thread::yield_now();
    }
}

/// The looker, or its child that takes the snapshots.
fn lookers(root: u32, is_child: bool) -> Vec<u32> {
    let is_looker = |pid: u32| {
        let words = processes::of(pid).words().unwrap_or_default();
        words.get(1).is_some_and(|it| it == LOOKER)
    };
    let is_wanted = |pid: &u32| {
        let parent = processes::parent(*pid);
        is_looker(*pid) && parent.is_some_and(is_looker) == is_child
    };
    let all = descendants_living(root).into_iter();
    all.filter(is_wanted).collect()
}

/// Kills the processes of a session that the test case names. Ends `sdm` if it is not one of them.
fn strike(cell: &Cell, running: &Running<'_>, pids: &[u32]) {
    let named = |name: &&str| match *name {
        "sdm" => vec![running.pid()],
        "looker" => lookers(running.pid(), false),
        "child" => {
            let tracers = pids.iter().filter_map(|pid| tracer(*pid));
            tracers.chain(lookers(running.pid(), true)).collect()
        }
        name => below(running.pid(), name),
    };
    let all: Vec<u32> = cell.killed.iter().flat_map(named).collect();
    all.into_iter().for_each(kill_if_there);
    if !cell.killed.contains(&"sdm") {
        // Not every use ends by itself.
        signal(running.pid(), Signal::SIGTERM);
    }
}

/// Carries out the test case of a seed.
fn carry_out(seed: u64) {
    let cell = Cell::new(seed);
    println!("seed {seed}: {cell:?}");
    let (place, elsewhere) = (Place::new(), [Place::new(), Place::new()]);
    // The processes of each cell are a job of their own, also where the kernel gives their numbers again.
    changed_outside();
    let processes = [waiting(&elsewhere[0]), waiting(&elsewhere[1])];
    let pids: Vec<u32> = processes.iter().map(Child::id).collect();
    let before: Vec<_> = pids.iter().map(|pid| look(*pid)).collect();
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let sdm = Sdm::new(&place, cell.verb).args(["--pids", &list.join(","), "--gdb", "/no/gdb"]);
    let running = sdm.args(cell.options).spawn();
    wait_moment(cell.moment, &running, &pids);
    strike(&cell, &running, &pids);
    let done = running.finish();
    leftovers::assert_gone(place.mark());
    // Nobody rescues them.
    let after: Vec<_> = pids.iter().map(|pid| look(*pid)).collect();
    assert_eq!(after, before, "seed {seed}: {done}");
    for mut process in processes {
        drop(process.stdin.take());
        let status = process.wait().expect("it is a child");
        assert_eq!(status.code(), Some(0), "seed {seed}: {done}");
    }
}

#[test]
fn sampled_processes_survive_kill_of_any_sdm_processes() {
    let commit = std::env::var("SDM_TEST_COMMIT").unwrap_or_default();
    let asked = std::env::var("SDM_TEST_SEED").ok();
    let first = asked.map_or_else(
        || xxh3_64(commit.as_bytes()) % 1_000_000,
        |text| text.parse().expect("a number"),
    );
    let count = if is_full() { 1000 } else { 10 };
    (first..first + count).for_each(carry_out);
}

/// A server that has died cannot confirm that its gdb has detached, also where the signal comes before its loss is noticed.
#[test]
fn interrupted_look_claims_no_more_than_it_knows() {
    for is_killed in [false, true] {
        let (place, elsewhere) = (Place::new(), Place::new());
        let mut process = waiting(&elsewhere);
        let pid = process.id();
        let before = look(pid);
        let relay = Relay::new(&place, &Hold::answer(1, "target-attach"));
        let sdm = Sdm::new(&place, "stacks").args(["--by", "gdb", "--gdb", &relay.gdb()]);
        let running = sdm.args([&*pid.to_string()]).spawn();
        let _ = relay.wait(&running);
        if is_killed {
            // No server is left that could confirm an order. It may be missed before the signal comes.
            let servers = below(running.pid(), "sdm-server");
            servers.iter().for_each(|pid| kill_if_there(*pid));
        }
        signal(running.pid(), Signal::SIGINT);
        relay.release();
        let done = running.finish();
        let said = format!("{}{}", done.out, done.err);
        let claims = said.contains("every process was left in its previous state");
        let doubts = said.contains("may be stopped or still traced");
        match is_killed {
            true => assert!(!claims && (doubts || done.code == Some(2)), "{done}"),
            false => assert!(claims && !doubts && done.code == Some(130), "{done}"),
        }
        let after = if is_killed {
            look_after_kill(pid)
        } else {
            look(pid)
        };
        assert_eq!(after, before, "{done}");
        drop(process.stdin.take());
        assert_eq!(process.wait().expect("it is a child").code(), Some(0));
    }
}
