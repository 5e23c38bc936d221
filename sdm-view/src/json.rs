//! The output of `--json`: one record per line. `docs/json.md` describes the records.

use sdm_text::without_numbers;
use std::io::Write;
use std::time::Duration;

use sdm_debug::Reply;
use sdm_debug::event::Stream;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use crate::item::{BreakRow, Gathered, Item, RankRow, View};

mod data;
pub mod page;
mod queues;
mod reply;
mod topics;

pub(crate) use reply::stacks;

/// The version of the records, which is raised when a field changes its meaning or is removed.
pub const VERSION: u32 = 1;

/// Writes items for a program.
pub struct JsonView<W> {
    to: W,
    pass: fn(bytes: &[u8]),
    gone: bool,
}

impl<W: Write> JsonView<W> {
    /// A view that writes records to `to`. Output that a launcher carries is not a record and goes to
    /// `pass`.
    pub fn new(to: W, pass: fn(bytes: &[u8])) -> Self {
        Self {
            to,
            pass,
            gone: false,
        }
    }
}

impl<W: Write> View for JsonView<W> {
    fn show(&mut self, at: Duration, item: &Item) {
        let (kind, mut record) = record(item);
        if let Some(fields) = record.as_object_mut() {
            fields.insert("v".to_owned(), VERSION.into());
            fields.insert("kind".to_owned(), kind.into());
            let ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
            fields.insert("t_ms".to_owned(), ms.into());
        }
        let mut line = sdm_text::record(&record.to_string());
        line.push('\n');
        let written = self.to.write_all(line.as_bytes());
        self.gone |= written.and_then(|()| self.to.flush()).is_err();
    }

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, bytes: &[u8]) {
        (self.pass)(bytes);
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

/// The kind of a record and its fields.
fn record(item: &Item) -> (&'static str, Value) {
    match item {
        Item::Start { .. } => ("start", start(item)),
        Item::Echo { line } => ("command", json!({ "line": line })),
        Item::Answer(gathered) => ("answer", answer(gathered)),
        Item::Whole(item) => record(item),
        Item::Happened { tasks, what } => {
            let (kind, mut record) = reply::happening(what);
            if let Some(fields) = record.as_object_mut() {
                fields.insert("tasks".to_owned(), set(tasks));
            }
            (kind, record)
        }
        Item::Output {
            tasks,
            stream,
            line,
            complete,
        } => ("output", output(tasks, *stream, line, *complete)),
        Item::Ranks(rows) => {
            let rows: Vec<_> = rows.iter().map(rank_row).collect();
            ("ranks", json!({ "rows": rows }))
        }
        Item::Breakpoints(rows) => {
            let rows: Vec<_> = rows.iter().map(break_row).collect();
            ("breakpoints", json!({ "rows": rows }))
        }
        Item::Sets(_)
        | Item::Nodes(_)
        | Item::Tree(_)
        | Item::Links(_)
        | Item::Diagnosis(_)
        | Item::Listing(_)
        | Item::Values { .. }
        | Item::Display { .. }
        | Item::Stats { .. }
        | Item::Plot(_)
        | Item::Comparison(_)
        | Item::Usage { .. }
        | Item::Profile(_) => topics::record(item),
        Item::Queues(table) => ("queues", queues::fields(table)),
        Item::Lost { tasks, why } => ("lost", json!({ "tasks": set(tasks), "why": why })),
        Item::Silent { tasks, why } => ("silent", json!({ "tasks": set(tasks), "why": why })),
        Item::Reachable { tasks } => ("reachable", json!({ "tasks": set(tasks) })),
        Item::LauncherLine(line) => ("launcher", json!({ "line": line })),
        Item::LauncherEnded {
            status,
            last_words,
            lost,
        } => (
            "launcher_ended",
            json!({ "status": status, "last_words": last_words, "lost": set(lost) }),
        ),
        Item::Notice(text) | Item::Text(text) => ("notice", json!({ "text": text })),
        Item::Error(problem) => (
            "error",
            json!({
                "message": without_numbers(&problem.message),
                "line": problem.line,
                "at": problem.at,
                "hint": problem.hint,
            }),
        ),
        Item::End { code, reason } => ("end", json!({ "code": code, "reason": reason })),
    }
}

fn start(item: &Item) -> Value {
    let Item::Start {
        session,
        tasks,
        programs,
        pids,
    } = item
    else {
        return Value::Null;
    };
    let program = programs.first().map(|(_, words)| words.as_slice());
    let program = program.unwrap_or_default();
    let several = programs
        .iter()
        .map(|(tasks, words)| json!({ "tasks": set(tasks), "program": words }));
    let programs: Vec<_> = several.collect();
    let pids = pids.iter();
    let pids = pids.map(|(task, pid)| json!({ "task": task, "pid": pid }));
    json!({
        "session": session,
        "tasks": set(tasks),
        "program": program,
        "programs": programs,
        "pids": pids.collect::<Vec<_>>(),
    })
}

pub(crate) fn set(tasks: &IdSet) -> Value {
    tasks.to_string().into()
}

fn answer(gathered: &Gathered) -> Value {
    let stacks = gathered.stacks();
    let stacks = stacks.iter().map(reply::stacks);
    let others = gathered.ok.iter();
    let others = others.filter(|(_, reply)| !matches!(reply, Reply::Stacks(_)));
    let ok = others.map(|(tasks, reply)| {
        let mut class = reply::reply(reply);
        if let Some(fields) = class.as_object_mut() {
            fields.insert("tasks".to_owned(), set(tasks));
            fields.insert("count".to_owned(), tasks.len().into());
        }
        class
    });
    let failed = gathered.failed.iter().map(|(tasks, failure)| {
        json!({
            "tasks": set(tasks),
            "count": tasks.len(),
            "code": failure.code.name(),
            "text": without_numbers(&failure.text),
            "hint": failure.hint,
        })
    });
    let missing = gathered.missing.iter();
    let missing = missing.map(|(tasks, why)| json!({ "tasks": set(tasks), "why": why }));
    json!({
        "command": gathered.command,
        "to": set(&gathered.to),
        "classes": stacks.chain(ok).collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
        "others": set(&gathered.others),
        "missing": missing.collect::<Vec<_>>(),
        "lost": set(&gathered.lost),
        "late": gathered.late,
    })
}

pub(crate) fn output(tasks: &IdSet, stream: Stream, line: &[u8], complete: bool) -> Value {
    let stream = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    let text = String::from_utf8_lossy(line);
    let mut record = json!({
        "tasks": set(tasks),
        "stream": stream,
        "text": text,
        "complete": complete,
    });
    if std::str::from_utf8(line).is_err() {
        let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
        record["bytes_hex"] = hex.into();
    }
    record
}

pub(crate) fn rank_row(row: &RankRow) -> Value {
    let last = row.last.as_ref().map(|what| {
        let (kind, mut record) = reply::happening(what);
        if let Some(fields) = record.as_object_mut() {
            fields.insert("kind".to_owned(), kind.into());
        }
        record
    });
    json!({
        "tasks": set(&row.tasks),
        "count": row.tasks.len(),
        "state": row.state.name(),
        "health": row.health.unwrap_or("reachable"),
        "program": row.program,
        "last": last,
    })
}

fn break_row(row: &BreakRow) -> Value {
    json!({
        "number": row.number,
        "tasks": set(&row.tasks),
        "location": row.location,
        "condition": row.condition,
        "temporary": row.temporary,
        "enabled": row.enabled,
        "pending": set(&row.pending),
        "places": reply::places(&row.places),
        "hits": row.hits.iter().map(|(times, tasks)| times * tasks.len()).sum::<u64>(),
        "hit_counts": row.hits.iter().map(hit_count).collect::<Vec<_>>(),
        "commands": row.commands,
    })
}

fn hit_count((times, tasks): &(u64, sdm_idset::IdSet)) -> Value {
    json!({ "hits": times, "tasks": set(tasks) })
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod tests;
