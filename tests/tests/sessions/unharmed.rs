//! Inspecting a running job does not harm it, whenever the user interrupts the inspection and whenever gdb is
//! killed: no process of the job ends, none stays stopped or traced.
//!
//! `SDM_TEST_FULL=1` tries every moment many times.

mod code;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::job::{Folder, HeldJob, below, look, look_after_kill};
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, signal, tracer, wait_state};
use sdm_tests::relay::{Hold, Relay};
use sdm_tests::run::until;
use sdm_tests::sdm::{Done, Running, Sdm};

pub(super) use code::changed_bytes;

/// Moment of the disturbance.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// gdb runs, and has received no command.
    Gdb,
    /// gdb has attached to the first process, or with `last` to all.
    Held { last: bool },
    /// gdb has detached from the first process, or with `last` from all.
    Left { last: bool },
    /// All were inspected, and gdb is about to detach from the first.
    Seen,
    /// A result is shown while the watch goes on.
    Shown,
}

impl Moment {
    /// Point at which gdb is held at this moment; `None` for a moment that lasts.
    fn hold(self, pids: &[u32]) -> Option<Hold> {
        let all = pids.len();
        let which = |last| if last { all } else { 1 };
        match self {
            Self::Gdb => Some(Hold::first()),
            Self::Held { last } => Some(Hold::answer(which(last), "^-target-attach ")),
            Self::Left { last } => Some(Hold::answer(which(last), "^-target-detach")),
            Self::Seen => Some(Hold::command(1, "^-target-detach")),
            Self::Shown => None,
        }
    }

    /// True if it is this moment now, by the kernel's data on tracers.
    fn is_now(self, gdb: u32, pids: &[u32]) -> bool {
        let held = pids.iter().filter(|pid| tracer(**pid) == Some(gdb)).count();
        match self {
            Self::Gdb => held == 0,
            Self::Held { last: false } => held > 0,
            Self::Held { last: true } | Self::Seen | Self::Shown => held == pids.len(),
            Self::Left { last: false } => held < pids.len(),
            Self::Left { last: true } => held == 0,
        }
    }

    /// True if the inspection is not over yet, so that the disturbance must show in `sdm`'s output.
    fn is_early(self) -> bool {
        matches!(self, Self::Gdb | Self::Held { .. } | Self::Shown)
    }
}

const MOMENTS: [Moment; 6] = [
    Moment::Gdb,
    Moment::Held { last: false },
    Moment::Held { last: true },
    Moment::Seen,
    Moment::Left { last: false },
    Moment::Left { last: true },
];

/// Moments in the middle of an inspection.
const EARLY: [Moment; 3] = [Moment::Gdb, Moment::Held { last: true }, Moment::Seen];

/// Options of an inspection by gdb, during which the processes are stopped.
const BY_GDB: &[&str] = &["--by", "gdb"];
/// Options of a repeated inspection by gdb.
const WATCH_BY_GDB: &[&str] = &["--watch=1", "--by", "gdb"];

/// Moments of a continuous watch.
const WATCHED: [Moment; 3] = [Moment::Gdb, Moment::Held { last: true }, Moment::Shown];

/// The disturbance.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Blow {
    /// The user types Ctrl-C.
    Interrupt,
    /// gdb is killed, by a user or by the system for lack of memory.
    KillGdb,
    /// A batch system, or a terminal that goes, ends `sdm`.
    End(Signal),
}

impl Blow {
    /// The exit code of `sdm` if the blow came before its end.
    fn code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::KillGdb => 2,
            Self::End(signal) => 128 + signal as i32,
        }
    }
}

/// Number of attempts at each moment.
fn rounds() -> usize {
    if sdm_tests::run::is_full() { 20 } else { 1 }
}

/// The gdb that has been attached to a process.
fn gdb_of(pid: u32) -> u32 {
    tracer(pid).expect("it is attached to")
}

/// Applies the blow; the signal has been delivered when this returns.
fn strike(blow: Blow, gdb: u32, running: &Running<'_>) {
    match blow {
        Blow::KillGdb => {
            signal(gdb, Signal::SIGKILL);
            wait_state(gdb, "ZX");
        }
        Blow::Interrupt => send(running, Signal::SIGINT),
        Blow::End(signal) => send(running, signal),
    }
}

