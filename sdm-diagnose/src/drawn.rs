//! The waits as a graph that can be drawn: a node for each group of tasks that wait alike, not for each task.

use std::collections::BTreeMap;

use sdm_idset::{IdSet, TaskId};
use serde_json::{Value, json};

use super::{Diagnosis, Kind};

/// Maximum number of nodes; a graph with more is unreadable.
pub(crate) const NODES_MAX: usize = 60;

impl Diagnosis {
    /// The waits between groups of ranks, as the record `diagnosis` has them.
    #[must_use]
    pub fn graph_to_json(&self) -> Value {
        let nodes = nodes(self);
        let edges = edges(self, &nodes).into_iter();
        let edges =
            edges.map(|((from, to), waits)| json!({ "from": from, "to": to, "waits": waits }));
        let nodes = nodes.iter().map(|node| {
            json!({
                "tasks": node.tasks.to_string(),
                "count": node.tasks.len(),
                "kind": node.kind.name(),
                "what": node.what,
            })
        });
        json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "edges": edges.collect::<Vec<_>>(),
            "circles": short_circles(self),
        })
    }
}

/// The cycles whose ranks become nodes of their own, as long as there is room. The cycle of the verdict is first.
fn short_circles(found: &Diagnosis) -> Vec<Vec<u32>> {
    let more = match found.circle.is_empty() {
        true => Vec::new(),
        false => found.graph.reduce().circles,
    };
    let mut room = NODES_MAX / 2;
    let mut circles = vec![found.circle.clone()];
    circles.extend(more);
    circles.retain(|circle| {
        let fits = !circle.is_empty() && circle.len() <= room;
        room -= if fits { circle.len() } else { 0 };
        fits
    });
    circles
}

/// Tasks that wait alike.
pub(crate) struct Drawn<'a> {
    pub(crate) tasks: IdSet,
    pub(crate) what: &'a str,
    pub(crate) kind: Kind,
}

/// The nodes: the groups of the findings. Each rank of a short cycle is a node of its own.
pub(crate) fn nodes(found: &Diagnosis) -> Vec<Drawn<'_>> {
    let circles = short_circles(found);
    let circle = circles.iter().flatten();
    let circle: Vec<IdSet> = circle.map(|rank| IdSet::single(TaskId(*rank))).collect();
    let in_circle = IdSet::union_all(&circle);
    let mut nodes = Vec::new();
    for finding in &found.findings {
        let node = |tasks: IdSet| Drawn {
            tasks,
            what: &finding.what,
            kind: finding.kind,
        };
        let rest = finding.tasks.difference(&in_circle);
        let own = circle.iter().filter(|one| one.is_subset(&finding.tasks));
        nodes.extend(own.cloned().map(node));
        if !rest.is_empty() {
            nodes.push(node(rest));
        }
    }
    nodes.truncate(NODES_MAX);
    nodes
}

/// The edges: source node, target node, and the number of waits that each edge represents.
pub(crate) fn edges(found: &Diagnosis, nodes: &[Drawn<'_>]) -> BTreeMap<(usize, usize), u64> {
    let mut edges = BTreeMap::new();
    let node_of = |task: u32| {
        let task = TaskId(task);
        nodes.iter().position(|node| node.tasks.contains(task))
    };
    let either = found.graph.either.iter();
    let either = either.flat_map(|(who, peers)| peers.map(|peer| (*who, peer)));
    for (who, peer) in found.graph.ones.iter().copied().chain(either) {
        if let Some(edge) = node_of(who).zip(node_of(peer)) {
            *edges.entry(edge).or_default() += 1;
        }
    }
    for set in found.graph.sets.iter().filter(|set| !set.guessed) {
        for (from, node) in nodes.iter().enumerate() {
            let waits = node.tasks.intersection_len(&set.who);
            for (to, peer) in nodes.iter().enumerate().filter(|_| waits > 0) {
                if from != to && !peer.tasks.is_disjoint(&set.peers) {
                    *edges.entry((from, to)).or_default() += waits;
                }
            }
        }
    }
    edges
}
