//! `queues` on a screen.

use sdm_idset::IdSet;
use sdm_text::counted;

use super::page::Page;
use crate::queues::QueueTable;

/// Maximum number of rows that are shown.
const ROWS_MAX: usize = 64;

/// The lines for pending messages.
pub(super) fn lines(page: &Page<'_>, table: &QueueTable) -> Vec<String> {
    let rows = table.rows.iter();
    let rows = rows.take(ROWS_MAX);
    let mut lines: Vec<String> = rows
        .map(|row| page.said(&row.tasks, &row.text(), false))
        .collect();
    let beyond = table.rows.iter().skip(ROWS_MAX);
    let beyond: Vec<&IdSet> = beyond.map(|row| &row.tasks).collect();
    if !beyond.is_empty() {
        let tasks = IdSet::union_all(beyond.iter().copied());
        let kinds = counted(beyond.len(), "more kind");
        let text = format!("{kinds} of messages, not shown");
        lines.push(page.said(&tasks, &text, false));
    }
    if !table.more.is_empty() {
        lines.push(page.said(&table.more, "further messages, not shown", false));
    }
    if !table.quiet.is_empty() {
        let text = "no send or receive is pending";
        lines.push(page.said(&table.quiet, text, false));
    }
    if !table.without_unexpected.is_empty() {
        let text = "the MPI library's debug library does not report unexpected messages (arrived, not received)";
        lines.push(page.said(&table.without_unexpected, text, false));
    }
    lines
}
