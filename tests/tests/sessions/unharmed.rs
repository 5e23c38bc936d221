//! Looking at a job that runs does not harm it, whenever a person gives it up and whenever gdb is killed: no process
//! of it ends, none stays stopped or traced.
//!
//! `SDM_TEST_FULL=1` tries every moment many times.

mod code;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::proc::State;
use sdm_tests::job::{Folder, HeldJob, below, look};
use sdm_tests::leftovers;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, signal, tracer};
use sdm_tests::run::{BOUND, until};
use sdm_tests::sdm::{Done, Running, Sdm};

use code::changed_bytes;

/// When the interrupt comes.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// gdb is there.
    Gdb,
    /// A process is held, the first of them or the last.
    Held { last: bool },
    /// It was held and is not any more.
    Left { last: bool },
    /// Something is shown.
    Shown,
}

const MOMENTS: [Moment; 6] = [
    Moment::Gdb,
    Moment::Held { last: false },
    Moment::Held { last: true },
    Moment::Shown,
    Moment::Left { last: false },
    Moment::Left { last: true },
];

/// Those that come before a look is over.
const EARLY: [Moment; 3] = [Moment::Gdb, Moment::Held { last: true }, Moment::Shown];

/// What comes then.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Blow {
    /// A person types Ctrl-C.
    Interrupt,
    /// Somebody, or the system for want of memory, kills gdb.
    KillGdb,
    /// A batch system, or a terminal that goes, ends `sdm`.
    End(Signal),
}

impl Blow {
    /// The exit code where it came in time.
    fn code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::KillGdb => 2,
            Self::End(signal) => 128 + signal as i32,
        }
    }
}

/// How often each moment is tried at most where no blow came in time.
const TRIES: usize = 10;

/// How often each moment is tried.
fn rounds() -> usize {
    if std::env::var_os("SDM_TEST_FULL").is_some_and(|full| full == "1") {
        20
    } else {
        1
    }
}

/// Looks until it is so, or until `sdm` has ended; what is waited for is over in moments.
fn watch(running: &Running<'_>, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    let ended = || {
        let state = processes::of(running.pid()).state();
        state.is_none_or(State::has_ended)
    };
    while !is_so() && !ended() {
        assert!(
            begin.elapsed() < BOUND,
            "nothing of what was waited for comes"
        );
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// The gdb of a session.
fn gdb_of(place: &Place) -> Option<u32> {
    let mut pids = leftovers::holding(place.mark())
        .into_iter()
        .map(|(pid, _)| pid);
    let is = |pid: u32, wanted: &str| processes::name(pid).starts_with(wanted);
    // One that begins has a child of the same name for a moment.
    pids.find(|pid| is(*pid, "gdb") && processes::parent(*pid).is_some_and(|it| is(it, "sdm-s")))
}

fn strike(blow: Blow, place: &Place, running: &Running<'_>) {
    let (pid, signal) = match blow {
        Blow::Interrupt => (Some(running.pid()), Signal::SIGINT),
        Blow::KillGdb => (gdb_of(place), Signal::SIGKILL),
        Blow::End(signal) => (Some(running.pid()), signal),
    };
    if let Some(pid) = pid {
        // It may be over.
        let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
    }
}

fn wait_for(moment: Moment, place: &Place, running: &Running<'_>, pids: &[u32]) {
    let which = |last: bool| if last { pids[pids.len() - 1] } else { pids[0] };
    match moment {
        Moment::Gdb => watch(running, || gdb_of(place).is_some()),
        Moment::Held { last } => watch(running, || tracer(which(last)).is_some()),
        Moment::Left { last } => {
            watch(running, || tracer(which(last)).is_some());
            watch(running, || tracer(which(last)).is_none());
        }
        Moment::Shown => {
            let mark = running.out.mark();
            watch(running, || running.out.mark() != mark);
        }
    }
}

/// A look at processes, and what it is disturbed by.
struct Looked<'a> {
    verb: &'a str,
    options: &'a [&'a str],
    /// How the processes are named to `sdm`.
    target: &'a str,
    pids: &'a [u32],
}

impl Looked<'_> {
    /// Looks once for each of some moments, at which the blow comes; nobody is harmed.
    fn disturbed_by(&self, blow: Blow, moments: &[Moment]) {
        let Self { verb, options, .. } = self;
        let mut came = 0;
        // On a busy machine a blow can come when the look is over: it is tried again then.
        for round in 0..TRIES.max(rounds()) {
            if round >= rounds() && came > 0 {
                break;
            }
            for moment in moments.iter().copied() {
                let place = Place::new();
                let running = Sdm::new(&place, verb)
                    .args(*options)
                    .args([self.target])
                    .spawn();
                wait_for(moment, &place, &running, self.pids);
                strike(blow, &place, &running);
                let done = running.finish();
                println!(
                    "{verb} {options:?}, {blow:?}, round {round}, {moment:?}: {:?}",
                    done.code
                );
                came += usize::from(done.code == Some(blow.code()));
                check_words(blow, &done, moment);
                for pid in self.pids {
                    let _ = look(*pid);
                }
            }
        }
        assert!(came > 0, "{verb} {options:?}: {blow:?} was never in time");
    }
}

