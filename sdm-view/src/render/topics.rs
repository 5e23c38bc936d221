//! `info sets`, `info nodes`, `info tree`, `info links`, `info memory` on a screen.

use sdm_debug::rules::TotalUsage;
use sdm_idset::IdSet;
use sdm_text::{agree, counted, printable};

use super::page::Page;
use crate::item::{LinkRow, NodeRow, SetRow, TreeRow};

/// A number of bytes for the user: `412 MB`, `1.5 GB`, `20 GB`.
#[must_use]
pub fn amount(bytes: u64) -> String {
    let megabytes = bytes >> 20;
    match megabytes {
        10_240.. => format!("{} GB", megabytes >> 10),
        1024.. => format!("{}.{} GB", megabytes >> 10, ((megabytes & 1023) * 10) >> 10),
        _ => format!("{megabytes} MB"),
    }
}

/// Maximum number of rows that are shown, except of `info sets`.
const ROWS_MAX: usize = 32;

/// The lines of `info sets`: the named sets.
pub(super) fn sets(page: &Page<'_>, rows: &[SetRow]) -> Vec<String> {
    let cells = rows.iter().map(|row| {
        let name = match row.name.as_str() {
            "" => String::new(),
            name => format!("@{name}"),
        };
        let who = if row.tasks.is_empty() {
            "nobody".to_owned()
        } else {
            page.label(&row.tasks)
        };
        [name, who, row.what.clone()]
    });
    columns(page, cells.collect())
}

/// The memory use of tasks in total, and of the tasks that use the most.
pub(super) fn usage(page: &Page<'_>, tasks: &IdSet, usage: &TotalUsage) -> Vec<String> {
    let all = amount(usage.resident_bytes);
    let said = match usage.count {
        1 => format!("{all} of memory in use, peak {}", amount(usage.peak_bytes)),
        count => format!(
            "{all} of memory in use, {} per rank on average, peak of one rank {}",
            amount(usage.resident_bytes / count.max(1)),
            amount(usage.peak_bytes)
        ),
    };
    let mut lines = vec![page.said(tasks, &said, false)];
    if usage.count > 1 {
        let largest = usage.largest.iter();
        let largest = largest.map(|(bytes, task)| format!("rank {task}: {}", amount(*bytes)));
        let largest = largest.collect::<Vec<_>>().join(", ");
        lines.push(page.style.wrap(&format!("  the most: {largest}"), 4));
    }
    lines
}

/// The hosts, with the tasks on each.
pub(super) fn nodes(page: &Page<'_>, rows: &[NodeRow]) -> Vec<String> {
    let cells = shown(rows).iter().map(|row| {
        let servers = counted(row.servers, "server");
        [
            host(&row.host),
            format!("{}, {servers}", page.label(&row.tasks)),
            row.states.clone(),
        ]
    });
    let mut lines = columns(page, cells.collect());
    let rest = &rows[shown(rows).len()..];
    if !rest.is_empty() {
        let tasks = IdSet::union_all(rest.iter().map(|row| &row.tasks));
        let hosts = counted(rest.len(), "more host");
        lines.push(format!("({hosts} with {})", page.label(&tasks)));
    }
    lines
}

/// The tree of servers.
pub(super) fn tree(page: &Page<'_>, rows: &[TreeRow]) -> Vec<String> {
    let depth = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    let widest = rows.iter().map(|row| row.children).max().unwrap_or(0);
    let servers = rows.iter().filter(|row| row.server.is_some()).count();
    let servers = counted(servers, "server");
    let children = agree(widest, "child", "children");
    let mut lines = vec![format!(
        "planned at the start: {servers} below the master, depth {depth}, at most {widest} {children} per server"
    )];
    // Where not all fit, those nearest to the master are shown.
    let mut by_depth = vec![0_usize; depth as usize + 1];
    for row in rows {
        by_depth[row.depth as usize] += 1;
    }
    let mut sum = 0;
    let fitting = by_depth.iter().take_while(|count| {
        sum += **count;
        sum <= ROWS_MAX
    });
    let levels = fitting.count();
    for row in rows.iter().filter(|row| (row.depth as usize) < levels) {
        let indent = "  ".repeat(row.depth as usize);
        let name = match row.server {
            Some(server) => format!("server {server} on {}", host(&row.host)),
            None => "master".to_owned(),
        };
        let own = match (row.server, row.tasks == row.reach) {
            (None, _) => page.label(&row.reach),
            (_, true) => page.label(&row.tasks),
            (_, false) => format!(
                "{} (with the servers below: {})",
                page.label(&row.tasks),
                counted(row.reach.len(), "rank")
            ),
        };
        lines.push(page.style.wrap(
            &format!("{indent}{name}: {own}"),
            row.depth as usize * 2 + 4,
        ));
    }
    if levels < by_depth.len() {
        let left: usize = by_depth[levels..].iter().sum();
        lines.push(format!("({} further down)", counted(left, "more server")));
    }
    lines
}

/// The links of the tree.
pub(super) fn links(page: &Page<'_>, rows: &[LinkRow]) -> Vec<String> {
    let ill = rows.iter().filter(|row| row.health != "reachable").count();
    let mut lines = vec![match ill {
        0 => format!("{}, all reachable", counted(rows.len(), "link")),
        ill => format!("{}, {ill} not reachable", counted(rows.len(), "link")),
    }];
    for row in shown(rows) {
        let parent = match row.parent {
            Some(parent) => format!("server {parent}"),
            None => "master".to_owned(),
        };
        let hosts = format!("{} -> {}", host(&row.hosts.0), host(&row.hosts.1));
        let text = format!(
            "  {parent} -> server {} ({hosts}): {}, {}",
            row.child,
            page.label(&row.reach),
            row.health
        );
        let text = page.style.wrap(&text, 6);
        lines.push(match row.health {
            "reachable" => text,
            _ => page.style.bad(&text),
        });
    }
    let rest = rows.len() - shown(rows).len();
    if rest > 0 {
        lines.push(format!("  ({})", counted(rest, "more link")));
    }
    lines
}

fn shown<T>(rows: &[T]) -> &[T] {
    &rows[..rows.len().min(ROWS_MAX)]
}

fn host(name: &str) -> String {
    if name.is_empty() {
        return "this host".to_owned();
    }
    printable(name.as_bytes())
}

/// Aligned columns. The last one is broken if it is too long.
fn columns(page: &Page<'_>, cells: Vec<[String; 3]>) -> Vec<String> {
    let width = |column: usize| {
        let cells = cells.iter();
        cells
            .map(|row| sdm_text::columns(&row[column]))
            .max()
            .unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let line = |[a, b, c]: &[String; 3]| {
        let padded = |cell: &String, width| {
            let blanks = width - sdm_text::columns(cell);
            format!("{cell}{:blanks$}", "")
        };
        let text = format!("{}  {}  {c}", padded(a, first), padded(b, second));
        page.style.wrap(text.trim_end(), first + second + 4)
    };
    cells.iter().map(line).collect()
}
