//! Routing policies of other crates: each server's parent, from which the plan follows.

use std::fmt;

use super::as_count;
use crate::message::PlanEntry;

/// Chooses the parent of each server ("PTP new SDM", "different routing policies"); used as [`super::Topology::Own`].
pub trait RoutingPolicy: fmt::Debug + Send + Sync {
    /// Name of the policy, for the user.
    fn name(&self) -> &str;

    /// The parent of each of `servers`, as an index into them; `None` for the master. `home` is the master's host, as
    /// the servers' entries name it, or empty.
    ///
    /// A server with a missing entry or an index out of range becomes the master's child, and so does one server of
    /// each circle.
    fn parents(&self, home: &str, servers: &[PlanEntry]) -> Vec<Option<usize>>;
}

/// Two policies are equal if they are the same object.
impl PartialEq for dyn RoutingPolicy {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn RoutingPolicy {}

/// The plan in preorder of the tree that `parents` describes, as [`RoutingPolicy::parents`] gives it.
pub(super) fn plan(
    root: PlanEntry,
    servers: Vec<PlanEntry>,
    parents: &[Option<usize>],
) -> Vec<PlanEntry> {
    let count = servers.len();
    let mut children = vec![Vec::new(); count];
    let mut top = Vec::new();
    for server in 0..count {
        match parents.get(server).copied().flatten() {
            Some(parent) if parent < count => children[parent].push(server),
            _ => top.push(server),
        }
    }
    let mut servers: Vec<Option<PlanEntry>> = servers.into_iter().map(Some).collect();
    let mut plan = vec![root];
    // The position of each entry's parent in the plan.
    let mut above = vec![0];
    let mut todo: Vec<(usize, usize)> = Vec::new();
    // Servers of circles are not reached from the master: one of each circle becomes its child.
    for first in top.into_iter().chain(0..count) {
        todo.push((first, 0));
        while let Some((server, parent)) = todo.pop() {
            let Some(entry) = servers[server].take() else {
                continue;
            };
            let at = plan.len();
            plan.push(entry);
            above.push(parent);
            todo.extend(children[server].iter().rev().map(|child| (*child, at)));
        }
    }
    let mut sizes = vec![1; plan.len()];
    for at in (1..plan.len()).rev() {
        sizes[above[at]] += sizes[at];
    }
    for (entry, size) in plan.iter_mut().zip(sizes) {
        entry.subtree_count = as_count(size);
    }
    plan
}

#[cfg(test)]
mod tests {
    use sdm_idset::{IdSet, TaskId};

    use super::*;
    use crate::ids::ServerId;
    use crate::message::Addresses;
    use crate::topology::{Topology, height};

    /// A policy that returns these parents.
    #[derive(Debug)]
    struct Given(Vec<Option<usize>>);

    impl RoutingPolicy for Given {
        fn name(&self) -> &str {
            "given"
        }

        fn parents(&self, _home: &str, _servers: &[PlanEntry]) -> Vec<Option<usize>> {
            self.0.clone()
        }
    }

    /// Servers of a plan with the sizes of their subtrees.
    fn planned(count: u32, parents: Vec<Option<usize>>) -> Vec<(u32, u32)> {
        let entry = |server| PlanEntry {
            server,
            subtree_count: 0,
            tasks: IdSet::single(TaskId(server.0)),
            host: "".into(),
            addresses: Addresses::default(),
        };
        let policy = Topology::Own(Box::leak(Box::new(Given(parents))));
        assert_eq!(policy.to_string(), "given");
        let servers = (0..count).map(|id| entry(ServerId(id))).collect();
        let plan = policy.plan(entry(ServerId::MASTER), servers);
        assert!(height(&plan).is_some(), "{plan:?}");
        let rows = plan.iter().skip(1);
        rows.map(|it| (it.server.0, it.subtree_count)).collect()
    }

    #[test]
    fn plan_follows_the_parents_of_a_policy() {
        let chain = vec![None, Some(0), Some(1)];
        assert_eq!(planned(3, chain), [(0, 3), (1, 2), (2, 1)]);
        let backwards = vec![Some(2), Some(2), None];
        assert_eq!(planned(3, backwards), [(2, 3), (0, 1), (1, 1)]);
        assert_eq!(planned(0, vec![Some(1)]), []);
    }

    #[test]
    fn server_without_a_path_becomes_a_child_of_the_master() {
        assert_eq!(planned(2, vec![]), [(0, 1), (1, 1)]);
        assert_eq!(planned(2, vec![Some(7), None]), [(0, 1), (1, 1)]);
        let circle = vec![Some(2), None, Some(0), Some(3)];
        assert_eq!(planned(4, circle), [(1, 1), (0, 2), (2, 1), (3, 1)]);
    }
}
