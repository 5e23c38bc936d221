//! Emulated sessions for a long time: random commands, output, faults, detaching and resuming. Every living task
//! executes every step once, whichever terminal shows it. Memory and descriptors stay constant, and no process is
//! left. `scripts/soak` runs it for hours.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_idset::{IdSet, TaskId};
use sdm_sim::Rng;
use sdm_tests::leftovers;
use sdm_tests::place::Place;
use sdm_tests::processes;
use sdm_tests::terminal::Terminal;

const SERVERS: u32 = 32;
/// The time of all sessions together, in seconds, where `SDM_SOAK_SECONDS` gives none.
const SECONDS: u64 = 120;
/// The longest duration of one session.
const SESSION_MAX: Duration = Duration::from_secs(1800);
/// Maximum number of servers killed in one session, so that some are left in the end.
const KILLS_MAX: usize = 8;
/// Maximum growth of a process between the first third and the end of its session: the keeper's ring of
/// output fills up to 4 MiB, and allocators round up.
const GROWTH_BYTES: u64 = (4 << 20) + (1 << 20);
/// The descriptors that all processes together may have gained by then: a terminal that comes or goes.
const GAINED_DESCRIPTORS: usize = 8;

const SCENARIO: &str = "\
[all]
stack = main halo.c:142 > solve halo.c:114 > MPI_Allreduce
stack = main halo.c:142 > solve halo.c:111 > MPI_Recv
continue = never
answer = 0ms..5ms
output = 20ms line {n} of {rank}
value n = 0
value rank = {rank}
";

/// Resident bytes and number of descriptors by process.
type Usage = BTreeMap<u32, (u64, usize)>;

struct Soak<'a> {
    place: &'a Place,
    rng: Rng,
    /// The terminal; `None` while the session has none.
    terminal: Option<Terminal<'a>>,
    living: IdSet,
    /// Number of steps that every task has counted.
    count: u32,
    steps: BTreeMap<&'static str, u32>,
}

impl<'a> Soak<'a> {
    fn start(place: &'a Place, seed: u64) -> Self {
        let scenario = place.path().join("soak.scenario");
        fs::write(&scenario, SCENARIO).expect("a file");
        let count = SERVERS.to_string();
        let line = ["emulate", "--keep=soak", "-n", &count, "--scenario"];
        let line = [&line[..], &[scenario.to_str().expect("letters and digits")]].concat();
        let mut soak = Self {
            place,
            rng: Rng::new(seed),
            terminal: Some(Terminal::start(place, &line, 200)),
            living: IdSet::all_below(SERVERS),
            count: 0,
            steps: BTreeMap::new(),
        };
        soak.terminal().wait("(sdm) ");
        soak
    }

