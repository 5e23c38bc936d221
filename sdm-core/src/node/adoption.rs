//! Ownership of subtrees after a fault: adopting, handing over, and following the plan.
//!
//! The plan that the parent sent last is binding. A member whose children were adopted by its parent gets a
//! smaller plan and drops the children that are not in it. An adopted member gets the plan of its present
//! subtree, and connects to the members in it that are not its children yet.

use sdm_idset::IdSet;

use super::links::{Child, leaf_slice, tasks_of};
use super::{Action, Node};
use crate::ids::Epoch;
use crate::message::{PlanEntry, Slice};
use crate::topology;

impl Node {
    /// Adopts the children of a child that does not answer; the child becomes a leaf.
    pub(super) fn adopt_children_of(&mut self, at: usize) {
        let child = &mut self.children[at];
        let slice = child.slice_now();
        let runs = topology::child_runs_by_size(&slice).expect("checked when the plan came");
        let epoch = child.epoch.next();
        let reach = child.reach.clone();
        child.become_leaf();
        if !runs.is_empty() {
            let from = child.server();
            tracing::info!(me = %self.me, children = runs.len(), "this server connects to the children of {from}, which does not answer");
        }
        for run in runs {
            let below = slice.run(run);
            let behind = tasks_of(&below).intersection(&reach);
            if !behind.is_empty() {
                self.adopt(below, behind, epoch);
            }
        }
    }

    fn adopt(&mut self, slice: Slice, reach: IdSet, epoch: Epoch) {
        self.add_child(Child::new(slice, reach, epoch));
    }

    /// Applies a new plan to the children. Links to children outside the plan are closed. Children that are partly
    /// within it get a smaller plan. Returns the indices of those with a link, to which it was sent.
    pub(super) fn narrow_children(&mut self, all: &IdSet) -> Vec<usize> {
        let mut narrowed = Vec::new();
        let mut at = 0;
        while at < self.children.len() {
            let child = &mut self.children[at];
            if child.reach.is_subset(all) {
                at += 1;
                continue;
            }
            child.reach.intersect_with(all);
            if child.reach.is_empty() {
                let child = self.children.remove(at);
                self.actions.push_back(match child.link() {
                    Some(link) => Action::Close(link),
                    None => Action::StopConnecting(child.server()),
                });
                continue;
            }
            child.slice = child.slice_now();
            if let Some(link) = child.link() {
                let slice = child.slice.clone();
                self.send_plan(link, &slice);
                narrowed.push(at);
            }
            at += 1;
        }
        narrowed
    }

    /// Adopts the members of a new plan that this member does not have below it. An earlier parent had adopted them,
    /// and is not their parent any more.
    pub(super) fn hold_planned(&mut self, slice: &Slice) {
        let held = self.reach();
        let mut at = 1;
        while at < slice.len() {
            let entry = &slice[at];
            let known = self.children.iter().any(|c| c.server() == entry.server);
            if known || entry.tasks.is_subset(&held) {
                at += 1;
                continue;
            }
            let below = slice.run(at..at + entry.subtree_count as usize);
            let tasks = tasks_of(&below);
            if tasks.is_disjoint(&held) {
                at += below.len();
                self.adopt(below, tasks, Epoch(2));
            } else {
                at += 1;
                self.adopt(leaf_slice(entry), entry.tasks.clone(), Epoch(2));
            }
        }
    }
}

/// The present state of a slice: members outside `reach` are removed, and members that own tasks of `alone` have
/// no children. The first member of the slice has adopted those children.
pub(super) fn slice_now(slice: &Slice, reach: &IdSet, alone: &IdSet) -> Slice {
    let is_alone = |entry: &PlanEntry| !entry.tasks.is_disjoint(alone);
    let stays = |entry: &PlanEntry| entry.tasks.is_empty() || !entry.tasks.is_disjoint(reach);
    if slice[1..]
        .iter()
        .all(|entry| stays(entry) && !is_alone(entry))
    {
        return slice.clone();
    }
    let mut before = Vec::with_capacity(slice.len() + 1);
    let mut count = 0;
    before.push(count);
    for (at, entry) in slice.iter().enumerate() {
        count += u32::from(at == 0 || stays(entry));
        before.push(count);
    }
    let entries = slice.iter().enumerate();
    let left = entries.filter(|(at, entry)| *at == 0 || stays(entry));
    let left = left.map(|(at, entry)| {
        let end = at + entry.subtree_count as usize;
        let subtree_count = if at > 0 && is_alone(entry) {
            1
        } else {
            before[end] - before[at]
        };
        PlanEntry {
            subtree_count,
            ..entry.clone()
        }
    });
    Slice::new(left.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ServerId;
    use crate::message::Addresses;
    use crate::topology::Topology;

    fn plan(count: u32) -> Slice {
        let servers = (0..count).map(|id| PlanEntry {
            server: ServerId(id),
            subtree_count: 0,
            tasks: IdSet::from_range(id..=id),
            host: "".into(),
            addresses: Addresses::default(),
        });
        let mut servers: Vec<PlanEntry> = servers.collect();
        let root = servers.remove(0);
        Slice::new(Topology::Binomial.plan(root, servers))
    }

    /// A slice as `server:subtree size`.
    fn check(reach: &str, alone: &str, expect: &str) {
        let slice = slice_now(&plan(8), &reach.parse().unwrap(), &alone.parse().unwrap());
        let text: Vec<String> = slice
            .iter()
            .map(|entry| format!("{}:{}", entry.server.0, entry.subtree_count))
            .collect();
        assert_eq!(text.join(" "), expect);
        assert!(topology::child_runs(&slice).is_some());
    }

    #[test]
    fn slice_is_reduced_to_surviving_servers() {
        check("0-7", "", "0:8 1:1 2:2 3:1 4:4 5:1 6:2 7:1");
        check("0-3,5-7", "", "0:7 1:1 2:2 3:1 5:1 6:2 7:1");
        check("0-7", "4", "0:8 1:1 2:2 3:1 4:1 5:1 6:2 7:1");
        check("0,2,6", "2", "0:3 2:1 6:1");
        check("0", "", "0:1");
    }
}
