//! Each text in `docs/messages.tsv` is a text of its crate: a row of a text that was changed again would mislead.

use std::collections::BTreeMap;
use std::fs;

use crate::sources::{self, root};

/// The list: a comment, then crate, former text and text of today, separated by tabs.
const LIST: &str = "docs/messages.tsv";

/// A source with the lines of a string literal, and those of a doc comment, joined to one.
fn joined(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    for line in source.lines().map(str::trim_start) {
        if text.ends_with('\\') {
            text.pop();
            text.push_str(line);
            continue;
        }
        match line.strip_prefix("/// ") {
            Some(rest) => text.push_str(rest),
            None => text.push_str(line),
        }
        let is_open = line.ends_with('\\');
        if !is_open {
            text.push(if line.starts_with("///") { ' ' } else { '\n' });
        }
    }
    text
}

/// The rows whose last cell is no text of the crate in the first cell.
fn stale<'a>(rows: &[&'a str], texts: &BTreeMap<String, String>) -> Vec<&'a str> {
    let is_stale = |row: &&str| {
        let cells: Vec<&str> = row.split('\t').collect();
        let [member, _, today] = cells[..] else {
            panic!("three cells are expected: {row}");
        };
        texts.get(member).is_none_or(|text| !text.contains(today))
    };
    rows.iter().copied().filter(is_stale).collect()
}

#[test]
fn every_listed_message_still_occurs_in_the_source() {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for source in sources::all().iter().filter(|it| !it.is_test) {
        let text = texts.entry(source.member.clone()).or_default();
        text.push_str(&joined(source.shipped()));
    }
    let list = fs::read_to_string(root().join(LIST)).expect("the list");
    let rows: Vec<&str> = list.lines().skip(1).collect();
    let gone = stale(&rows, &texts);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let is_kept = |line: &&str| !gone.contains(line);
        let kept: String = list
            .lines()
            .filter(is_kept)
            .map(|it| format!("{it}\n"))
            .collect();
        fs::write(root().join(LIST), kept).expect("there is room");
        return;
    }
    assert!(
        gone.is_empty(),
        "{LIST}: correct the last cell, or drop the row (UPDATE_GOLDEN=1): {gone:#?}"
    );
}

#[test]
fn changed_message_makes_its_row_stale() {
    let source = "let a = \"rank {rank} \\\n    waits\";\n/// Runs the\n/// program.\nfn a() {}\n";
    let texts = BTreeMap::from([("one".to_owned(), joined(source))]);
    let rows = [
        "one\tbefore\trank {rank} waits",
        "one\tbefore\tRuns the program.",
        "one\tbefore\trank {rank} polls",
        "two\tbefore\trank {rank} waits",
    ];
    assert_eq!(stale(&rows, &texts), rows[2..]);
}
