//! A tool's result lines as text and as JSON.

use std::collections::BTreeMap;

use sdm_foreign::names;
use sdm_foreign::tool_protocol::{Datum, JobPart, Line};
use sdm_text::printable;
use serde_json::{Map, Value, json};

/// A value on one line.
pub(super) fn text(value: &Datum) -> String {
    match value {
        Datum::Nothing => "none".to_owned(),
        Datum::Flag(flag) => flag.to_string(),
        Datum::Signed(number) => number.to_string(),
        Datum::Unsigned(number) => number.to_string(),
        Datum::Real(number) => number.to_string(),
        Datum::Text(text) | Datum::Word(text) => printable(text.as_bytes()),
        Datum::Bytes(count) => format!("{count} bytes"),
        Datum::Time(seconds, micros) => format!("{seconds}.{micros:06} s"),
        Datum::Rank(rank) => names::rank(*rank).into_owned(),
        // A positive status is the exit code of a process, and no constant of the PMIx standard.
        Datum::Status(status) if *status > 0 => status.to_string(),
        Datum::Status(status) => names::status(*status).into_owned(),
        Datum::Process(of) => among(of),
        Datum::ProcessInfo {
            of,
            host,
            program,
            pid,
            exit_code,
            state,
        } => format!(
            "{} on {}, pid {pid}, {}, exit code {exit_code}, {}",
            among(of),
            printable(host.as_bytes()),
            names::process_state(*state),
            printable(program.as_bytes())
        ),
        Datum::Array(count) => format!("{count} values"),
        Datum::Opaque(kind) => format!("({})", names::kind(*kind)),
    }
}

/// The text for a process.
pub(super) fn among(of: &JobPart) -> String {
    format!(
        "{}:{}",
        printable(of.namespace.as_bytes()),
        names::rank(of.rank)
    )
}

fn scalar(value: &Datum) -> Value {
    match value {
        Datum::Nothing => Value::Null,
        Datum::Flag(flag) => json!(flag),
        Datum::Signed(number) => json!(number),
        Datum::Unsigned(number) | Datum::Bytes(number) => json!(number),
        Datum::Real(number) => json!(number),
        Datum::Text(text) | Datum::Word(text) => json!(text),
        Datum::Process(of) => json!({"namespace": of.namespace, "rank": rank(of.rank)}),
        Datum::Rank(it) => rank(*it),
        Datum::ProcessInfo {
            of,
            host,
            program,
            pid,
            exit_code,
            state,
        } => json!({
            "namespace": of.namespace, "rank": rank(of.rank), "host": host, "program": program, "pid": pid,
            "exit_code": exit_code, "state": names::process_state(*state),
        }),
        Datum::Status(_) | Datum::Time(..) | Datum::Array(_) | Datum::Opaque(_) => {
            json!(text(value))
        }
    }
}

fn rank(rank: u32) -> Value {
    match names::rank(rank) {
        name if name.parse::<u32>().is_ok() => json!(rank),
        name => json!(name),
    }
}

/// Lines as one JSON value: an object for lines with keys, an array for those without.
pub(super) fn document(lines: &[Line]) -> Value {
    let mut at = 0;
    let depth = lines.first().map_or(0, |line| line.depth);
    part(lines, &mut at, depth)
}

/// Converts the lines of one depth to JSON, with the deeper lines below them. The recursion ends because `depth` is a
/// byte that grows.
fn part(lines: &[Line], at: &mut usize, depth: u8) -> Value {
    let (mut fields, mut items) = (Map::<String, Value>::new(), Vec::new());
    // The values of keys that occur several times, which become arrays.
    let mut repeated: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    while let Some(line) = lines.get(*at).filter(|line| line.depth >= depth) {
        *at += 1;
        let is_head = matches!(line.value, Datum::Array(_));
        let value = match depth.checked_add(1) {
            Some(deeper) if is_head => part(lines, at, deeper),
            _ => scalar(&line.value),
        };
        if line.key.is_empty() {
            items.push(value);
        } else if let Some(all) = repeated.get_mut(&line.key) {
            all.push(value);
        } else if let Some(first) = fields.remove(&line.key) {
            repeated.insert(line.key.clone(), vec![first, value]);
        } else {
            fields.insert(line.key.clone(), value);
        }
    }
    fields.extend(
        repeated
            .into_iter()
            .map(|(key, all)| (key, Value::Array(all))),
    );
    match (fields.is_empty(), items.is_empty()) {
        (false, true) => Value::Object(fields),
        (true, _) => Value::Array(items),
        (false, false) => json!([Value::Object(fields), items]),
    }
}

/// Lines as text. Nested lines are indented.
pub(super) fn lines(lines: &[Line]) -> String {
    let mut shown = String::new();
    for line in lines {
        let indent = "  ".repeat(usize::from(line.depth));
        let key = printable(line.key.as_bytes());
        let separator = if key.is_empty() { "" } else { ": " };
        shown.push_str(&format!("{indent}{key}{separator}{}\n", text(&line.value)));
    }
    shown
}

/// A summary of a job by the states of its processes.
pub(super) fn job_status(table: &[Line]) -> String {
    let mut counts = BTreeMap::<u8, usize>::new();
    for line in table {
        if let Datum::ProcessInfo { state, .. } = line.value {
            *counts.entry(state).or_default() += 1;
        }
    }
    let parts = counts.iter().rev().map(|(state, count)| {
        // A rank that has ended while others run.
        let name = match state {
            0 => "ended".into(),
            state => names::process_state(*state),
        };
        format!("{count} {name}")
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(depth: u8, key: &str, value: Datum) -> Line {
        let key = key.to_owned();
        Line { depth, key, value }
    }

    #[test]
    fn pmix_rows_are_shown_as_text_and_json() {
        let process = Datum::ProcessInfo {
            of: JobPart {
                namespace: "a@1".to_owned(),
                rank: 0,
            },
            host: "h".to_owned(),
            program: "sh".to_owned(),
            pid: 7,
            exit_code: 0,
            state: 6,
        };
        let all = [
            line(0, "pmix.qry.ptable", Datum::Array(1)),
            line(1, "", process),
            line(0, "pmix.rank", Datum::Rank(names::RANK_ALL)),
            line(0, "s", Datum::Status(-47)),
        ];
        let shown = lines(&all);
        assert!(
            shown.contains("  a@1:0 on h, pid 7, connected, exit code 0, sh\n"),
            "{shown}"
        );
        assert!(
            shown.contains("pmix.rank: all\ns: PMIX_ERR_NOT_SUPPORTED\n"),
            "{shown}"
        );
        let document = document(&all);
        assert_eq!(document["pmix.qry.ptable"][0]["state"], "connected");
        assert_eq!(document["pmix.rank"], "all");
        // The recursion ends, whatever depth the lines claim.
        let deep: Vec<Line> = (0..2000).map(|_| line(255, "", Datum::Array(9))).collect();
        let _ = super::document(&deep);
    }
}
