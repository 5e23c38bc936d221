//! The list of skips and the table of parts match the tests and the scripts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reasons that the tests print, with `*` for variable parts.
fn printed() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in super::sources::all() {
        let mut rest = &*source.text;
        while let Some((_, behind)) = rest.split_once("\"SKIP: ") {
            let (reason, behind) = behind.split_once('"').expect("a string ends");
            let mut pattern = String::new();
            for (number, part) in reason.split(['{', '}']).enumerate() {
                pattern += if number % 2 == 0 { part } else { "*" };
            }
            // A reason that is a variable is found where it is made.
            if !["", "*"].contains(&&*pattern) {
                found.insert(pattern);
            }
            rest = behind;
        }
    }
    found
}

/// True if a pattern, with `*` for any part, matches a text.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => {
            text.starts_with(head)
                && (head.len()..=text.len())
                    .filter(|at| text.is_char_boundary(*at))
                    .any(|at| glob(tail, &text[at..]))
        }
    }
}

/// True if a row of the table matches a reason; both may have `*` for a part.
fn stands_for(row: &str, reason: &str) -> bool {
    glob(row, reason) || glob(reason, row)
}

#[test]
fn every_skip_reason_of_a_test_is_in_docs_skips() {
    let list = read("docs/skips.md");
    let rows = list.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<&str> = rows
        .filter_map(|row| Some(row.split_once('`')?.0))
        .collect();
    let printed = printed();
    assert!(printed.len() > 20, "{printed:#?}");
    let unlisted: Vec<String> = printed
        .into_iter()
        .filter(|reason| !rows.iter().any(|row| stands_for(row, reason)))
        .collect();
    assert!(unlisted.is_empty(), "not in docs/skips.md: {unlisted:#?}");
}

#[test]
fn each_test_part_has_a_table_row_and_a_shell_function() {
    let script = read("scripts/parts");
    let (_, list) = script.split_once("\nparts=(").expect("a list of parts");
    let parts = list.split_once(')').expect("its end").0.split_whitespace();
    let rows = read("docs/test-parts.md");
    for part in parts {
        assert!(rows.contains(&format!("\n| {part} | ")), "no row: {part}");
        assert!(
            script.contains(&format!("\npart_{part}() {{")),
            "no function: {part}"
        );
    }
}
