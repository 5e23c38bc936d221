//! The warden: a process that outlives this one until its gdbs have ended.
//!
//! A gdb ends at the end of its input, but does not read input while it waits for a called function in the program
//! (`print sleep(1000)`). The warden is a copy of this process that holds only one pipe, and is told of every gdb and
//! its processes. When this process dies in any way, the warden ends the gdbs: it waits, stops the programs that they
//! wait for, and at last kills gdb. It removes gdb's breakpoints from the programs, and resumes them. It never sends
//! gdb SIGINT, which gdb would pass on to a program that it is detaching from.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, read, write};
use sdm_system::proc::{self, State};

use crate::late_stop::LateStop;
use crate::process::{self, Identity, identity};
use crate::{breakpoint_cleanup, sys};

/// Time for which the warden waits for the end of gdbs. It waits first for gdbs that read the end of their input, then
/// after the last stop, and after the kill.
const STEP_WAIT: Duration = Duration::from_secs(2);
/// Number of times that the warden stops the processes for which a gdb waits, if gdb has attached to them. The stops
/// are one second apart. A gdb of several tasks may call functions in each of them.
const STOPS_ATTACHED: u32 = 30;
/// Number of these stops for a gdb that has attached to no process. The program that it has started dies with it, so
/// that killing gdb does no harm.
const STOPS_STARTED: u32 = 3;
/// Pause between two stops of the processes for which a gdb waits.
const STOP_PAUSE: Duration = Duration::from_secs(1);
/// Interval of checks for stops that take effect after gdb's end.
const LATE_STOP_LOOK: Duration = Duration::from_millis(10);
/// Interval of checks for the end of a gdb without a pidfd.
const END_LOOK: Duration = Duration::from_millis(10);
/// Intervals of the SIGCONT timer by which the warden resumes itself if it is stopped: while it waits, and while it
/// ends gdbs. The parent's end sends SIGCONT too, but a stop just after that would come before the work has begun.
const GO_ON_WAITING: Duration = Duration::from_secs(5);
const GO_ON: Duration = Duration::from_millis(200);
/// The warden's name in process lists, at most 15 bytes.
const NAME: &std::ffi::CStr = c"sdm-warden";

/// The write end of the pipe for messages to the warden. When it closes, the warden knows that this process has died.
#[derive(Debug)]
pub struct Watchdog(OwnedFd);

/// A message to the warden: the pid of a gdb, the pid of a process, and the kind of message. It is short enough to be
/// written atomically.
type Word = [i32; 3];

/// Kind of a message that registers a new gdb.
const GDB: i32 = 0;
/// Kind of a message that registers a running process to which the gdb will attach.
const RUNS: i32 = 1;
/// Kind of a message that registers a stopped process to which the gdb will attach.
const STANDS: i32 = 2;
/// Kind of a message that unregisters a process.
const LET_GO: i32 = 3;

impl Watchdog {
    /// Forks the warden: a process that ends the registered gdbs if this process dies.
    ///
    /// # Errors
    /// [`io::Error`] if the system has no resources for another process.
    pub fn start() -> io::Result<Self> {
        sys::fork_copy(NAME, |pipe| keep(&pipe)).map(Self)
    }

    /// Registers a gdb that this process has not reaped.
    ///
    /// # Errors
    /// [`io::Error`] if the warden is gone.
    pub fn keep(&self, gdb: i32) -> io::Result<()> {
        self.tell([gdb, 0, GDB])
    }

    /// Registers a process to which a gdb will attach. `stopped` is true if the process is stopped.
    ///
    /// # Errors
    /// [`io::Error`] if the warden is gone.
    pub fn hold(&self, gdb: i32, pid: i32, stopped: bool) -> io::Result<()> {
        self.tell([gdb, pid, if stopped { STANDS } else { RUNS }])
    }

    /// Unregisters a process after a detach.
    ///
    /// # Errors
    /// [`io::Error`] if the warden is gone.
    pub fn let_go(&self, pid: i32) -> io::Result<()> {
        self.tell([0, pid, LET_GO])
    }

    fn tell(&self, word: Word) -> io::Result<()> {
        let bytes: Vec<u8> = word.iter().flat_map(|it| it.to_ne_bytes()).collect();
        write(&self.0, &bytes)?;
        Ok(())
    }
}

/// A gdb whose end the warden watches.
struct WatchedGdb {
    pid: i32,
    /// The process of the gdb; `None` if it had ended when it was registered.
    who: Option<Identity>,
    /// Becomes readable when the gdb ends; `None` before Linux 5.3, which has no pidfds.
    end: Option<OwnedFd>,
    attached: Vec<Attached>,
}

/// A process to which the gdb attaches or has attached.
struct Attached {
    who: Identity,
    /// True if the process was stopped before the attach.
    stopped: bool,
    /// Addresses of trap instructions that were in the process's code before the attach.
    foreign: Vec<u64>,
}