    /// The terminal; a new one is opened where there is none.
    fn terminal(&mut self) -> &mut Terminal<'a> {
        let place = self.place;
        self.terminal.get_or_insert_with(|| {
            let mut terminal = Terminal::start(place, &["resume", "soak"], 200);
            terminal.wait("(sdm) ");
            terminal
        })
    }

    fn step(&mut self) {
        let (name, act): (_, fn(&mut Self)) = match self.rng.below(100) {
            0..30 => ("count", Self::count),
            30..50 => ("values", Self::values),
            50..62 => ("stacks", Self::stacks),
            62..76 => ("output", Self::output),
            76..84 => ("detach", Self::detach),
            84..90 => ("lose the terminal", Self::lose_terminal),
            90..97 => ("stop a server", Self::stop_server),
            97..98 => ("stop it for long", Self::stop_server_for_long),
            _ => ("kill a server", Self::kill_server),
        };
        act(self);
        *self.steps.entry(name).or_default() += 1;
    }

    /// Types a line and reads the answers until every living task of `tasks` has answered;
    /// returns the answers with their tasks.
    fn ask(
        &mut self,
        line: &str,
        tasks: &IdSet,
        is_answer: fn(&str) -> bool,
    ) -> Vec<(IdSet, String)> {
        let wanted = tasks.intersection(&self.living);
        self.terminal().keys(&format!("{line}\n"));
        let mut text = String::new();
        loop {
            text += &self.terminal().wait("(sdm) ");
            let (mut answers, mut seen) = (Vec::new(), IdSet::new());
            for (who, what) in text.lines().filter_map(answer) {
                if is_answer(what) {
                    assert!(seen.is_disjoint(&who), "{who} twice, after {line}:\n{text}");
                    seen.union_with(&who);
                    answers.push((who, what.to_owned()));
                }
            }
            assert!(
                seen.is_subset(tasks),
                "{seen} of {tasks}, after {line}:\n{text}"
            );
            if wanted.is_subset(&seen) {
                return answers;
            }
        }
    }

    /// Checks that all living tasks have counted once for each step.
    fn check_count(&mut self) {
        let all = IdSet::all_below(SERVERS);
        let count = self.count.to_string();
        for (who, value) in self.ask("print n", &all, is_number) {
            let screen = self.terminal().text();
            assert_eq!(value, count, "{who} did it once each time: {screen}");
        }
    }

    fn count(&mut self) {
        self.count += 1;
        self.terminal().keys("set var n = n + 1\n");
        self.check_count();
    }

    fn values(&mut self) {
        let first = self.rng.below(u64::from(SERVERS) - 4);
        let first = u32::try_from(first).expect("below the servers");
        let some = (first..first + 4).map(TaskId).collect();
        for (who, value) in self.ask(&format!("[{some}] print rank"), &some, is_number) {
            assert_eq!(who.to_string(), value);
        }
    }

    fn stacks(&mut self) {
        let all = IdSet::all_below(SERVERS);
        self.ask("stacks", &all, |what| what == "main () at halo.c:142");
    }

    fn output(&mut self) {
        self.terminal().keys("continue &\n");
        for _ in 0..=self.rng.below(40) {
            self.terminal().wait(" of ");
        }
        if self.rng.below(3) == 0 {
            self.leave();
        }
        let all = IdSet::all_below(SERVERS);
        self.ask("interrupt", &all, |what| what.starts_with("interrupted, "));
    }

    /// Starts, in half of the cases, a step that may still be under way when the terminal is closed.
    fn begin_to_count(&mut self) {
        if self.rng.below(2) == 0 {
            self.count += 1;
            self.terminal().keys("set var n = n + 1\n");
        }
    }

    fn detach(&mut self) {
        self.begin_to_count();
        self.leave();
    }

    fn leave(&mut self) {
        self.terminal().keys("\x1c");
        let (code, screen) = self.terminal.take().expect("it was just used").leave();
        assert_eq!(code, 0, "{screen}");
    }

    fn lose_terminal(&mut self) {
        self.terminal().kill();
        self.terminal.take().expect("it was just used").leave();
    }

    fn random_server(&mut self) -> (u32, u32) {
        let servers: Vec<_> = processes::servers(self.place.mark()).into_iter().collect();
        let nth = self.rng.below(servers.len() as u64);
        servers[usize::try_from(nth).expect("below a length")]
    }

    fn stop_for(&mut self, least: u64, most: u64) {
        let (_, pid) = self.random_server();
        let wait = Duration::from_millis(self.rng.between(least, most));
        processes::signal(pid, Signal::SIGSTOP);
        self.count += 1;
        self.terminal().keys("set var n = n + 1\n");
        // The duration of the stop is the fault; this is no wait for a condition.
        thread::sleep(wait);
        processes::signal(pid, Signal::SIGCONT);
        self.check_count();
    }

    fn stop_server(&mut self) {
        self.stop_for(10, 1500);
    }

    /// Stops a server for longer than the silence limit: its children are adopted, and it comes back.
    fn stop_server_for_long(&mut self) {
        self.stop_for(9000, 12_000);
    }

    fn kill_server(&mut self) {
        let killed = SERVERS as usize - usize::try_from(self.living.len()).expect("few");
        if killed >= KILLS_MAX {
            return;
        }
        let (server, pid) = self.random_server();
        self.begin_to_count();
        processes::signal(pid, Signal::SIGKILL);
        self.living.subtract(&IdSet::from_iter([TaskId(server)]));
        self.check_count();
    }

    fn usage(&self) -> Usage {
        let held = leftovers::holding(self.place.mark());
        let of = |pid| {
            let descriptors = processes::of(pid).descriptor_count().unwrap_or(0);
            (processes::resident_bytes(pid), descriptors)
        };
        held.into_iter().map(|(pid, _)| (pid, of(pid))).collect()
    }

    fn end(mut self) -> BTreeMap<&'static str, u32> {
        self.terminal().keys("quit\n");
        self.terminal().wait("(y/n/detach) ");
        self.terminal().keys("y\n");
        let terminal = self.terminal.take().expect("it was just used");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 0, "{screen}");
        std::mem::take(&mut self.steps)
    }
}

