//! Topologies: the policy that arranges members into a tree, and the plan that it gives. Pure arithmetic.
//!
//! A plan is a tree in preorder with the size of every subtree. Any subtree is a run of
//! neighbouring entries, so a child's slice of the plan is a sub-slice without a copy.

mod policy;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use sdm_idset::IdSet;

use crate::message::PlanEntry;
pub use policy::RoutingPolicy;

/// Arrangement of the servers below the master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topology {
    /// A binomial tree over positions; position 0 is the master. The children of position p are p + 2^k, for all powers
    /// 2^k below the lowest set bit of p; position 0 has all powers. The subtree of child p + 2^k is the positions from
    /// there to p + 2^(k+1) - 1.
    Binomial,
    /// Every member has at most this many children (1 or more), with subtrees of equal size as far as possible.
    Kary(u32),
    /// Every server is a child of the master.
    Flat,
    /// A binomial tree of one server of each host. Below that server the other servers of its host form a tree as in
    /// [`Topology::Kary`], with this many children (1 or more). On the master's host the master takes the place of that
    /// server.
    ByHost(u32),
    /// The arrangement of a routing policy of another crate.
    Own(&'static dyn RoutingPolicy),
}

/// Maximum number of children of a member on its own host. The fastest of 8 to 128 for 64 to 1024 servers of one
/// machine, where the cost is the number of processes that wake up one after another (docs/performance.md).
pub const HOST_FANOUT: u32 = 32;

impl Default for Topology {
    /// By host: between hosts a binomial tree has the least waiting, and within a host few hops matter most.
    fn default() -> Self {
        Self::ByHost(HOST_FANOUT)
    }
}

impl Topology {
    /// Arranges the servers: the plan's first entry is `root`, and all of `servers` are below it.
    ///
    /// Servers keep their order except under [`Topology::ByHost`], which brings those of a host
    /// together, and under [`Topology::Own`]. The `subtree_count` given in the entries does not matter; it is set here.
    #[must_use]
    pub fn plan(self, root: PlanEntry, servers: Vec<PlanEntry>) -> Vec<PlanEntry> {
        self.plan_at("", root, servers)
    }

    /// Like [`Topology::plan`], for a master on the host `home`, which is named as the servers' entries name it. Under
    /// [`Topology::ByHost`] the servers of that host form a tree whose root is the master. `home` is empty if the host
    /// is unknown.
    #[must_use]
    pub fn plan_at(self, home: &str, root: PlanEntry, servers: Vec<PlanEntry>) -> Vec<PlanEntry> {
        let (servers, counts) = match self {
            Self::Own(policy) => {
                let parents = policy.parents(home, &servers);
                return policy::plan(root, servers, &parents);
            }
            Self::ByHost(fanout) => {
                let servers = by_host(home, servers);
                let counts = host_counts(home, fanout, &servers);
                (servers, counts)
            }
            _ => {
                let counts = self.subtree_counts(servers.len() + 1);
                (servers, counts)
            }
        };
        let mut plan = Vec::with_capacity(servers.len() + 1);
        plan.push(root);
        plan.extend(servers);
        for (entry, count) in plan.iter_mut().zip(counts) {
            entry.subtree_count = count;
        }
        plan
    }

    /// The subtree sizes, in preorder, of a tree of `count` members.
    fn subtree_counts(self, count: usize) -> Vec<u32> {
        let mut counts = Vec::with_capacity(count);
        let mut todo = vec![count];
        while let Some(size) = todo.pop() {
            counts.push(as_count(size));
            let children = self.child_sizes(size);
            todo.extend(children.into_iter().rev());
        }
        counts
    }

