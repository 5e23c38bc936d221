//! Records about the session, and about values over all tasks.

use sdm_debug::rules::{Extreme, Number, Parsed, Stats, TotalUsage, Who};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::{reply, set};
use crate::compare::Comparison;
use crate::item::{Item, LinkRow, Listing, NodeRow, Plot, SetRow, TreeRow};
use crate::profile::{Profile, ProfileNode};

/// The kind and the fields of the record for an item about the session or about values.
pub(super) fn record(item: &Item) -> (&'static str, Value) {
    match item {
        Item::Sets(rows) => ("sets", sets(rows)),
        Item::Nodes(rows) => ("nodes", nodes(rows)),
        Item::Tree(rows) => ("tree", tree(rows)),
        Item::Links(rows) => ("links", links(rows)),
        Item::Values { expression, values } => ("values", self::values(expression, values)),
        Item::Display {
            number,
            expression,
            values,
        } => {
            let expression = format!("{number}: {expression}");
            ("values", self::values(&expression, values))
        }
        Item::Stats {
            expression,
            tasks,
            stats,
        } => ("stats", self::stats(expression, tasks, stats)),
        Item::Plot(plot) => ("plot", self::plot(plot)),
        Item::Listing(listing) => ("listing", self::listing(listing)),
        Item::Diagnosis(found) => {
            let mut fields = found.to_json();
            fields["graph"] = found.graph_to_json();
            ("diagnosis", fields)
        }
        Item::Comparison(found) => ("comparison", comparison(found)),
        Item::Profile(found) => ("profile", profile(found)),
        Item::Usage { tasks, usage } => ("usage", self::usage(tasks, usage)),
        _ => ("notice", json!({})),
    }
}

