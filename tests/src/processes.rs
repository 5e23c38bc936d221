//! The processes of a session, found from outside, and what is done to them.

use std::collections::BTreeMap;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The servers of the session that `mark` names, by their number: what they were started with
/// stays readable in `/proc`, although they take it out of their environment; those that were forked have it
/// in their name.
#[must_use]
pub fn servers(mark: &str) -> BTreeMap<u32, u32> {
    let found = crate::leftovers::holding(mark);
    let numbered = found
        .into_iter()
        .filter_map(|(pid, _)| Some((server_number(pid)?, pid)));
    numbered.collect()
}

/// The servers that were started in `directory`, by their number: for a start that is not over.
#[must_use]
pub fn servers_in(directory: &Path) -> BTreeMap<u32, u32> {
    let all = crate::leftovers::all_pids();
    let there = all.filter(|pid| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
    });
    there
        .filter_map(|pid| Some((server_number(pid)?, pid)))
        .collect()
}

fn server_number(pid: u32) -> Option<u32> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    if let Some(number) = name.trim_end().strip_prefix("sdm-srv-") {
        return number.parse().ok();
    }
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SDM_SERVER_ID="))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Sends a signal to a process.
///
/// # Panics
/// Where there is no such process.
pub fn signal(pid: u32, signal: Signal) {
    let target = Pid::from_raw(pid.try_into().expect("a pid"));
    kill(target, signal).unwrap_or_else(|error| panic!("{signal} to {pid}: {error}"));
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

/// The TCP port at which a process listens, over IPv4.
///
/// # Panics
/// Where it listens at none.
#[must_use]
pub fn listening_port(pid: u32) -> u16 {
    let sockets = sockets(pid);
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let mut ports = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = fields.get(1)?.split_once(':')?;
        let listens = *fields.get(3)? == "0A" && sockets.contains(&(*fields.get(9)?).to_owned());
        listens.then(|| u16::from_str_radix(port, 16).ok())?
    });
    ports
        .next()
        .unwrap_or_else(|| panic!("process {pid} does not listen"))
}

/// The inodes of a process's sockets.
fn sockets(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect()
}