/// A session that is kept would outlive a step that fails.
impl Drop for Soak<'_> {
    fn drop(&mut self) {
        for (pid, _) in leftovers::holding(self.place.mark()) {
            let pid = Pid::from_raw(pid.try_into().expect("a pid"));
            // It may have ended by now.
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

/// Parses `ranks 0-3 (4): VALUE`, also after a prompt or a line of progress that it has replaced.
fn answer(line: &str) -> Option<(IdSet, &str)> {
    let line = &line[line.rfind("rank")?..];
    let (who, what) = line.split_once(": ")?;
    let who = who.strip_prefix("ranks ").or(who.strip_prefix("rank "))?;
    let set = who.split(" (").next()?;
    Some((set.parse().ok()?, what))
}

fn is_number(what: &str) -> bool {
    what.parse::<u32>().is_ok()
}

/// Compares the usage of the remaining processes with their earlier one.
fn check_flat(before: &Usage, after: &Usage) -> String {
    let (mut gained, mut most) = (0_isize, 0);
    for (pid, (bytes, descriptors)) in after {
        let Some((bytes_before, descriptors_before)) = before.get(pid) else {
            continue;
        };
        let grown = bytes.saturating_sub(*bytes_before);
        assert!(
            grown <= GROWTH_BYTES,
            "process {pid} has grown by {grown} bytes to {bytes}"
        );
        most = most.max(grown);
        gained += isize::try_from(*descriptors).expect("few");
        gained -= isize::try_from(*descriptors_before).expect("few");
    }
    let bound = isize::try_from(GAINED_DESCRIPTORS).expect("few");
    assert!(
        gained <= bound,
        "{gained} more descriptors: {before:?}, then {after:?}"
    );
    format!("grown by {most} bytes at most, {gained} more descriptors")
}

fn session(seed: u64, time: Duration) {
    let place = Place::new();
    let began = Instant::now();
    let mut soak = Soak::start(&place, seed);
    let mut before = None;
    while began.elapsed() < time {
        soak.step();
        if before.is_none() && began.elapsed() > time / 3 {
            before = Some(soak.usage());
        }
    }
    soak.check_count();
    let after = soak.usage();
    let before = before.unwrap_or_else(|| after.clone());
    let flat = check_flat(&before, &after);
    let (count, living) = (soak.count, soak.living.len());
    let steps = soak.end();
    println!(
        "seed {seed}: {:.0} s, {steps:?}; {count} counted once by each of {living}; {flat}",
        began.elapsed().as_secs_f64()
    );
}

#[test]
#[ignore = "minutes or hours long: scripts/soak runs it"]
fn long_sessions_stay_correct_with_flat_memory() {
    let number = |name: &str, otherwise| match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        Err(_) => otherwise,
    };
    let end = Instant::now() + Duration::from_secs(number("SDM_SOAK_SECONDS", SECONDS));
    let mut seed = number("SDM_SOAK_SEED", 1);
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        println!("seed {seed}");
        session(seed, left.min(SESSION_MAX));
        seed += 1;
    }
}