impl WatchedGdb {
    /// True while the gdb is attached to processes that it has not started.
    fn has_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    fn is_alive(&self) -> bool {
        !ends_within(self, Duration::ZERO)
    }
}

/// Main loop of the warden.
fn keep(pipe: &OwnedFd) {
    let mut kept: Vec<WatchedGdb> = Vec::new();
    // Without the timer, a stop of this process keeps it from its work.
    let mut clock = sys::ContinueTimer::start(GO_ON_WAITING).ok();
    while let Some(word) = read_word(pipe) {
        note(&mut kept, word);
    }
    if let Some(clock) = &mut clock {
        let _ = clock.tick(GO_ON);
    }
    let deadline = Instant::now() + STEP_WAIT;
    kept.iter().for_each(go_on);
    wait_for_all(&kept, deadline);
    let stopped = end_blocked(&kept);
    let attached: Vec<&Attached> = kept.iter().flat_map(|gdb| &gdb.attached).collect();
    for it in &attached {
        // The process may have ended.
        let _ = breakpoint_cleanup::remove_breakpoints(it.who.pid(), &it.foreign);
    }
    for program in stopped {
        let _ = kill(Pid::from_raw(program), Signal::SIGCONT);
    }
    let each = kept.iter().flat_map(|gdb| {
        let attached = gdb.attached.iter().filter(|it| !it.stopped);
        attached.map(move |it| (gdb, LateStop::of(&it.who)))
    });
    let mut late: Vec<(&WatchedGdb, LateStop<'_>)> = each.collect();
    while !late.is_empty() {
        late.retain_mut(|(gdb, stop)| gdb.is_alive() || !stop.is_undone());
        std::thread::sleep(LATE_STOP_LOOK);
    }
}

fn read_word(pipe: &OwnedFd) -> Option<Word> {
    let mut bytes = [0; size_of::<Word>()];
    let mut filled = 0;
    while filled < bytes.len() {
        match read(pipe, &mut bytes[filled..]) {
            Err(nix::errno::Errno::EINTR) => {}
            Ok(count) if count > 0 => filled += count,
            _ => return None,
        }
    }
    let mut numbers = bytes
        .chunks_exact(4)
        .map(|it| it.try_into().map(i32::from_ne_bytes));
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

fn note(kept: &mut Vec<WatchedGdb>, [gdb, pid, what]: Word) {
    match what {
        GDB => {
            kept.retain(|gdb| gdb.is_alive() || !gdb.attached.is_empty());
            kept.push(WatchedGdb {
                pid: gdb,
                who: identity(gdb),
                end: sdm_system::pidfd_open(gdb.cast_unsigned()).ok(),
                attached: Vec::new(),
            });
        }
        LET_GO => {
            for gdb in kept {
                gdb.attached.retain(|it| it.who.pid() != pid);
            }
        }
        _ => {
            let known = kept.iter_mut().rev().find(|it| it.pid == gdb);
            if let (Some(known), Some(who)) = (known, identity(pid)) {
                known.attached.push(Attached {
                    who,
                    stopped: what == STANDS,
                    foreign: breakpoint_cleanup::breakpoints(pid).unwrap_or_default(),
                });
            }
        }
    }
}

fn ends_within(gdb: &WatchedGdb, wait: Duration) -> bool {
    let deadline = Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(end) = &gdb.end else {
            let has_ended = !gdb.who.as_ref().is_some_and(Identity::is_alive);
            if has_ended || left.is_zero() {
                return has_ended;
            }
            std::thread::sleep(END_LOOK.min(left));
            continue;
        };
        let mut fds = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Err(nix::errno::Errno::EINTR) => {}
            found => return found.is_ok_and(|count| count > 0),
        }
    }
}

/// Waits until all of these gdbs have ended, but not beyond `deadline`.
fn wait_for_all<'a>(gdbs: impl IntoIterator<Item = &'a WatchedGdb>, deadline: Instant) {
    for gdb in gdbs {
        ends_within(gdb, deadline.saturating_duration_since(Instant::now()));
    }
}

/// The action on a gdb that does not read its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchdogStep {
    /// The programs for which gdb waits are stopped.
    Stop,
    /// Nothing is done, as gdb may be about to end.
    Wait,
    /// The gdb is killed.
    Kill,
}

/// Time after which a gdb that does not read its input is killed.
fn patience(has_attached: bool) -> Duration {
    let stops = match has_attached {
        true => STOPS_ATTACHED,
        false => STOPS_STARTED,
    };
    STOP_PAUSE * stops + STEP_WAIT
}