/// The JSON of `info sets`.
fn sets(rows: &[SetRow]) -> Value {
    let row = |row: &SetRow| {
        json!({
            "name": row.name,
            "tasks": set(&row.tasks),
            "count": row.tasks.len(),
            "what": row.what,
        })
    };
    json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// The JSON of `info nodes`.
fn nodes(rows: &[NodeRow]) -> Value {
    let row = |row: &NodeRow| {
        json!({
            "host": row.host,
            "servers": row.servers,
            "tasks": set(&row.tasks),
            "count": row.tasks.len(),
            "states": row.states,
        })
    };
    json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// The JSON of `info tree`.
fn tree(rows: &[TreeRow]) -> Value {
    let row = |row: &TreeRow| {
        json!({
            "server": row.server,
            "host": row.host,
            "depth": row.depth,
            "tasks": set(&row.tasks),
            "reach": set(&row.reach),
            "children": row.children,
        })
    };
    json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// The JSON of `info links`.
fn links(rows: &[LinkRow]) -> Value {
    let row = |row: &LinkRow| {
        json!({
            "parent": row.parent,
            "child": row.child,
            "parent_host": row.hosts.0,
            "child_host": row.hosts.1,
            "reach": set(&row.reach),
            "health": row.health,
        })
    };
    json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// The JSON of `outliers` and `display`.
fn values(expression: &str, values: &[(IdSet, String)]) -> Value {
    let row = |(tasks, value): &(IdSet, String)| json!({ "tasks": set(tasks), "count": tasks.len(), "value": value });
    json!({
        "expression": expression,
        "values": values.iter().map(row).collect::<Vec<_>>(),
    })
}

/// The JSON of `list`.
fn listing(listing: &Listing) -> Value {
    let line = |(number, text, here): &(u32, String, IdSet)| json!({ "line": number, "text": text, "here": set(here), "count": here.len() });
    json!({
        "tasks": set(&listing.tasks),
        "file": listing.file,
        "lines": listing.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

/// The JSON of `stats`.
fn stats(expression: &str, tasks: &IdSet, stats: &Stats) -> Value {
    let histogram = stats.histogram.as_ref().map(|histogram| {
        json!({
            "low": histogram.bins.low,
            "high": histogram.bins.high,
            "counts": histogram.counts,
            "below": histogram.below,
            "above": histogram.above,
        })
    });
    let some = stats.count > 0;
    json!({
        "expression": expression,
        "tasks": set(tasks),
        "count": stats.count,
        "min": stats.min.as_ref().map(extreme),
        "max": stats.max.as_ref().map(extreme),
        "mean": some.then_some(stats.mean),
        "stddev": stats.variance().map(|variance| variance.max(0.0).sqrt()),
        "sum": some.then(|| stats.sum()),
        "nan": who(&stats.not_a_number),
        "inf": who(&stats.infinite_up),
        "minus_inf": who(&stats.infinite_down),
        "histogram": histogram,
    })
}

/// The record of `plot`. Infinite numbers and NaN are null.
fn plot(plot: &Plot) -> Value {
    let line = |(tasks, values): &(IdSet, Vec<Parsed>)| {
        let odd = values.iter().enumerate().filter_map(|(at, it)| {
            let value = match it {
                Parsed::Finite(_) => return None,
                Parsed::NotANumber => "nan",
                Parsed::InfiniteUp => "inf",
                Parsed::InfiniteDown => "-inf",
            };
            Some(json!({ "at": at, "value": value }))
        });
        json!({
            "tasks": set(tasks),
            "count": tasks.len(),
            "numbers": values.iter().map(number).collect::<Vec<_>>(),
            "not_finite": odd.collect::<Vec<_>>(),
        })
    };
    json!({
        "expression": plot.expression,
        "over": if plot.over_ranks { "ranks" } else { "elements" },
        "row": plot.row,
        "bounds": plot.bounds,
        "lines": plot.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

/// An integer as it is, if JSON's library has it: of 64 bits. Null for an infinite number and NaN.
fn number(parsed: &Parsed) -> Value {
    if let Parsed::Finite(Number::Int(int)) = parsed
        && let Some(exact) = serde_json::Number::from_i128(*int)
    {
        return exact.into();
    }
    parsed.to_f64().into()
}

fn extreme(extreme: &Extreme) -> Value {
    let value = match extreme.value {
        Number::Int(int) => int.to_string(),
        Number::Float(float) => float.to_string(),
    };
    json!({ "value": value, "on": who(&extreme.who) })
}

fn who(who: &Who) -> Value {
    json!({ "count": who.count, "tasks": who.tasks.as_ref().map(set) })
}

/// The JSON of `info memory`.
fn usage(tasks: &IdSet, usage: &TotalUsage) -> Value {
    let largest = usage.largest.iter();
    let largest = largest.map(|(bytes, task)| json!({ "rank": task.0, "resident_bytes": bytes }));
    json!({
        "tasks": set(tasks),
        "count": usage.count,
        "resident_bytes": usage.resident_bytes,
        "peak_bytes": usage.peak_bytes,
        "largest": largest.collect::<Vec<_>>(),
    })
}

/// The JSON of `sdm profile`.
fn profile(found: &Profile) -> Value {
    let mut nodes = Vec::new();
    ProfileNode::walk(&found.tree(&found.tasks), &mut |depth, node| {
        nodes.push(json!({
            "depth": depth,
            "tasks": set(&node.tasks),
            "count": node.tasks.len(),
            "times": node.times,
            "here": node.here,
            "module": node.frame.module,
            "function": node.frame.function,
            "file": node.frame.file,
            "lines": [node.frame.line, node.last_line],
            "parts": node.parts,
        }));
    });
    let classes = found.classes();
    let classes = classes.iter().map(|class| {
        json!({
            "tasks": set(&class.tasks),
            "count": class.tasks.len(),
            "moved": class.moved,
            "places": class.places,
            "times": class.times,
            "all": class.all,
            "frames": class.place.iter().map(reply::stack_frame).collect::<Vec<_>>(),
        })
    });
    json!({
        "tasks": set(&found.tasks),
        "count": found.tasks.len(),
        "span_ms": u64::try_from(found.elapsed.as_millis()).unwrap_or(u64::MAX),
        "looks": found.looks,
        "parts": found.parts(),
        "times": found.times(&found.tasks),
        "nodes": nodes,
        "classes": classes.collect::<Vec<_>>(),
        "helpers": found.helpers,
        "others": set(&found.others),
        "others_times": found.others_times,
        "stood_us": found.stood_us,
        "stood_most_us": found.stood_most_us,
        "longest_us": found.longest_us,
        "processor_us": found.processor_us,
    })
}

/// The JSON of `compare`.
fn comparison(found: &Comparison) -> Value {
    let others = found.others.iter().map(|other| {
        json!({
            "tasks": set(&other.tasks),
            "count": other.tasks.len(),
            "differing": other.count,
            "of": other.of,
            "path": other.path,
            "reference": other.reference,
            "value": other.value,
        })
    });
    json!({
        "expression": found.expression,
        "reference": set(&found.reference),
        "value": found.value,
        "elements": found.elements,
        "others": others.collect::<Vec<_>>(),
        "cut": found.cut,
    })
}
