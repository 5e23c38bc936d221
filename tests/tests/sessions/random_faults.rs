//! Random faults: any process of a session is killed, terminated or stopped, at any moment of any use, and the debugged
//! processes run on as before.
//!
//! A seed gives the use, the process, the fault and the moment. A run tries some seeds that `SDM_TEST_COMMIT` chooses,
//! an inspection without gdb among them; the long run tries more. `scripts/faults [N [SEED]]` runs any seeds.

mod uses;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use sdm_sim::Rng;
use sdm_system::proc;
use sdm_tests::job::{self, Look, look};
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::run::is_full;
use sdm_tests::sdm::command;
use sdm_tests::{binaries, leftovers, parts, processes};
use uses::{USES, Use};
use xxhash_rust::xxh3::xxh3_64;

/// Number of faults of a run for which `SDM_FAULTS` sets none, and that of a long one.
const FAULTS: u64 = 3;
const FAULTS_OF_A_LONG_RUN: u64 = 140;
/// The latest moment of a fault after the start of `sdm`: for a one-time inspection, which is over soon, and for
/// other uses.
const LOOK_MILLIS_MAX: u64 = 500;
const MOMENT_MILLIS_MAX: u64 = 1600;
/// Time limit for `sdm` and all its processes to end after a request to end.
const END_WAIT: Duration = Duration::from_secs(60);
/// Time after which an `sdm` that has not ended by itself is asked to by a signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between two checks of an awaited condition.
const LOOK: Duration = Duration::from_millis(10);
/// Names of the programs that are debugged.
const RANKS: [&str; 3] = ["work", "mpi_held", "outlive"];

/// The fault of one seed.
#[derive(Debug)]
struct Fault {
    used: Use,
    signals: Vec<Signal>,
    /// Number that selects among the existing processes.
    choice: u64,
    moment: Duration,
}

impl Fault {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let used = match USES[usize::try_from(seed).expect("it is small") % USES.len()] {
            Use::OpenMpi5 if parts::openmpi5().is_none() => Use::OpenMpi,
            used => used,
        };
        let all = [
            Signal::SIGKILL,
            Signal::SIGKILL,
            Signal::SIGTERM,
            Signal::SIGSTOP,
        ];
        let latest = match used {
            Use::Look | Use::LookByGdb | Use::Diagnose | Use::DiagnoseByGdb => LOOK_MILLIS_MAX,
            _ => MOMENT_MILLIS_MAX,
        };
        let count = rng.pick(&[1, 1, 1, 2, 3]).expect("there are some");
        let signals = (0..count).filter_map(|_| rng.pick(&all)).collect();
        Self {
            used,
            signals,
            choice: rng.word(),
            moment: Duration::from_millis(rng.below(latest)),
        }
    }
}

/// The processes of this test, except itself and the debugged programs: pids and program names.
fn members() -> Vec<(u32, String)> {
    let own = std::process::id();
    let living = leftovers::descendants_living(own).into_iter();
    let named = living.map(|pid| (pid, processes::name(pid)));
    let named = named.filter(|(_, name)| !name.is_empty() && !RANKS.contains(&name.as_str()));
    let kind = |(pid, name): (u32, String)| match name.starts_with("sdm-srv-") {
        true => (pid, "sdm-server".to_owned()),
        false => (pid, name),
    };
    let mut all: Vec<_> = named.map(kind).collect();
    all.sort_unstable();
    all
}

/// The processes of this test that jobs of a cluster have started.
fn jobs() -> Vec<(u32, String)> {
    let all = job::below(std::process::id(), "outlive").into_iter();
    all.map(|pid| (pid, "outlive".to_owned())).collect()
}

/// Reaps processes whose parents were killed, as no other process does.
fn reap(known: &[u32]) {
    for (pid, state) in processes::below(std::process::id()) {
        let is_ours = processes::parent(pid) == Some(std::process::id());
        if state.has_ended() && is_ours && !known.contains(&pid) {
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), Some(WaitPidFlag::WNOHANG));
        }
    }
}

/// A process that runs before `sdm`, and waits for its input.
struct Debugged {
    child: Child,
    before: Look,
}

impl Debugged {
    fn start(program: &Path) -> Self {
        let mut command = Command::new("/usr/bin/env");
        command.arg("--ignore-signal=INT").arg(program).arg("echo");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let child = lower(&mut command).spawn().expect("it was compiled");
        sdm_tests::run::until("it reads", || {
            processes::name(child.id()) == "work"
                && processes::of(child.id()).wait_channel().contains("pipe")
        });
        let before = look(child.id());
        Self { child, before }
    }