    /// The subtree sizes of the children of a member whose own subtree has `size` members.
    fn child_sizes(self, size: usize) -> Vec<usize> {
        let below = size - 1;
        match self {
            Self::Flat => vec![1; below],
            Self::Kary(arity) => {
                let arity = (arity.max(1) as usize).min(below);
                (0..arity)
                    .map(|k| below / arity + usize::from(k < below % arity))
                    .collect()
            }
            Self::Binomial | Self::ByHost(_) | Self::Own(_) => {
                let powers = (0..usize::BITS).map(|k| 1usize << k);
                powers
                    .take_while(|&at| at < size)
                    .map(|at| at.min(size - at))
                    .collect()
            }
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binomial => f.write_str("binomial"),
            Self::Kary(arity) => write!(f, "kary:{arity}"),
            Self::Flat => f.write_str("flat"),
            Self::ByHost(HOST_FANOUT) => f.write_str("by-host"),
            Self::ByHost(fanout) => write!(f, "by-host:{fanout}"),
            Self::Own(policy) => f.write_str(policy.name()),
        }
    }
}

/// A text that names no topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "topology '{text}': expected by-host, by-host:K or kary:K with K of 1 or more, binomial or flat"
)]
pub struct TopologyError {
    /// The text that did not parse.
    pub text: String,
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let bad = || TopologyError {
            text: text.to_owned(),
        };
        match text {
            "binomial" => Ok(Self::Binomial),
            "flat" => Ok(Self::Flat),
            "by-host" => Ok(Self::default()),
            _ => {
                let (kind, arity) = text.split_once(':').ok_or_else(bad)?;
                match (kind, arity.parse()) {
                    ("kary", Ok(arity @ 1..)) => Ok(Self::Kary(arity)),
                    ("by-host", Ok(fanout @ 1..)) => Ok(Self::ByHost(fanout)),
                    _ => Err(bad()),
                }
            }
        }
    }
}

/// The children of the member that a slice begins with, as runs of the slice.
///
/// `None` for a slice that is not a tree (sizes that do not add up): the peer's error.
#[must_use]
pub fn child_runs(slice: &[PlanEntry]) -> Option<Vec<Range<usize>>> {
    let first = slice.first()?;
    if first.subtree_count as usize != slice.len() {
        return None;
    }
    let mut runs = Vec::new();
    let mut at = 1;
    while at < slice.len() {
        let count = slice[at].subtree_count as usize;
        if count == 0 || count > slice.len() - at {
            return None;
        }
        runs.push(at..at + count);
        at += count;
    }
    Some(runs)
}

/// As [`child_runs`], but the largest subtree first: it takes longest, so it is sent to first.
#[must_use]
pub fn child_runs_by_size(slice: &[PlanEntry]) -> Option<Vec<Range<usize>>> {
    let mut runs = child_runs(slice)?;
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    Some(runs)
}

/// The height of the tree in a slice: 0 for a member without children.
///
/// Walks the whole slice once. `None` if it is not a tree because a member's size does not
/// add up: the peer's error.
#[must_use]
pub fn height(slice: &[PlanEntry]) -> Option<u32> {
    if slice.first()?.subtree_count as usize != slice.len() {
        return None;
    }
    let mut open: Vec<usize> = Vec::new();
    let mut deepest = 0;
    for (at, entry) in slice.iter().enumerate() {
        while open.last().is_some_and(|&end| end <= at) {
            open.pop();
        }
        let end = at.checked_add(entry.subtree_count as usize)?;
        if end == at || end > *open.last().unwrap_or(&slice.len()) {
            return None;
        }
        deepest = deepest.max(open.len());
        open.push(end);
    }
    Some(as_count(deepest))
}

/// The tasks of a slice; `None` if a task has two owners: the peer's error.
#[must_use]
pub fn tasks(slice: &[PlanEntry]) -> Option<IdSet> {
    let all = IdSet::union_all(slice.iter().map(|entry| &entry.tasks));
    let count: u64 = slice.iter().map(|entry| entry.tasks.len()).sum();
    (count == all.len()).then_some(all)
}

/// Groups the servers by host, hosts in the order of their first server, the master's host first.
fn by_host(home: &str, servers: Vec<PlanEntry>) -> Vec<PlanEntry> {
    let mut order = std::collections::HashMap::from([(Arc::from(home), 0)]);
    let mut keyed: Vec<(usize, PlanEntry)> = Vec::with_capacity(servers.len());
    for server in servers {
        let next = order.len();
        let host = *order.entry(Arc::clone(&server.host)).or_insert(next);
        keyed.push((host, server));
    }
    keyed.sort_by_key(|(host, _)| *host);
    keyed.into_iter().map(|(_, server)| server).collect()
}

