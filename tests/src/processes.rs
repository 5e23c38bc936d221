//! The processes of a session, found from outside, and actions on them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::proc::{self, Process, State};

use crate::run::BOUND;

/// The pids of the servers of the session that `mark` names, by the server's number.
/// The process name of a server contains its number.
#[must_use]
pub fn servers(mark: &str) -> BTreeMap<u32, u32> {
    let found = crate::leftovers::holding(mark);
    let numbered = found
        .into_iter()
        .filter_map(|(pid, _)| Some((server_number(pid)?, pid)));
    numbered.collect()
}

fn server_number(pid: u32) -> Option<u32> {
    name(pid).strip_prefix("sdm-srv-")?.parse().ok()
}

/// The process's folder in `/proc`.
#[must_use]
pub fn of(pid: u32) -> Process {
    proc::of(pid.cast_signed())
}

/// The kernel's name of a process; empty if the process does not exist.
#[must_use]
pub fn name(pid: u32) -> String {
    of(pid).name().unwrap_or_default()
}

/// The parent of a process; `None` if the process does not exist.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    let parent = of(pid).stat().ok()?.parent()?;
    Some(parent.cast_unsigned())
}

/// Pid of the process that traces `pid`; `None` if none does, or `pid` does not exist.
#[must_use]
pub fn tracer(pid: u32) -> Option<u32> {
    let tracer = of(pid).status().ok()?.tracer()?;
    Some(tracer.cast_unsigned())
}

/// All descendants of `root`, zombies included, each with its state.
#[must_use]
pub fn below(root: u32) -> Vec<(u32, State)> {
    let stats: Vec<(u32, u32, State)> = crate::leftovers::all_pids()
        .filter_map(|pid| {
            let stat = of(pid).stat().ok()?;
            Some((pid, stat.parent()?.cast_unsigned(), stat.state()))
        })
        .collect();
    let mut found: Vec<(u32, State)> = Vec::new();
    let mut next = Some(root);
    let mut index = 0;
    while let Some(parent) = next {
        let children = stats.iter().filter(|(_, of, _)| *of == parent);
        found.extend(children.map(|(pid, _, state)| (*pid, *state)));
        next = found.get(index).map(|(pid, _)| *pid);
        index += 1;
    }
    found
}

/// Sends a signal to a process.
///
/// # Panics
/// If there is no such process.
pub fn signal(pid: u32, signal: Signal) {
    let target = Pid::from_raw(pid.try_into().expect("a pid"));
    kill(target, signal).unwrap_or_else(|error| panic!("{signal} to {pid}: {error}"));
}

/// Kills a process that may have ended by itself since it was found.
///
/// # Panics
/// If it may not be killed.
pub fn kill_if_there(pid: u32) {
    let killed = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    assert!(matches!(killed, Ok(()) | Err(Errno::ESRCH)), "{killed:?}");
}

/// Inode numbers of the sockets of a process; empty if the process has ended.
#[must_use]
pub fn sockets(pid: u32) -> Vec<u64> {
    let process = of(pid);
    let numbers = process.descriptors().into_iter().flatten();
    let numbers = numbers.filter_map(|number| u64::try_from(number).ok());
    numbers.filter_map(|it| process.socket(it)).collect()
}

/// The system call in which a thread sleeps, with its arguments; `None` if the thread does not sleep in one.
#[must_use]
pub fn sleeps_in(thread: &Process) -> Option<(i64, [u64; 6])> {
    let call = thread.system_call();
    call.filter(|_| thread.state() == Some(State('S')))
}

/// Waits until a process is in one of these states, given by the letters of `/proc/PID/stat`, or does not exist.
///
/// # Panics
/// If that does not happen in time.
pub fn wait_state(pid: u32, states: &str) {
    let begin = Instant::now();
    let state = || of(pid).state();
    while state().is_some_and(|state| !states.contains(state.0)) {
        assert!(begin.elapsed() < BOUND, "process {pid} is in {:?}", state());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Resident memory of a process now, in bytes.
#[must_use]
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS")
}

/// Maximum resident memory of a process so far, in bytes.
#[must_use]
pub fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM")
}

fn status_bytes(pid: u32, field: &str) -> u64 {
    let status = of(pid).status().ok();
    status.and_then(|it| it.bytes(field)).unwrap_or(0)
}