    /// Checks for violations. A process may need a rescue only where no process was left to let it run.
    fn check(mut self, place: &Place, may_rescue: bool, told: &mut Told) {
        let pid = self.child.id();
        let is_free = || {
            let state = processes::of(pid).state();
            state.is_some_and(|it| "RSD".contains(it.0)) && processes::tracer(pid).is_none()
        };
        wait_for(Duration::from_secs(20), is_free);
        let changed = |it: &Self| !is_free() || look(pid) != it.before;
        if changed(&self) && may_rescue {
            let mut sdm = command(place, binaries::folder().join("sdm"));
            let rescued = sdm.args(["rescue", &pid.to_string()]).output();
            told.rescued += u64::from(rescued.is_ok_and(|it| it.status.success()));
        }
        match processes::of(pid).state() {
            None => told.violations.push("killed".to_owned()),
            Some(state) if state.has_ended() => told.violations.push("killed".to_owned()),
            Some(_) if !is_free() => told.violations.push("stopped".to_owned()),
            Some(_) if look(pid) != self.before => told.violations.push("changed".to_owned()),
            Some(_) => {
                drop(self.child.stdin.take());
                let status = self.child.wait().expect("it is a child");
                if status.code() != Some(0) {
                    told.violations.push(format!("it ended with {status}"));
                }
                return;
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The outcome of a fault.
#[derive(Default)]
struct Told {
    violations: Vec<String>,
    rescued: u64,
    struck: Vec<String>,
}

/// Waits until `holds` returns true, at most `bound`; returns false at the limit.
fn wait_for(bound: Duration, holds: impl Fn() -> bool) -> bool {
    let until = Instant::now() + bound;
    while !holds() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::park_timeout(LOOK);
    }
    true
}

/// True if nothing resumes a member that is stopped now: its parent has been killed or is gone, it is the keeper of a
/// session and outlives its parent, or it is still the parent's copy between fork and exec, which has asked the kernel
/// for nothing yet.
fn is_alone(member: u32, struck: &[(u32, String, Signal)]) -> bool {
    let Some(parent) = processes::parent(member).filter(|it| *it != std::process::id()) else {
        return true;
    };
    let looks = |pid| (processes::name(pid), processes::of(pid).words().ok());
    let is_killed = struck
        .iter()
        .any(|it| it.0 == parent && it.2 == Signal::SIGKILL);
    let own = looks(member);
    let is_keeper =
        (own.1.as_ref()).is_some_and(|words| words.get(1).is_some_and(|it| it == "keeper"));
    is_killed || is_keeper || own == looks(parent)
}

/// Applies the fault to some of the existing processes. Returns them, and those that only a user can resume who has
/// stopped them.
fn strike(fault: &Fault, front_end: u32) -> (Vec<(u32, String, Signal)>, Vec<u32>) {
    let mut rng = Rng::new(fault.choice);
    let (mut struck, mut alone) = (Vec::new(), Vec::new());
    for signal in &fault.signals {
        let all = members();
        let mut kinds: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        // Each kind of process as often as another one.
        let Some(kind) = rng.pick(&kinds) else { break };
        let pids: Vec<u32> = all
            .iter()
            .filter(|it| it.1 == kind)
            .map(|it| it.0)
            .collect();
        let pid = rng.pick(&pids).expect("it is of this kind");
        // SIGSTOP is not sent to `sdm` itself: a user who stops `sdm` continues it at some time. `script` stops itself
        // where the process that it runs stops.
        let parent = proc::of(pid.cast_signed()).stat();
        let parent = parent.ok().and_then(|stat| stat.parent());
        let in_terminal = all.contains(&(front_end, "script".to_owned()))
            && parent == Some(front_end.cast_signed());
        let is_own = pid == front_end || kind == "script" || in_terminal;
        let signal = match *signal {
            Signal::SIGSTOP if is_own => Signal::SIGTERM,
            signal => signal,
        };
        if signal == Signal::SIGSTOP && is_alone(pid, &struck) {
            alone.push(pid);
        }
        if kill(Pid::from_raw(pid.cast_signed()), signal).is_ok() {
            struck.push((pid, kind.to_owned(), signal));
        }
    }
    (struck, alone)
}

/// Gives a command folders of the test for its state.
fn own_folders<'a>(command: &'a mut Command, place: &Place) -> &'a mut Command {
    let below = |name: &str| place.path().join(name);
    command
        .env("XDG_RUNTIME_DIR", place.runtime())
        .env("XDG_STATE_HOME", below("state"))
        .env("XDG_CONFIG_HOME", below("config"))
}

/// A use of `sdm` that has begun.
struct Begun {
    sdm: Child,
    go: PathBuf,
    said: PathBuf,
}

impl Begun {
    fn start(used: Use, pid: u32, program: &Path, (place, elsewhere): (&Place, &Place)) -> Self {
        let go = elsewhere.path().join("go");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        let mpi = match used {
            Use::OpenMpi5 => {
                // The name of the host is in front of the command.
                script(elsewhere.path(), "go.ssh", "shift; exec sh -c \"$*\"");
                parts::openmpi5().expect("it was there")
            }
            _ => PathBuf::new(),
        };
        let words = used.words(pid, &text(program), &text(&go), &mpi);
        let own = binaries::folder().join("sdm");
        let mut sdm = match used {
            Use::Screen | Use::Keep => {
                let line = format!("exec {} {}", own.display(), words.join(" "));
                let mut sdm = command(place, "/usr/bin/script");
                sdm.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm");
                sdm
            }
            Use::Cluster => {
                let (own, words) = (own.display(), words.join(" "));
                let line = format!("{own} cluster add faults local && {own} {words} && {own} jobs");
                let mut shell = command(place, "/bin/sh");
                shell.args(["-c", &line]).current_dir(elsewhere.path());
                shell
            }
            _ => {
                let mut sdm = command(place, own);
                sdm.args(&words);
                sdm
            }
        };
        own_folders(&mut sdm, place);
        let said = elsewhere.path().join("said");
        let out = File::create(&said).expect("a file");
        sdm.stdout(out.try_clone().expect("a descriptor"))
            .stderr(out);
        let sdm = sdm.stdin(Stdio::piped()).spawn().expect("sdm starts");
        Self { sdm, go, said }
    }

