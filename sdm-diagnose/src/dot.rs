//! The waits as a graph for Graphviz, with a node for each group of tasks that wait alike.

use std::fmt::Write as _;

use super::drawn::{NODES_MAX, edges, nodes};
use super::{Diagnosis, Kind};

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
