//! The processes that launchers of this host have started, by their ranks.

use std::collections::{BTreeMap, BTreeSet};

use sdm_hosts::job::{Target, find, is_this_host};

/// Maximum number of searches for the processes of one launcher: they appear a moment after it, or never.
const TRIES_MAX: u32 = 20;

/// The processes found of each launcher, by the launcher's pid.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    launchers: BTreeMap<i32, Known>,
    /// Launchers that were asked for since the last [`Ranks::forget`].
    asked: BTreeSet<i32>,
}

#[derive(Debug)]
enum Known {
    /// All ranks of the launcher were found: their pids, in the order of the ranks.
    All(Vec<i32>),
    /// Number of searches without a result.
    Tried(u32),
}

impl Ranks {
    /// The pids of a launcher's processes on this host, in the order of their ranks; none where not all are known.
    pub(super) fn of(&mut self, launcher: i32, count: u32) -> Option<&[i32]> {
        self.asked.insert(launcher);
        let known = self.launchers.entry(launcher).or_insert(Known::Tried(0));
        if let Known::Tried(tries @ 0..TRIES_MAX) = known {
            *tries += 1;
            if let Some(pids) = look(launcher, count) {
                *known = Known::All(pids);
            }
        }
        match known {
            Known::All(pids) => Some(pids),
            Known::Tried(_) => None,
        }
    }

    /// Removes the launchers that were not queried since the last call: they have ended.
    pub(super) fn forget(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.launchers.retain(|pid, _| asked.contains(pid));
    }
}

fn look(launcher: i32, count: u32) -> Option<Vec<i32>> {
    let job = find(&Target::Pids(vec![launcher])).ok()?;
    let is_whole = job.ranked && job.processes.len() == usize::try_from(count).ok()?;
    let mut in_order = job.processes.iter().zip(0..);
    let are_here = in_order.all(|(it, rank)| is_this_host(&it.host) && it.rank == rank);
    (is_whole && are_here).then(|| job.processes.iter().map(|it| it.pid).collect())
}