    /// Makes `sdm` end, and returns the faults of that end. Processes that are `alone` are resumed before.
    fn end(&mut self, used: Use, pid: u32, alone: &[u32], place: &Place) -> Vec<String> {
        let mut wrong = Vec::new();
        let _ = fs::write(&self.go, "");
        for pid in alone {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT);
        }
        if let Some(mut input) = self.sdm.stdin.take() {
            let _ = input.write_all(used.farewell());
        }
        // What goes on without an end ends by the signal.
        if matches!(used, Use::Batch | Use::Watch | Use::OpenMpi5) {
            let _ = kill(Pid::from_raw(self.sdm.id().cast_signed()), Signal::SIGTERM);
        }
        let begin = Instant::now();
        let mut is_asked = false;
        while self.sdm.try_wait().expect("a child").is_none() && begin.elapsed() < END_WAIT {
            // A stopped gdb or launcher is never continued, so the user must end the session.
            if !is_asked && begin.elapsed() > PATIENCE {
                is_asked = true;
                let _ = kill(Pid::from_raw(self.sdm.id().cast_signed()), Signal::SIGTERM);
            }
            std::thread::park_timeout(LOOK);
        }
        if self.sdm.try_wait().expect("a child").is_none() {
            wrong.push("sdm does not end".to_owned());
            let _ = self.sdm.kill();
        }
        let _ = self.sdm.wait();
        if used == Use::Cluster {
            let mut stop = command(place, binaries::folder().join("sdm"));
            let stopped = own_folders(&mut stop, place).args(["cluster", "stop", "faults"]);
            println!("{:?}", stopped.output());
        }
        if used == Use::Keep {
            // The session's keeper outlives a killed terminal, as intended.
            for (pid, _) in members().into_iter().filter(|(_, name)| name == "sdm") {
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
            }
        }
        let is_gone = wait_for(END_WAIT, || {
            reap(&[self.sdm.id(), pid]);
            members().is_empty() && jobs().is_empty()
        });
        if !is_gone {
            let left: Vec<_> = members().into_iter().chain(jobs()).collect();
            let named = left.iter().map(|(pid, _)| leftovers::named(*pid));
            wrong.push(format!("left behind: {:?}", named.collect::<Vec<_>>()));
            left.iter()
                .for_each(|(pid, _)| processes::kill_if_there(*pid));
        }
        let text = fs::read(&self.said).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if text.contains("panicked at") {
            wrong.push("panic".to_owned());
        }
        if !wrong.is_empty() {
            println!("{text}");
        }
        wrong
    }
}

