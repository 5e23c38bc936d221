//! The kernel's data about processes: memory, processor time, context switches.

use std::fs;
use std::time::Duration;

use sdm_system::proc::{self, Process, Status};

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

fn of(pid: u32) -> Process {
    proc::of(pid.cast_signed())
}

/// The number of a server, which is in its name.
fn server_number(pid: u32) -> Option<u32> {
    let name = of(pid).name().ok()?;
    name.strip_prefix("sdm-srv-")?.parse().ok()
}

/// Memory of a process, in kB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident, shared pages counted whole.
    pub rss: u64,
    /// Resident, shared pages divided by how many share them.
    pub pss: u64,
}

/// Memory of all these processes together.
#[must_use]
pub fn memory(pids: &[u32]) -> Memory {
    let mut sum = Memory::default();
    for pid in pids {
        let text = fs::read_to_string(of(*pid).path("smaps_rollup")).unwrap_or_default();
        let fields = Status::parse(&text);
        let kilobytes = |name| fields.bytes(name).unwrap_or(0) >> 10;
        sum.rss += kilobytes("Rss");
        sum.pss += kilobytes("Pss");
    }
    sum
}

/// Number of context switches of these processes since they began, voluntary or not.
#[must_use]
pub fn switches(pids: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let status = of(*pid).status().ok();
        let count = |name| status.as_ref()?.number::<u64>(name);
        let names = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        names.into_iter().filter_map(count).sum::<u64>()
    };
    pids.iter().map(of).sum()
}

/// Processor time of all these processes since they began.
#[must_use]
pub fn cpu(pids: &[u32]) -> Duration {
    let of = |pid: &u32| {
        let text = fs::read_to_string(of(*pid).path("schedstat")).unwrap_or_default();
        let nanos = text
            .split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    };
    pids.iter().map(of).sum()
}

/// The pids among these whose program has this name.
#[must_use]
pub fn named(pids: &[u32], name: &str) -> Vec<u32> {
    let is_named = |pid: &&u32| {
        let called = of(**pid).name().unwrap_or_default();
        called == name.get(..15).unwrap_or(name)
    };
    pids.iter().filter(is_named).copied().collect()
}

/// All processes below this one.
#[must_use]
pub fn descendants() -> Vec<u32> {
    let pids = proc::pids().into_iter().flatten().map(i32::cast_unsigned);
    let parent = |pid| Some(of(pid).stat().ok()?.parent()?.cast_unsigned());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| pid));
        at += 1;
    }
    found.split_off(1)
}

/// Processor time of all threads of these processes, and of their ended children.
#[must_use]
pub fn cpu_with_threads(pids: &[u32]) -> Duration {
    let ticks = |pid: &u32| {
        let stat = of(*pid).stat().ok();
        // User and system time of the process, then of its children.
        let times = (14..=17).filter_map(|number| stat.as_ref()?.field::<u64>(number));
        times.sum::<u64>()
    };
    // USER_HZ is 100 on every Linux.
    Duration::from_millis(10 * pids.iter().map(ticks).sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_time_of_own_process_are_read() {
        let own = [std::process::id()];
        let memory = memory(&own);
        assert!(memory.rss > 0 && memory.pss > 0 && memory.pss <= memory.rss);
        assert!(cpu(&own) > Duration::ZERO);
    }
}