/// The action on a gdb that has not read its input for the time `spent`.
fn step(spent: Duration, has_attached: bool) -> WatchdogStep {
    let patience = patience(has_attached);
    match spent {
        _ if spent >= patience => WatchdogStep::Kill,
        _ if spent >= patience - STEP_WAIT + STOP_PAUSE => WatchdogStep::Wait,
        _ => WatchdogStep::Stop,
    }
}

/// Ends the gdbs that do not read their input, all at the same time, so that the total time does not grow with their
/// number. Returns the pids of the programs to resume.
fn end_blocked(kept: &[WatchedGdb]) -> Vec<i32> {
    let blocked = kept.iter().filter(|gdb| gdb.is_alive());
    let blocked: Vec<(&WatchedGdb, Vec<i32>)> =
        blocked.map(|gdb| (gdb, traced_by(gdb.pid))).collect();
    let began = Instant::now();
    let last = blocked.iter().map(|(gdb, _)| patience(gdb.has_attached()));
    let last = last.max().unwrap_or_default() + STEP_WAIT;
    // Until a gdb has ended, its pid cannot be reused, since no other process reaps it before.
    while blocked.iter().any(|(gdb, _)| gdb.is_alive()) && began.elapsed() < last {
        let living = || blocked.iter().filter(|(gdb, _)| gdb.is_alive());
        living().for_each(|(gdb, _)| go_on(gdb));
        let before: Vec<_> = living()
            .map(|(gdb, _)| (gdb.pid, asleep(gdb.pid)))
            .collect();
        wait_for_all(
            blocked.iter().map(|(gdb, _)| *gdb),
            Instant::now() + STOP_PAUSE,
        );
        for (gdb, programs) in living() {
            // A gdb that uses the processor may be detaching from programs, which takes time.
            let is_idle =
                asleep(gdb.pid).is_some_and(|ticks| before.contains(&(gdb.pid, Some(ticks))));
            match step(began.elapsed(), gdb.has_attached()) {
                WatchdogStep::Stop if is_idle => {
                    // gdb does not wait for a program that is already stopped. Such a program would stay stopped if
                    // this process were killed too.
                    for program in programs.iter().filter(|pid| is_let_run(**pid)) {
                        let _ = kill(Pid::from_raw(*program), Signal::SIGSTOP);
                    }
                }
                WatchdogStep::Stop | WatchdogStep::Wait => {}
                WatchdogStep::Kill => {
                    let _ = kill(Pid::from_raw(gdb.pid), Signal::SIGKILL);
                }
            }
        }
    }
    // Programs that the gdbs had started have ended with them.
    let goes_on = |gdb: &WatchedGdb, pid: i32| {
        let mut attached = gdb.attached.iter();
        !attached.any(|it| it.who.pid() == pid && it.stopped)
    };
    let each = blocked.iter().flat_map(|(gdb, programs)| {
        let programs = programs.iter().copied();
        programs.filter(|pid| goes_on(gdb, *pid))
    });
    each.collect()
}

/// Resumes a stopped gdb. Until then it cannot read the end of its input.
fn go_on(gdb: &WatchedGdb) {
    process::go_on(gdb.pid);
}

/// Processor time that a process has used, in clock ticks; `None` unless it sleeps.
fn asleep(pid: i32) -> Option<u64> {
    let stat = proc::of(pid).stat().ok()?;
    stat.cpu_ticks().filter(|_| stat.state() == State('S'))
}

/// True if a thread of a traced process is not stopped by its tracer.
fn is_let_run(pid: i32) -> bool {
    let process = proc::of(pid);
    let mut threads = process.thread_ids().into_iter().flatten();
    threads.any(|id| {
        let state = process.thread(id).state();
        state.is_some_and(|it| !it.is_held() && !it.has_ended())
    })
}