/// Subtree sizes for servers grouped by host, those of `home` first: hosts form a binomial tree below the master, and
/// the members of a host a tree of this fan-out below its first one, which is the master at `home`.
fn host_counts(home: &str, fanout: u32, servers: &[PlanEntry]) -> Vec<u32> {
    let within = |members: usize| Topology::Kary(fanout).subtree_counts(members);
    let near = servers.iter().take_while(|server| &*server.host == home);
    let near = if home.is_empty() { 0 } else { near.count() };
    let sizes: Vec<usize> = servers[near..]
        .chunk_by(|a, b| a.host == b.host)
        .map(<[PlanEntry]>::len)
        .collect();
    let hosts = Topology::Binomial.subtree_counts(sizes.len() + 1);
    let mut counts = within(near + 1);
    counts[0] = as_count(servers.len() + 1);
    for (host, &size) in sizes.iter().enumerate() {
        let subtree = &sizes[host..host + hosts[host + 1] as usize];
        let first = counts.len();
        counts.extend(within(size));
        counts[first] = as_count(subtree.iter().sum());
    }
    counts
}

fn as_count(count: usize) -> u32 {
    u32::try_from(count).expect("a plan has at most SERVERS_MAX entries")
}

#[cfg(test)]
mod tests {
    use sdm_idset::TaskId;

    use super::*;
    use crate::ids::ServerId;
    use crate::message::Addresses;

    fn entry(server: u32, host: &str) -> PlanEntry {
        PlanEntry {
            server: ServerId(server),
            subtree_count: 0,
            tasks: IdSet::single(TaskId(server)),
            host: host.into(),
            addresses: Addresses::default(),
        }
    }

    fn plan(topology: Topology, count: u32) -> Vec<PlanEntry> {
        let mut root = entry(0, "");
        root.server = ServerId::MASTER;
        let servers = (0..count)
            .map(|id| entry(id, &format!("h{}", id % 5)))
            .collect();
        topology.plan(root, servers)
    }

    /// Walks a slice as members do; gives each server's parent position.
    fn walk(slice: &[PlanEntry], base: usize, parents: &mut [Option<usize>]) {
        let runs = child_runs(slice).expect("a plan is a tree");
        for run in runs {
            assert_eq!(parents[base + run.start], None, "one parent each");
            parents[base + run.start] = Some(base);
            walk(&slice[run.clone()], base + run.start, parents);
        }
    }

    #[test]
    fn every_server_has_one_parent_at_every_size() {
        let kinds = [
            Topology::Binomial,
            Topology::Kary(1),
            Topology::Kary(2),
            Topology::Kary(16),
            Topology::Flat,
            Topology::ByHost(3),
            Topology::ByHost(HOST_FANOUT),
        ];
        let sizes = (0..=130).chain([255, 256, 257, 1000, 1024, 2048]);
        for (kind, size) in kinds
            .iter()
            .flat_map(|kind| sizes.clone().map(move |s| (*kind, s)))
        {
            let plan = plan(kind, size);
            let mut parents = vec![None; plan.len()];
            walk(&plan, 0, &mut parents);
            assert!(parents[1..].iter().all(Option::is_some), "{kind} {size}");
            let mut servers: Vec<u32> = plan[1..].iter().map(|entry| entry.server.0).collect();
            servers.sort_unstable();
            assert_eq!(servers, (0..size).collect::<Vec<_>>(), "{kind} {size}");
        }
    }

    #[test]
    fn binomial_children_are_at_powers_of_two() {
        let plan = plan(Topology::Binomial, 12);
        let mut parents = vec![None; plan.len()];
        walk(&plan, 0, &mut parents);
        for (position, parent) in parents.iter().enumerate().skip(1) {
            let highest_removed = position - (1 << lowest_set_bits_parent(position));
            assert_eq!(*parent, Some(highest_removed), "position {position}");
        }
    }

