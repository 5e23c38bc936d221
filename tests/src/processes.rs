//! The processes of a session, found from outside, and what is done to them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run::BOUND;

/// The servers of the session that `mark` names, by their number, which is in their name.
#[must_use]
pub fn servers(mark: &str) -> BTreeMap<u32, u32> {
    let found = crate::leftovers::holding(mark);
    let numbered = found
        .into_iter()
        .filter_map(|(pid, _)| Some((server_number(pid)?, pid)));
    numbered.collect()
}

fn server_number(pid: u32) -> Option<u32> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    name.trim_end().strip_prefix("sdm-srv-")?.parse().ok()
}

/// Sends a signal to a process.
///
/// # Panics
/// Where there is no such process.
pub fn signal(pid: u32, signal: Signal) {
    let target = Pid::from_raw(pid.try_into().expect("a pid"));
    kill(target, signal).unwrap_or_else(|error| panic!("{signal} to {pid}: {error}"));
}

/// Waits until a process is in one of these states, as `/proc/PID/stat` calls them by letters, or is gone.
///
/// # Panics
/// Where that does not come about.
pub fn wait_state(pid: u32, states: &str) {
    let begin = Instant::now();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    while state().is_some_and(|state| !states.contains(state)) {
        assert!(begin.elapsed() < BOUND, "process {pid} is in {:?}", state());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How much memory a process has in use now, in bytes.
#[must_use]
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// How much memory a process has had in use at most, in bytes.
#[must_use]
pub fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
