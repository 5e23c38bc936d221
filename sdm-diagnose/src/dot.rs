//! The waits as a graph for Graphviz, with a node for each group of tasks that wait alike.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sdm_idset::{IdSet, TaskId};

use super::{Diagnosis, Kind};

/// Maximum number of nodes; a graph with more is unreadable.
const NODES_MAX: usize = 60;

/// The wait-for graph as text for `dot`.
#[must_use]
pub fn dot(found: &Diagnosis) -> String {
    let nodes = nodes(found);
    let mut text = String::from(
        "digraph waits {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n",
    );
    put(
        &mut text,
        format_args!("  label={};", quoted(&found.conclusion)),
    );
    for (index, node) in nodes.iter().enumerate() {
        let color = match node.kind {
            Kind::Suspect => "firebrick",
            Kind::Holds => "darkorange",
            Kind::Gone | Kind::Halted => "gray40",
            _ => "black",
        };
        let label = format!("{}\n{}", node.tasks, node.what);
        put(
            &mut text,
            format_args!("  n{index} [label={}, color={color}];", quoted(&label)),
        );
    }
    for ((from, to), count) in edges(found, &nodes) {
        let label = match count {
            1 => String::new(),
            count => format!(" [label={}]", quoted(&count.to_string())),
        };
        put(&mut text, format_args!("  n{from} -> n{to}{label};"));
    }
    if found.findings.len() > NODES_MAX {
        let more = found.findings.len() - NODES_MAX;
        put(
            &mut text,
            format_args!("  more [label=\"{more} more groups\", shape=plain];"),
        );
    }
    text.push_str("}\n");
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{line}");
}

struct Drawn<'a> {
    tasks: IdSet,
    what: &'a str,
    kind: Kind,
}

/// The nodes: the groups of the findings. Each rank of a short cycle is a node of its own.
fn nodes(found: &Diagnosis) -> Vec<Drawn<'_>> {
    let alone = found.circle.len() <= NODES_MAX / 2;
    let circle = found.circle.iter().filter(|_| alone);
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
fn edges(found: &Diagnosis, nodes: &[Drawn<'_>]) -> BTreeMap<(usize, usize), u64> {
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

/// Quotes a text for `dot`.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let text: String = text
        .chars()
        .map(|c| match c {
            '\n' => "\\n".to_owned(),
            c if c.is_control() => "?".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!("\"{text}\"")
}