    /// The child p + 2^k covers [p + 2^k, p + 2^(k+1)): its own children are at smaller powers
    /// than k, so a position's parent is itself without its lowest set bit.
    fn lowest_set_bits_parent(position: usize) -> u32 {
        position.trailing_zeros()
    }

    #[test]
    fn tree_height_follows_the_topology() {
        for (kind, count, expect) in [
            (Topology::Binomial, 0, 0),
            (Topology::Binomial, 1, 1),
            (Topology::Binomial, 7, 3),
            (Topology::Binomial, 8, 3),
            (Topology::Binomial, 1023, 10),
            (Topology::Kary(1), 5, 5),
            (Topology::Kary(2), 6, 2),
            (Topology::Flat, 100, 1),
        ] {
            assert_eq!(height(&plan(kind, count)), Some(expect), "{kind} {count}");
        }
    }

    #[test]
    fn servers_of_a_host_share_a_subtree() {
        let plan = plan(Topology::ByHost(2), 23);
        let hosts: Vec<&str> = plan[1..].iter().map(|entry| &*entry.host).collect();
        assert_eq!(hosts.chunk_by(|a, b| a == b).count(), 5);
    }

    /// The sizes of the subtrees of 12 servers on 3 hosts, whose master is at `home`.
    fn check_hosts(fanout: u32, home: &str, expect: &[u32]) {
        let servers = (0..12).map(|id| entry(id, &format!("h{}", id % 3)));
        let plan = Topology::ByHost(fanout).plan_at(home, entry(0, ""), servers.collect());
        let counts: Vec<u32> = plan.iter().map(|entry| entry.subtree_count).collect();
        assert_eq!(counts, expect, "{fanout} {home}");
        let first_host = if home.is_empty() { "h0" } else { home };
        assert_eq!(&*plan[1].host, first_host);
    }

    #[test]
    fn hosts_form_a_binomial_tree_of_wide_subtrees() {
        // Of the three hosts the first is alone, the second has the third below it.
        check_hosts(32, "", &[13, 4, 1, 1, 1, 8, 1, 1, 1, 4, 1, 1, 1]);
        check_hosts(2, "", &[13, 4, 2, 1, 1, 8, 2, 1, 1, 4, 2, 1, 1]);
        check_hosts(32, "h1", &[13, 1, 1, 1, 1, 4, 1, 1, 1, 4, 1, 1, 1]);
        check_hosts(2, "h1", &[13, 2, 1, 2, 1, 4, 2, 1, 1, 4, 2, 1, 1]);
    }

    #[test]
    fn largest_subtree_is_sent_to_first() {
        let plan = plan(Topology::Binomial, 12);
        let runs = child_runs_by_size(&plan).expect("a tree");
        let sizes: Vec<usize> = runs.iter().map(Range::len).collect();
        assert_eq!(sizes, [5, 4, 2, 1]);
    }

    #[test]
    fn topology_text_is_parsed_back() {
        for text in ["binomial", "kary:3", "flat", "by-host", "by-host:4"] {
            assert_eq!(
                text.parse::<Topology>().map(|t| t.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            "kary",
            "kary:0",
            "kary:-1",
            "by-host:0",
            "flat:2",
            "ring",
        ] {
            assert!(text.parse::<Topology>().is_err(), "{text}");
        }
    }

    #[test]
    fn slice_that_is_no_tree_is_refused() {
        let mut slice = plan(Topology::Binomial, 6);
        slice[2].subtree_count = 40;
        assert_eq!(child_runs(&slice), None);
        slice[2].subtree_count = 0;
        assert_eq!(child_runs(&slice), None);
        assert_eq!(child_runs(&slice[1..1]), None);
        assert_eq!(height(&slice), None);
        // A fault further down is found too.
        let mut slice = plan(Topology::Kary(1), 6);
        slice[3].subtree_count += 1;
        assert!(child_runs(&slice).is_some());
        assert_eq!(height(&slice), None);
    }
}