/// What was given up says so, and nothing else of those whom it has not seen.
fn check_words(blow: Blow, done: &Done, moment: Moment) {
    let said = format!("{}{}", done.out, done.err);
    assert!(
        !said.contains("No hang seen: nobody could"),
        "{moment:?}: {done}"
    );
    match done.code {
        Some(130) if blow == Blow::Interrupt => {
            assert!(
                said.contains("interrupted; every process was left as it was"),
                "{moment:?}: {done}"
            );
            assert!(!said.contains("No hang seen"), "{moment:?}: {done}");
        }
        // The look was over when the signal came.
        Some(0 | 1 | 3 | 4) => {}
        Some(2) if blow == Blow::KillGdb => {
            assert!(!said.contains("ptrace_scope"), "{moment:?}: {done}");
        }
        Some(code) if code == blow.code() => {
            assert!(said.contains("SIG"), "{moment:?}: {done}");
            assert!(!said.contains("no answer"), "{moment:?}: {done}");
        }
        _ => panic!("{moment:?}: {done}"),
    }
}

/// A job whose ranks wait for each other, and what is done to it.
fn with_job(name: &str, disturb: impl FnOnce(&str, &[u32])) {
    let folder = Folder::new(name);
    let program = folder.compile(Compiler::OpenMpi, "mpi_held");
    let ranks = 4;
    let mut mpirun = Command::new("mpirun.openmpi");
    mpirun.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    mpirun.args(["-n", &ranks.to_string()]);
    let job = HeldJob::start(mpirun, &folder, &program, ranks);
    let pids = below(job.starter(), "mpi_held");
    assert_eq!(pids.len(), 4);
    disturb(&job.starter().to_string(), &pids);
    job.finish();
}

fn looked<'a>(
    verb: &'a str,
    options: &'a [&'a str],
    target: &'a str,
    pids: &'a [u32],
) -> Looked<'a> {
    Looked {
        verb,
        options,
        target,
        pids,
    }
}

#[test]
fn a_job_lives_on_however_a_look_at_it_is_given_up() {
    with_job("given-up", |target, pids| {
        let blow = Blow::Interrupt;
        looked("stacks", &[], target, pids).disturbed_by(blow, &MOMENTS);
        looked("diagnose", &[], target, pids).disturbed_by(blow, &EARLY);
        looked("stacks", &["--watch=1"], target, pids).disturbed_by(blow, &EARLY);
    });
}

#[test]
fn a_job_lives_on_whenever_the_gdb_of_a_look_is_killed() {
    with_job("gdb-killed", |target, pids| {
        let blow = Blow::KillGdb;
        looked("stacks", &[], target, pids).disturbed_by(blow, &EARLY);
        looked("diagnose", &[], target, pids).disturbed_by(blow, &EARLY);
        looked("stacks", &["--watch=1"], target, pids).disturbed_by(blow, &EARLY);
    });
}