/// Sends `sdm` a signal, and waits until its thread for signals has handled it and sleeps again, or `sdm` has ended.
fn send(running: &Running<'_>, number: Signal) {
    let pid = running.pid();
    let before = handled(pid).expect("sdm has a thread for signals");
    signal(pid, number);
    until("sdm has handled the signal", || {
        handled(pid).is_none_or(|now| now > before)
    });
}

/// Number of times that `sdm`'s thread for signals has gone to sleep; `None` if there is no such thread.
fn handled(pid: u32) -> Option<u64> {
    let process = processes::of(pid);
    let threads = process.thread_ids().ok()?.map(|id| process.thread(id));
    let mut signals = threads.filter(|thread| thread.name().is_ok_and(|name| name == "signals"));
    signals
        .next()?
        .status()
        .ok()?
        .number("voluntary_ctxt_switches")
}

/// An inspection of processes, to be disturbed.
struct Looked<'a> {
    verb: &'a str,
    options: &'a [&'a str],
    /// Arguments of `sdm` that name the processes.
    target: &'a str,
    pids: &'a [u32],
}

impl Looked<'_> {
    /// Inspects the processes once for each moment, at which the disturbance comes; no process is harmed.
    fn disturbed_by(&self, blow: Blow, moments: &[Moment]) {
        for moment in moments.iter().copied() {
            for round in 0..rounds() {
                self.disturbed_at(moment, blow, round);
            }
        }
    }

    fn disturbed_at(&self, moment: Moment, blow: Blow, round: usize) {
        let Self { verb, options, .. } = self;
        let place = Place::new();
        let hold = moment.hold(self.pids);
        // For a moment without a hold, the hold is one that never matches.
        let relay = Relay::new(&place, &hold.clone().unwrap_or(Hold::command(1, "^never$")));
        let sdm = Sdm::new(&place, verb)
            .ask_again("each look is disturbed at another moment, in another way")
            .args(*options)
            .args(["--gdb", &relay.gdb(), self.target]);
        let running = sdm.spawn();
        let gdb = match hold {
            Some(_) => relay.wait(&running),
            None => {
                running.out.wait(0, "main () at ");
                gdb_of(self.pids[0])
            }
        };
        assert!(
            moment.is_now(gdb, self.pids),
            "{verb} {options:?}, {moment:?}"
        );
        strike(blow, gdb, &running);
        relay.release();
        let done = running.finish();
        println!(
            "{verb} {options:?}, {blow:?}, round {round}, {moment:?}: {:?}",
            done.code
        );
        // A watch goes on without the process whose gdb has ended, and reports that.
        let is_lost = done.out.contains("gdb has ended: gdb was killed");
        let is_told = match (blow, moment) {
            (Blow::KillGdb, Moment::Shown) => is_lost,
            _ => done.code == Some(blow.code()),
        };
        assert!(
            is_told || !moment.is_early(),
            "{blow:?}, {moment:?}: {done}"
        );
        check_words(blow, &done, moment);
        for pid in self.pids {
            let _ = look_after_kill(*pid);
        }
    }
}

