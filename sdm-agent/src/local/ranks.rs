//! The processes that launchers of this host have started, by their ranks.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use sdm_hosts::job::{Target, find, is_this_host};

/// The processes that launchers have started, by the launcher's pid.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Pids of all ranks of a launcher, in the order of the ranks. A launcher has no entry until all were found: it may
    /// start them late, for example after its input.
    found: BTreeMap<i32, Vec<i32>>,
    /// Launchers that were queried since the last [`Ranks::forget`].
    asked: BTreeSet<i32>,
}

impl Ranks {
    /// The pids of a launcher's processes on this host, in the order of their ranks; `None` if not all are known.
    pub(super) fn of(&mut self, launcher: i32, count: u32) -> Option<&[i32]> {
        self.asked.insert(launcher);
        match self.found.entry(launcher) {
            Entry::Occupied(found) => Some(found.into_mut()),
            Entry::Vacant(room) => Some(room.insert(look(launcher, count)?)),
        }
    }

    /// Removes the launchers that were not queried since the last call: they have ended.
    pub(super) fn forget(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.found.retain(|pid, _| asked.contains(pid));
    }
}

fn look(launcher: i32, count: u32) -> Option<Vec<i32>> {
    let job = find(&Target::Pids(vec![launcher])).ok()?;
    let is_whole = job.ranked && job.processes.len() == usize::try_from(count).ok()?;
    let mut in_order = job.processes.iter().zip(0..);
    let are_here = in_order.all(|(it, rank)| is_this_host(&it.host) && it.rank == rank);
    (is_whole && are_here).then(|| job.processes.iter().map(|it| it.pid).collect())
}