/// Processes that wait for their input.
fn waiting(place: &Place, count: usize) -> Vec<Child> {
    let program = place.compile("work", Compiler::C);
    let start = || {
        let mut command = Command::new(&program);
        command
            .arg("echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        lower(&mut command).spawn().expect("it was compiled")
    };
    (0..count).map(|_| start()).collect()
}

#[test]
fn processes_live_on_however_a_look_at_them_ends() {
    let elsewhere = Place::new();
    // One has a gdb of its own, several share one.
    for count in [1, 3] {
        let mut processes = waiting(&elsewhere, count);
        let pids: Vec<u32> = processes.iter().map(Child::id).collect();
        let target: Vec<String> = pids.iter().map(ToString::to_string).collect();
        let target = target.join(",");
        let stacks = looked("stacks", &[], &target, &pids);
        stacks.disturbed_by(Blow::Interrupt, &MOMENTS);
        stacks.disturbed_by(Blow::KillGdb, &EARLY);
        stacks.disturbed_by(Blow::End(Signal::SIGTERM), &EARLY);
        let attach = looked("attach", &["-c", "bt"], &target, &pids);
        attach.disturbed_by(Blow::End(Signal::SIGHUP), &EARLY[..2]);
        let watch = looked("stacks", &["--watch=1"], &target, &pids);
        watch.disturbed_by(Blow::Interrupt, &EARLY);
        watch.disturbed_by(Blow::KillGdb, &EARLY);
        for process in &mut processes {
            drop(process.stdin.take());
            let status = process.wait().expect("it is a child");
            assert_eq!(status.code(), Some(0));
        }
    }
}

fn is_stopped(pid: u32) -> bool {
    processes::of(pid).state().expect("it lives").is_stopped()
}

#[test]
fn a_process_that_was_stopped_stays_so() {
    let elsewhere = Place::new();
    let mut processes = waiting(&elsewhere, 1);
    let pid = processes[0].id();
    signal(pid, Signal::SIGSTOP);
    until("it stands", || is_stopped(pid));
    for blow in [None, Some(Blow::KillGdb)] {
        let place = Place::new();
        let running = Sdm::new(&place, "stacks").args([pid.to_string()]).spawn();
        if let Some(blow) = blow {
            watch(&running, || tracer(pid).is_some());
            strike(blow, &place, &running);
        }
        let done = running.finish();
        until("nobody traces it", || tracer(pid).is_none());
        until("it stands again", || is_stopped(pid));
        // A gdb that dies when it has answered fails nothing.
        let codes: &[i32] = if blow.is_none() { &[0] } else { &[0, 2] };
        assert!(done.code.is_some_and(|it| codes.contains(&it)), "{done}");
    }
    signal(pid, Signal::SIGCONT);
    drop(processes[0].stdin.take());
    assert_eq!(processes[0].wait().expect("it is a child").code(), Some(0));
}

/// `work spin`, on its way round and round.
fn spinning(place: &Place, count: usize) -> Vec<Child> {
    let program = place.compile("work", Compiler::C);
    let start = || {
        let mut command = Command::new(&program);
        command
            .arg("spin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = lower(&mut command).spawn().expect("it was compiled");
        let mut said = [0; 8];
        let out = process.stdout.as_mut().expect("it is a pipe");
        out.read_exact(&mut said).expect("it says that it spins");
        process
    };
    (0..count).map(|_| start()).collect()
}

#[test]
fn who_stands_at_a_breakpoint_outlives_gdb() {
    let elsewhere = Place::new();
    for count in [1, 3] {
        let mut processes = spinning(&elsewhere, count);
        let pids: Vec<u32> = processes.iter().map(Child::id).collect();
        let before: Vec<_> = pids.iter().map(|pid| look(*pid)).collect();
        let target: Vec<String> = pids.iter().map(ToString::to_string).collect();
        for _ in 0..rounds() {
            let place = Place::new();
            let mut running = Sdm::new(&place, "attach")
                .args([target.join(",")])
                .talk()
                .spawn();
            let _ = running.ask("break work.c:53", "breakpoint 1 at work.c:53");
            let _ = running.ask("continue", "stopped at breakpoint 1");
            // Answered by all: each of them stands there.
            let _ = running.ask("print 40 + 2", ": 42");
            strike(Blow::KillGdb, &place, &running);
            for (pid, before) in pids.iter().zip(&before) {
                // The kernel lets go of it before it stops it.
                until("it is as before", || look(*pid) == *before);
            }
            let _ = running.finish();
        }
        for process in &mut processes {
            process.kill().expect("it lives");
            process.wait().expect("it is a child");
        }
    }
}

/// A program whose gdb is killed while it runs into a breakpoint over and over can be lost: the kernel has told gdb of a trap
/// that nobody answers. Everybody else is promised to live, and nobody stays stopped.
#[test]
fn only_who_runs_into_a_breakpoint_just_then_can_die() {
    let (mut lived, mut died) = (0, 0);
    for _ in 0..5 * rounds() {
        let (here, there) = (Place::new(), Place::new());
        let mut hot = spinning(&here, 1).remove(0);
        let mut calm = waiting(&there, 2);
        let others: Vec<u32> = calm.iter().map(Child::id).collect();
        let target = format!("{},{},{}", hot.id(), others[0], others[1]);
        let place = Place::new();
        let mut running = Sdm::new(&place, "attach").args([target]).talk().spawn();
        let _ = running.ask("break work.c:53 if rounds < 0", "breakpoint 1");
        let _ = running.ask("continue &", "continue &\n");
        let _ = running.ask("print 1", "running:");
        strike(Blow::KillGdb, &place, &running);
        for pid in &others {
            let _ = look(*pid);
            until("nothing of gdb is left in it", || changed_bytes(*pid) == 0);
        }
        let is_traced = || tracer(hot.id()).is_some();
        until("nobody traces it", || !is_traced());
        let _ = running.finish();
        match hot.try_wait().expect("it is a child") {
            None => {
                let _ = look(hot.id());
                until("nothing of gdb is left in it", || {
                    changed_bytes(hot.id()) == 0
                });
                hot.kill().expect("it lives");
                hot.wait().expect("it is a child");
                lived += 1;
            }
            Some(status) => {
                assert_eq!(status.signal(), Some(Signal::SIGTRAP as i32), "{status}");
                died += 1;
            }
        }
        for process in &mut calm {
            drop(process.stdin.take());
            assert_eq!(process.wait().expect("it is a child").code(), Some(0));
        }
    }
    println!("of those that ran into a breakpoint all the time {lived} lived and {died} died");
}