/// The pids of the processes that a gdb traces.
fn traced_by(gdb: i32) -> Vec<i32> {
    let is_its = |status: proc::Status| status.tracer() == Some(gdb);
    let pids = proc::pids().into_iter().flatten();
    pids.filter(|pid| proc::of(*pid).status().is_ok_and(is_its))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use nix::sys::ptrace;
    use nix::sys::signal::killpg;

    use super::*;

    #[test]
    fn warden_kills_a_blocked_gdb_within_its_time_limit() {
        for (has_attached, bound) in [(false, 10), (true, 40)] {
            let mut spent = Duration::ZERO;
            let mut stops = 0;
            while step(spent, has_attached) != WatchdogStep::Kill {
                stops += u32::from(step(spent, has_attached) == WatchdogStep::Stop);
                spent += STOP_PAUSE;
            }
            assert_eq!(spent, patience(has_attached));
            // Before that comes one wait for the gdbs that read their input, and after it one for the end of the
            // killed ones.
            let all = STEP_WAIT + spent + STEP_WAIT;
            assert!(all < Duration::from_secs(bound), "{all:?}");
            assert!(stops > 2, "{stops}");
        }
    }

    fn run(program: &str, argument: &str, stdin: Stdio, stdout: Stdio) -> Child {
        let mut command = Command::new(program);
        command.arg(argument).stdin(stdin).stdout(stdout);
        command.spawn().unwrap()
    }

    /// Checks that a gdb with a long patience can end by itself after one with a short patience was killed.
    #[test]
    fn gdb_that_ends_by_itself_is_not_killed_with_another() {
        let (reader, writer) = io::pipe().unwrap();
        let mut first = run("cat", "-", reader.into(), Stdio::null());
        let mut second = run("sleep", "1000", Stdio::null(), writer.into());
        let mut attached = run("sleep", "1000", Stdio::null(), Stdio::null());
        let (theirs, ours) = io::pipe().unwrap();
        let ours = Watchdog(ours.into());
        let pid = |child: &Child| i32::try_from(child.id()).unwrap();
        ours.keep(pid(&first)).unwrap();
        ours.keep(pid(&second)).unwrap();
        ours.hold(pid(&first), pid(&attached), false).unwrap();
        drop(ours);
        keep(&theirs.into());
        assert!(first.wait().unwrap().success());
        assert!(!second.wait().unwrap().success());
        assert!(attached.try_wait().unwrap().is_none());
        attached.kill().unwrap();
        attached.wait().unwrap();
    }

    /// Has these processes compete for one processor, on which `pid` runs only when they do not want it.
    fn starve(pid: i32) -> Vec<Child> {
        let status = proc::own().status().unwrap();
        let allowed = status.field("Cpus_allowed_list").unwrap();
        let processor = allowed.split(['-', ',']).next().unwrap();
        let others = (0..8).map(|_| {
            let mut command = Command::new("taskset");
            let loops = ["-c", processor, "sh", "-c", "while :; do :; done"];
            command.args(loops).spawn().unwrap()
        });
        let others: Vec<Child> = others.collect();
        let is_looping = |it: &Child| {
            let process = proc::of(it.id().cast_signed());
            process.name().is_ok_and(|name| name == "sh")
                && process.ran_ns().is_some_and(|ran| ran > 20_000_000)
        };
        while !others.iter().all(is_looping) {
            std::thread::yield_now();
        }
        let pid = pid.to_string();
        for words in [
            vec!["chrt", "--idle", "-p", "0", &*pid],
            vec!["taskset", "-c", "-p", processor, &*pid],
        ] {
            let mut command = Command::new(words[0]);
            let status = command
                .args(&words[1..])
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{words:?}");
        }
        others
    }

    /// A process that has taken a SIGSTOP under its tracer stops only after the tracer's end, when it gets a processor.
    #[test]
    fn starved_process_is_not_left_stopped() {
        for script in ["sleep 1000; :", "trap : CONT; read x; sleep 1000; :"] {
            let (stdin, hold) = io::pipe().unwrap();
            let mut child = Command::new("sh");
            child.args(["-c", script]).stdin(stdin).process_group(0);
            let mut child = child.spawn().unwrap();
            let id = child.id().cast_signed();
            let is_asleep = || {
                let thread = proc::of(id).thread(id);
                proc::of(id).name().is_ok_and(|name| name == "sh")
                    && thread.state() == Some(State('S'))
                    && thread.system_call().is_some()
            };
            while !is_asleep() {
                std::thread::yield_now();
            }
            let mut gdb = run("cat", "-", Stdio::null(), Stdio::null());
            let (theirs, ours) = io::pipe().unwrap();
            let ours = Watchdog(ours.into());
            ours.keep(gdb.id().cast_signed()).unwrap();
            ours.hold(gdb.id().cast_signed(), id, false).unwrap();
            drop(ours);
            let tracer = std::thread::spawn(move || {
                ptrace::attach(Pid::from_raw(id)).unwrap();
                // A tracer that has waited for the stop has taken the signal from it.
                while proc::of(id).state() != Some(State('t')) {
                    std::thread::yield_now();
                }
                starve(id)
            });
            let others = tracer.join().unwrap();
            // The kernel lets go of the process a moment after it has told of the thread's end.
            while proc::of(id).status().unwrap().tracer().is_some() {
                std::thread::yield_now();
            }
            keep(&theirs.into());
            for mut other in others {
                other.kill().unwrap();
                other.wait().unwrap();
            }
            // A thread that stops does so before it sleeps again.
            let rests = |state| matches!(state, Some(State('S' | 'T')));
            while !rests(proc::of(id).state()) {
                std::thread::yield_now();
            }
            assert_eq!(proc::of(id).state(), Some(State('S')), "{script}");
            drop(hold);
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
            child.wait().unwrap();
            gdb.wait().unwrap();
        }
    }
}
