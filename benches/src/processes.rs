//! What the kernel says of processes: memory, processor time, context switches.

use std::fs;
use std::time::Duration;

/// The servers below this process, each with its number.
#[must_use]
pub fn servers() -> Vec<(u32, u32)> {
    let numbered = |pid| Some((server_number(pid)?, pid));
    descendants().into_iter().filter_map(numbered).collect()
}

/// The process ids of the servers below this process.
#[must_use]
pub fn server_pids() -> Vec<u32> {
    servers().into_iter().map(|(_, pid)| pid).collect()
}

/// The number of a server, which is in its name.
fn server_number(pid: u32) -> Option<u32> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    name.trim_end().strip_prefix("sdm-srv-")?.parse().ok()
}

/// Memory of a process, in kB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident.
    pub rss: u64,
    /// Resident, shared pages divided by how many share them.
    pub pss: u64,
}

/// What all these processes together take.
#[must_use]
pub fn memory(pids: &[u32]) -> Memory {
    let mut sum = Memory::default();
    for pid in pids {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        sum.rss += field(&text, "Rss:");
        sum.pss += field(&text, "Pss:");
    }
    sum
}

/// How often these processes went to sleep or were made to wait, since they began.
#[must_use]
pub fn switches(pids: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        field(&text, "voluntary_ctxt_switches:") + field(&text, "nonvoluntary_ctxt_switches:")
    };
    pids.iter().map(of).sum()
}

/// Processor time of all these processes since they began.
#[must_use]
pub fn cpu(pids: &[u32]) -> Duration {
    let of = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        let nanos = text
            .split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    };
    pids.iter().map(of).sum()
}

/// Those of these processes whose program has this name.
#[must_use]
pub fn named(pids: &[u32], name: &str) -> Vec<u32> {
    let is_named = |pid: &&u32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm.trim_end() == name.get(..15).unwrap_or(name)
    };
    pids.iter().filter(is_named).copied().collect()
}

/// All processes below this one.
#[must_use]
pub fn descendants() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid| Some((pid, stat_fields(pid)?.get(1)?.parse().ok()?)))
        .collect();
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| pid));
        at += 1;
    }
    found.split_off(1)
}

/// Processor time of all threads of these processes, and of their children that are gone.
#[must_use]
pub fn cpu_with_threads(pids: &[u32]) -> Duration {
    let ticks = |pid: &u32| {
        let fields = stat_fields(*pid).unwrap_or_default();
        let times = fields.get(11..15).unwrap_or_default();
        let times = times.iter().filter_map(|text| text.parse::<u64>().ok());
        times.sum::<u64>()
    };
    // USER_HZ is 100 on every Linux.
    Duration::from_millis(10 * pids.iter().map(ticks).sum::<u64>())
}

/// What `/proc/PID/stat` says behind the name: state, parent, ...
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &stat[stat.rfind(')')? + 1..];
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_time() {
        let own = [std::process::id()];
        let memory = memory(&own);
        assert!(memory.rss > 0 && memory.pss > 0 && memory.pss <= memory.rss);
        assert!(cpu(&own) > Duration::ZERO);
    }
}
