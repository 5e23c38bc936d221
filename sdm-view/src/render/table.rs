//! Tables: `ranks`, `info breakpoints`, and the source lines of `list`.

use sdm_debug::TaskState;
use sdm_idset::IdSet;
use sdm_text::{counted, printable};

use super::event;
use super::highlight;
use super::page::Page;
use super::style::Style;
use crate::item::{BreakRow, Happening, Listing, RankRow};

/// Maximum number of places of one breakpoint that are shown.
const PLACES_SHOWN_MAX: usize = 16;
/// Maximum number of distinct hit counts of one breakpoint that are shown.
const HITS_SHOWN_MAX: usize = 8;

/// The table of `ranks`: tasks, their program if the job has several, state and position.
pub(super) fn ranks(page: &Page<'_>, rows: &[RankRow]) -> Vec<String> {
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let state = match row.health {
                Some(health) if row.state == TaskState::Absent => health.to_owned(),
                Some(health) => format!("{} ({health})", row.state.name()),
                None => row.state.name().to_owned(),
            };
            let place = row.last.as_ref().map(place).unwrap_or_default();
            (page.label(&row.tasks), state, place)
        })
        .collect();
    let cells = with_programs(cells, rows);
    let who = cells.iter().map(|(who, ..)| who.len()).max().unwrap_or(0);
    let state = cells.iter().map(|(_, state, _)| state.len()).max();
    let state = state.unwrap_or(0);
    let line = |(set, word, place): &(String, String, String)| {
        let text = format!("{set:<who$}  {word:<state$}  {place}");
        page.style.wrap(text.trim_end(), who + state + 4)
    };
    let mut lines = Vec::new();
    let mut left = page.style.room();
    for (index, cells) in cells.iter().enumerate() {
        let line = line(cells);
        let height = Style::height(std::slice::from_ref(&line));
        // The last line that fits gives the number of rows that do not fit.
        if height > left || (height == left && index + 1 < rows.len()) {
            let rest = &rows[index..];
            let tasks = IdSet::union_all(rest.iter().map(|row| &row.tasks));
            let text = format!("{}, not shown", counted(rest.len(), "more row"));
            lines.push(page.said(&tasks, &text, false));
            break;
        }
        left -= height;
        lines.push(line);
    }
    lines
}

/// Adds a column with the program behind the tasks, where the job has several programs.
fn with_programs(
    mut cells: Vec<(String, String, String)>,
    rows: &[RankRow],
) -> Vec<(String, String, String)> {
    if rows.iter().all(|row| row.program.is_empty()) {
        return cells;
    }
    let width = cells.iter().map(|(who, ..)| who.len()).max().unwrap_or(0);
    for ((who, ..), row) in cells.iter_mut().zip(rows) {
        *who = format!("{who:<width$}  {}", printable(row.program.as_bytes()));
    }
    cells
}

fn place(last: &Happening) -> String {
    match last {
        Happening::Exited { code: 0, .. } => String::new(),
        other => event::sentence(other).line,
    }
}

/// Lines of source, each with the number of tasks at it in front.
pub(super) fn listing(page: &Page<'_>, listing: &Listing) -> Vec<String> {
    let width = |text: &(u32, String, IdSet)| text.2.len().to_string().len();
    let anybody = listing.lines.iter().any(|(.., here)| !here.is_empty());
    let width = listing.lines.iter().map(width).max().unwrap_or(0);
    let file = listing.file.rsplit('/').next().unwrap_or_default();
    let mut head = page.over(&listing.tasks);
    if !file.is_empty() {
        head.push_str(&format!(" {}", printable(file.as_bytes())));
    }
    let mut lines = vec![head];
    for (number, text, here) in &listing.lines {
        let text = highlight::source(&page.style, file, &printable(text.as_bytes()));
        let count = match (anybody, here.len()) {
            (false, _) => String::new(),
            (true, 0) => " ".repeat(width + 3),
            (true, count) => page.style.odd(&format!("{count:>width$} > ")),
        };
        lines.push(format!("{count}{number}\t{text}").trim_end().to_owned());
    }
    lines
}

/// The locations of a breakpoint with several: in a template, or an overloaded function.
fn several_places(row: &BreakRow) -> Vec<String> {
    if row.places.len() < 2 {
        return Vec::new();
    }
    let shown = (1..).zip(row.places.iter().take(PLACES_SHOWN_MAX));
    let mut lines: Vec<String> = shown
        .map(|(at, (function, file, line))| {
            let text = match line {
                0 => format!("{}.{at} {function} {file}", row.number),
                line => format!("{}.{at} {function} at {file}:{line}", row.number),
            };
            format!("\t{}", printable(text.trim_end().as_bytes()))
        })
        .collect();
    if let Some(more @ 1..) = row.places.len().checked_sub(PLACES_SHOWN_MAX) {
        lines.push(format!("\tand {more} more"));
    }
    lines
}

/// The table of breakpoints as gdb lists them, with their tasks.
pub(super) fn breakpoints(page: &Page<'_>, rows: &[BreakRow]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["No breakpoints.".to_owned()];
    }
    let mut lines = vec!["Num  Disp Enb On / What".to_owned()];
    for row in rows {
        let disposal = if row.temporary { "del" } else { "keep" };
        let enabled = if row.enabled { 'y' } else { 'n' };
        let places = if row.places.is_empty() {
            String::new()
        } else {
            format!(" {}", event::places(&row.places))
        };
        let location = printable(row.location.as_bytes());
        let who = page.label(&row.tasks);
        let text = format!(
            "{:<4} {disposal:<4} {enabled:<3} {who}: {location}{places}",
            row.number
        );
        lines.push(page.style.wrap(&text, 14));
        lines.extend(several_places(row));
        if let Some(condition) = &row.condition {
            let condition = printable(condition.as_bytes());
            lines.push(format!("\tstop only if {condition}"));
        }
        if !row.pending.is_empty() {
            let who = page.label(&row.pending);
            lines.push(format!("\tpending on {who}"));
        }
        lines.extend(hits(page, row));
        lines.extend(commands(&row.commands));
    }
    lines
}

/// The number of stops at a breakpoint with the tasks, most frequent first. None without a stop.
fn hits(page: &Page<'_>, row: &BreakRow) -> Option<String> {
    let times = |(count, tasks): &(u64, IdSet)| {
        format!("{} on {}", counted(*count, "time"), page.label(tasks))
    };
    let (rest, shown) = row
        .hits
        .split_at(row.hits.len().saturating_sub(HITS_SHOWN_MAX));
    let mut parts: Vec<_> = shown.iter().rev().map(times).collect();
    if let [.., (most, _)] = rest {
        let tasks = IdSet::union_all(rest.iter().map(|(_, tasks)| tasks));
        let most = counted(*most, "time");
        parts.push(format!("at most {most} on {}", page.label(&tasks)));
    }
    let text = format!("\tbreakpoint already hit {}", parts.join(", "));
    (!parts.is_empty()).then(|| page.style.wrap(&text, 16))
}

/// The gdb commands of a breakpoint, indented by their blocks as gdb lists them.
fn commands(lines: &[String]) -> Vec<String> {
    let mut depth = 0_usize;
    let line = |line: &String| {
        let word = line.split([' ', '\t', '(']).next().unwrap_or_default();
        if matches!(word, "end" | "else") {
            depth = depth.saturating_sub(1);
        }
        let text = format!("\t{}{}", "  ".repeat(depth), printable(line.as_bytes()));
        if matches!(word, "if" | "while" | "else" | "commands" | "python") {
            depth += 1;
        }
        text
    };
    lines.iter().map(line).collect()
}