/// Checks that an interrupted inspection reports that, and claims nothing about processes that it has not inspected.
fn check_words(blow: Blow, done: &Done, moment: Moment) {
    let said = format!("{}{}", done.out, done.err);
    assert!(
        !said.contains("No hang seen: nobody could"),
        "{moment:?}: {done}"
    );
    match done.code {
        Some(130) if blow == Blow::Interrupt => {
            assert!(
                said.contains("interrupted; every process was left in its previous state"),
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

/// Runs `disturb` on a job whose ranks wait for each other.
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
fn job_survives_a_cancelled_inspection() {
    with_job("given-up", |target, pids| {
        let blow = Blow::Interrupt;
        looked("stacks", BY_GDB, target, pids).disturbed_by(blow, &MOMENTS);
        looked("diagnose", BY_GDB, target, pids).disturbed_by(blow, &EARLY);
        looked("stacks", WATCH_BY_GDB, target, pids).disturbed_by(blow, &WATCHED);
    });
}

#[test]
fn job_survives_the_killed_gdb_of_an_inspection() {
    with_job("gdb-killed", |target, pids| {
        let blow = Blow::KillGdb;
        looked("stacks", BY_GDB, target, pids).disturbed_by(blow, &EARLY);
        looked("diagnose", BY_GDB, target, pids).disturbed_by(blow, &EARLY);
        looked("stacks", WATCH_BY_GDB, target, pids).disturbed_by(blow, &WATCHED);
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
fn processes_survive_any_end_of_an_inspection() {
    let elsewhere = Place::new();
    // One has a gdb of its own, several share one.
    for count in [1, 3] {
        let mut processes = waiting(&elsewhere, count);
        let pids: Vec<u32> = processes.iter().map(Child::id).collect();
        let target: Vec<String> = pids.iter().map(ToString::to_string).collect();
        let target = target.join(",");
        let stacks = looked("stacks", BY_GDB, &target, &pids);
        stacks.disturbed_by(Blow::Interrupt, &MOMENTS);
        stacks.disturbed_by(Blow::KillGdb, &EARLY);
        stacks.disturbed_by(Blow::End(Signal::SIGTERM), &EARLY);
        let attach = looked("attach", &["-c", "bt"], &target, &pids);
        attach.disturbed_by(Blow::End(Signal::SIGHUP), &EARLY[..2]);
        let watch = looked("stacks", WATCH_BY_GDB, &target, &pids);
        watch.disturbed_by(Blow::Interrupt, &WATCHED);
        watch.disturbed_by(Blow::KillGdb, &WATCHED);
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
fn stopped_process_stays_stopped_after_a_gdb_inspection() {
    let elsewhere = Place::new();
    let mut processes = waiting(&elsewhere, 1);
    let pid = processes[0].id();
    signal(pid, Signal::SIGSTOP);
    until("it stands", || is_stopped(pid));
    for killed in [false, true] {
        let place = Place::new();
        let relay = Relay::new(&place, &Hold::answer(1, "^-target-attach "));
        let sdm = Sdm::new(&place, "stacks").ask_again("the gdb of the second look is killed");
        let sdm = sdm.args(["--by", "gdb", "--gdb", &relay.gdb(), &pid.to_string()]);
        let running = sdm.spawn();
        let gdb = relay.wait(&running);
        if killed {
            strike(Blow::KillGdb, gdb, &running);
        }
        relay.release();
        let done = running.finish();
        until("nobody traces it", || tracer(pid).is_none());
        until("it stands again", || is_stopped(pid));
        let _done = done.code(if killed { 2 } else { 0 });
    }
    signal(pid, Signal::SIGCONT);
    drop(processes[0].stdin.take());
    assert_eq!(processes[0].wait().expect("it is a child").code(), Some(0));
}

/// Processes of `work spin`, which loop without end.
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
fn process_at_a_breakpoint_survives_a_killed_gdb() {
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
            // All tasks have answered, so each of them is stopped there.
            let _ = running.ask("print 40 + 2", ": 42");
            strike(Blow::KillGdb, gdb_of(pids[0]), &running);
            for (pid, before) in pids.iter().zip(&before) {
                // The kernel detaches the process some time after gdb's end, so the test waits.
                until("it is as before", || look_after_kill(*pid) == *before);
            }
            let _ = running.finish();
        }
        for process in &mut processes {
            process.kill().expect("it lives");
            process.wait().expect("it is a child");
        }
    }
}

/// Number of times that a process's main thread has gone to sleep.
fn sleeps(pid: u32) -> u64 {
    let status = processes::of(pid).status().expect("it lives");
    let number = status.number("voluntary_ctxt_switches");
    number.expect("the kernel counts them")
}

/// A program whose gdb is killed while it hits a breakpoint over and over can be lost: the kernel has reported a
/// trap to gdb that is never handled. All other processes must live, and none may stay stopped.
#[test]
fn only_a_process_hitting_a_breakpoint_can_die_with_gdb() {
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
        let before = sleeps(hot.id());
        let _ = running.ask("continue &", "continue &\n");
        for pid in &others {
            wait_state(*pid, "S");
        }
        // It computes, and sleeps only where it is stopped for its tracer.
        until("it runs into the breakpoint again and again", || {
            sleeps(hot.id()) > before + 20
        });
        strike(Blow::KillGdb, gdb_of(others[0]), &running);
        for pid in &others {
            let _ = look_after_kill(*pid);
            until("nothing of gdb is left in it", || changed_bytes(*pid) == 0);
        }
        let is_traced = || tracer(hot.id()).is_some();
        until("nobody traces it", || !is_traced());
        let _ = running.finish();
        match hot.try_wait().expect("it is a child") {
            None => {
                let _ = look_after_kill(hot.id());
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
