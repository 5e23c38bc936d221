//! Waits for the locks of RMA windows, and the ranks that hold them.

use std::collections::BTreeMap;

use sdm_debug::probe::{ArgumentRole, CallArgument, TaskWaits, WindowLock};
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

use super::graph::SetNeed;
use super::members::Members;
use super::wait_for::{Class, Needs, argument, known};

impl Needs {
    /// Adds the waits of ranks for the holders of a window's lock. A rank whose holders are unknown may wait for any
    /// other member.
    pub(super) fn window_lock(
        &mut self,
        probes: &Probes,
        class: &Class<'_>,
        members: &Members<'_>,
    ) {
        use ArgumentRole as R;
        let names_ranks = argument(class, R::Window)
            .and_then(CallArgument::members)
            .is_some();
        // Waiting tasks by window and target rank. The rank is `None` for a lock on all parts of the
        // window.
        let mut wanted: BTreeMap<(i64, Option<u32>), IdSet> = BTreeMap::new();
        let mut unknown = IdSet::new();
        for task in class.tasks.iter() {
            let window = known(probes, class, R::Context, task).filter(|_| names_ranks);
            let target = match argument(class, R::Target) {
                None => Some(None),
                Some(_) => known(probes, class, R::Target, task)
                    .and_then(|rank| u32::try_from(rank).ok())
                    .map(Some),
            };
            match window.zip(target) {
                Some(key) => wanted.entry(key).or_default().insert(task),
                None => unknown.insert(task),
            };
        }
        for ((window, target), who) in wanted {
            let holders = holders(probes, window, target);
            // A rank that holds the lock waits for something else.
            let waiting = who.difference(&holders);
            if holders.is_empty() || waiting.is_empty() {
                unknown.union_with(&who);
                continue;
            }
            unknown.union_with(&who.intersection(&holders));
            self.locks.push((waiting.clone(), holders.clone()));
            self.graph.sets.push(SetNeed {
                who: waiting,
                peers: holders,
                all: true,
                guessed: false,
            });
        }
        self.any_other(&unknown, members);
    }
}

/// The ranks that hold the lock of the window at rank `target`. If `target` is None, the ranks that hold its lock at
/// any rank.
fn holders(probes: &Probes, window: i64, target: Option<u32>) -> IdSet {
    let is_it = |lock: &WindowLock| {
        let is_same = target.is_none() || lock.target.is_none() || lock.target == target;
        lock.window == window && is_same
    };
    let has_it = |waits: &TaskWaits| waits.window_locks.iter().any(is_it);
    let holders = probes.waits.iter().filter(|(_, waits)| has_it(waits));
    IdSet::union_all(holders.map(|(tasks, _)| tasks))
}
