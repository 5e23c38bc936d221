//! The processes that launchers of this host have started, by their ranks.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sdm_hosts::job::{Target, find, is_this_host};

use super::record;

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
    /// The pids of a launcher's processes on this host, in the order of their ranks; `None` if not all are known. They
    /// are recorded in the job's `folder`, so that they are known after the launcher has ended.
    pub(super) fn of(
        &mut self,
        folder: &Path,
        launcher: i32,
        runs: bool,
        count: u32,
    ) -> Option<&[i32]> {
        self.asked.insert(launcher);
        match self.found.entry(launcher) {
            Entry::Occupied(found) => Some(found.into_mut()),
            Entry::Vacant(room) => {
                let recorded = record::ranks(folder);
                if !recorded.is_empty() {
                    return Some(room.insert(recorded));
                }
                let found = runs.then(|| look(launcher, count)).flatten()?;
                // Without the record they are looked for again.
                let _ = record::set_ranks(folder, &found);
                Some(room.insert(found))
            }
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
    // A process without ranks below it stands for itself.
    let are_started = job.processes.iter().all(|it| it.pid != launcher);
    (is_whole && are_here && are_started).then(|| job.processes.iter().map(|it| it.pid).collect())
}