/// Carries out the fault of a seed. A use that was over before the fault is begun again, and struck after half the
/// time.
fn carry_out(seed: u64) -> (Fault, Told) {
    let mut fault = Fault::new(seed);
    loop {
        let told = strike_once(&fault);
        let is_over = told.struck.is_empty() && told.violations.is_empty();
        if !is_over || fault.moment.is_zero() {
            return (fault, told);
        }
        let half = fault.moment / 2;
        fault.moment = if half < LOOK { Duration::ZERO } else { half };
    }
}

fn strike_once(fault: &Fault) -> Told {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut told = Told::default();
    let (compiler, name) = match fault.used {
        Use::OpenMpi | Use::Pmix => (Compiler::OpenMpi, "mpi_held"),
        Use::Hydra => (Compiler::Mpich, "mpi_held"),
        Use::Cluster => (Compiler::C, "outlive"),
        _ => (Compiler::C, "work"),
    };
    let program = elsewhere.compile(name, compiler);
    let debugged = fault.used.attaches().then(|| Debugged::start(&program));
    let pid = debugged.as_ref().map_or(0, |it| it.child.id());
    let mut begun = Begun::start(fault.used, pid, &program, (&place, &elsewhere));
    if let Some(input) = &mut begun.sdm.stdin {
        let _ = input.write_all(&fault.used.input(pid));
    }
    std::thread::park_timeout(fault.moment);
    let jobs = jobs();
    let (struck, alone) = strike(fault, begun.sdm.id());
    let named = struck.iter();
    let named = named.map(|(_, name, signal)| format!("{signal} to {name}"));
    told.struck = named.collect();
    told.violations = begun.end(fault.used, pid, &alone, &place);
    // The agent's program also runs the job.
    let is_agent = |it: &(u32, String, Signal)| it.1 == "sdm-agent";
    let must_end = !jobs.is_empty() && !struck.iter().any(is_agent);
    if must_end && !elsewhere.path().join("done").exists() {
        told.violations
            .push("the job did not end by itself".to_owned());
    }
    if let Some(debugged) = debugged {
        let is_killed = |name: &str| {
            struck
                .iter()
                .any(|it| it.1 == name && it.2 == Signal::SIGKILL)
        };
        let may_rescue = is_killed("sdm-server") && is_killed("sdm-warden");
        debugged.check(&place, may_rescue, &mut told);
    }
    told
}

/// The seeds of this run.
fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let asked = (number("SDM_FAULTS"), number("SDM_TEST_SEED"));
    let count = asked.0.unwrap_or(match is_full() {
        true => FAULTS_OF_A_LONG_RUN,
        false => FAULTS,
    });
    let commit = std::env::var("SDM_TEST_COMMIT").unwrap_or_default();
    let first = (asked.1).unwrap_or_else(|| xxh3_64(commit.as_bytes()) % 1_000_000);
    let mut seeds: Vec<u64> = (first..first + count).collect();
    let uses = USES.len() as u64;
    if asked == (None, None) && !seeds.iter().any(|seed| seed.is_multiple_of(uses)) {
        // The use that comes first is the one without gdb.
        seeds.push((first + count).next_multiple_of(uses));
    }
    seeds
}

#[test]
fn random_faults_harm_no_process() {
    prctl::set_child_subreaper(true).expect("the kernel can");
    let mut by_use: BTreeMap<Use, (u64, u64, u64)> = BTreeMap::new();
    let mut by_struck: BTreeMap<String, u64> = BTreeMap::new();
    let mut wrong = String::new();
    for seed in seeds() {
        let (fault, mut told) = carry_out(seed);
        if told.struck.is_empty() {
            told.violations.push("nothing was struck".to_owned());
        }
        println!(
            "seed {seed}: {:?}, {:?}, {:?}: {:?}",
            fault.used, told.struck, fault.moment, told.violations
        );
        let row = by_use.entry(fault.used).or_default();
        row.0 += told.struck.len() as u64;
        row.1 += told.violations.len() as u64;
        row.2 += told.rescued;
        for struck in &told.struck {
            *by_struck.entry(struck.clone()).or_default() += 1;
        }
        for violation in &told.violations {
            writeln!(
                wrong,
                "seed {seed}: {fault:?}, {:?}: {violation}",
                told.struck
            )
            .expect("memory");
        }
    }
    println!("use: faults, violations, rescued: {by_use:?}\n{by_struck:?}");
    assert!(wrong.is_empty(), "{wrong}");
}
