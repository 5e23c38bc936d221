//! Records that a live page gets in addition to those of `--json`: the state of the session, and its console.

use sdm_debug::TaskState;
use sdm_debug::reply::Frame;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::{VERSION, break_row, rank_row, reply, set};
use crate::item::{Happening, RankRow};
use crate::overview::{Named, Overview, Sight, SourceSight};
use crate::render::frame_text;

/// Number of source lines that a page gets before and after the current line.
const LINES_AROUND: u32 = 12;

/// The record `board`: the state of the session, without the results of queries.
#[must_use]
pub fn board(board: &Overview) -> String {
    let fields = json!({
        "prompt": board.prompt,
        "all": set(&board.all),
        "focus": set(&board.focus),
        "running": set(&board.running),
        "ranks": board.ranks.iter().map(state).collect::<Vec<_>>(),
        "breakpoints": board.breakpoints.iter().map(break_row).collect::<Vec<_>>(),
        "stale": board.is_stale,
    });
    record("board", fields)
}

/// A row of `ranks`, and whether its tasks have crashed, as the set `@crashed` has it.
fn state(row: &RankRow) -> Value {
    let is_at_crash = matches!(&row.last, Some(Happening::Stopped(stop)) if stop.reason.is_crash());
    let mut fields = rank_row(row);
    fields["crashed"] = (is_at_crash || matches!(row.state, TaskState::Signalled(_))).into();
    fields
}

/// The record `sight`: the stacks, source and values that were queried after the last stop.
#[must_use]
pub fn sight(sight: &Sight) -> String {
    let fields = json!({
        "stacks": sight.stacks.as_ref().map(reply::stacks),
        "source": sight.source.as_ref().map(source),
        "frames": sight.frames.iter().map(selected).collect::<Vec<_>>(),
        "locals": sight.locals.iter().map(named).collect::<Vec<_>>(),
        "watched": sight.watched.iter().map(named).collect::<Vec<_>>(),
        "missing": sight.missing,
    });
    record("sight", fields)
}

/// The record `prompt`: its text, whether a line is requested, and whether that line answers a question.
#[must_use]
pub fn prompt(text: &str, (is_asked, is_question): (bool, bool)) -> String {
    record(
        "prompt",
        json!({ "text": text, "question": is_question, "asked": is_asked }),
    )
}

/// The record `said`: text for the page's console, as the prompt shows it.
#[must_use]
pub fn said(text: &str) -> String {
    record("said", json!({ "text": text }))
}

/// The record `typed`: a line that a user has typed on a page.
#[must_use]
pub fn typed(text: &str) -> String {
    record("typed", json!({ "text": text }))
}

/// The record `completion`: the words with which a line can go on that was partly typed. `kept` is its beginning, to
/// which they are added.
#[must_use]
pub fn completion(typed: &str, kept: &str, words: &[String]) -> String {
    record(
        "completion",
        json!({ "typed": typed, "kept": kept, "words": words }),
    )
}

/// The record `status`: the status line, which tells the progress of a wait. Null without one.
#[must_use]
pub fn status(line: Option<&str>) -> String {
    record("status", json!({ "text": line }))
}

fn record(kind: &str, mut fields: Value) -> String {
    fields["v"] = VERSION.into();
    fields["kind"] = kind.into();
    sdm_text::record(&fields.to_string())
}

fn source(sight: &SourceSight) -> Value {
    let first = sight
        .line
        .saturating_sub(LINES_AROUND)
        .max(sight.first.max(1));
    let skipped = usize::try_from(first - sight.first).unwrap_or(usize::MAX);
    let count = usize::try_from(2 * LINES_AROUND + 1).unwrap_or(usize::MAX);
    let lines = sight.lines.iter().skip(skipped).take(count);
    json!({
        "path": sight.path,
        "function": sight.function,
        "line": sight.line,
        "first": first,
        "lines": lines.collect::<Vec<_>>(),
        "caller": sight.is_caller,
        "tasks": set(&sight.tasks),
    })
}

fn selected((tasks, frame): &(IdSet, Frame)) -> Value {
    json!({ "tasks": set(tasks), "count": tasks.len(), "level": frame.level, "place": frame_text(frame) })
}

fn named(named: &Named) -> Value {
    let values = named.values.iter();
    let values = values
        .map(|(tasks, value)| json!({ "tasks": set(tasks), "count": tasks.len(), "value": value }));
    json!({ "name": named.name, "values": values.collect::<Vec<_>>() })
}
