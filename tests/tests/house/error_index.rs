//! Each error text of the sources is in docs/errors.md, and each text of that page is in the sources.

use std::collections::BTreeSet;

use crate::sources;

/// Members whose errors no user sees.
const OTHERS: [&str; 4] = ["tests", "benches", "sdm-sim", "sdm-xstate"];
/// Attribute before the text of an error.
const ATTRIBUTE: &str = "#[error(";

#[test]
fn every_error_text_has_a_cause_and_a_remedy() {
    let page = sources::root().join("docs/errors.md");
    let page = std::fs::read_to_string(page).expect("it is there");
    let mut listed = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [text, cause, remedy] = cells[..] else {
            panic!("three cells are expected: {row}");
        };
        assert!(!cause.is_empty() && !remedy.is_empty(), "{row}");
        listed.insert(code(text).expect("it is code").to_owned());
    }
    let mut said: BTreeSet<String> = BTreeSet::new();
    for source in sources::all().iter().filter(|it| !it.is_test) {
        if !OTHERS.contains(&&*source.member) {
            said.extend(texts(source.shipped()));
        }
    }
    said.extend(
        (0..=u16::MAX)
            .map(sdm_debug::FailureCode::from_number)
            .map(|it| it.name().to_owned()),
    );
    let missing: Vec<_> = said.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "docs/errors.md says nothing of {missing:#?}"
    );
    let gone: Vec<_> = listed.difference(&said).collect();
    assert!(
        gone.is_empty(),
        "docs/errors.md has what is no longer said: {gone:#?}"
    );
}

/// The code in a table's cell. Code that contains backticks is enclosed in double backticks and blanks.
fn code(cell: &str) -> Option<&str> {
    let doubled = cell
        .strip_prefix("`` ")
        .and_then(|it| it.strip_suffix(" ``"));
    let single = || cell.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
    doubled.or_else(|| single().filter(|it| !it.contains('`')))
}

/// The texts of errors in a source, without those that only pass on another error's text.
fn texts(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in source.split(ATTRIBUTE).skip(1) {
        let Some(rest) = rest.trim_start().strip_prefix('"') else {
            continue;
        };
        let mut text = String::new();
        let mut characters = rest.chars().peekable();
        while let Some(character) = characters.next() {
            match (character, characters.peek()) {
                ('"', _) => break,
                ('\\', Some('\n')) => {
                    while characters.next_if(|it| it.is_whitespace()).is_some() {}
                }
                ('\\', Some(escaped)) => {
                    text.push(*escaped);
                    characters.next();
                }
                _ => text.push(character),
            }
        }
        if words_of(&text).contains(|it: char| it.is_ascii_alphabetic()) {
            found.push(text);
        }
    }
    found
}

/// An error text without its `{...}` placeholders.
fn words_of(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once('}').map_or("", |(_, rest)| rest)
    })
}

#[test]
fn error_texts_are_parsed_as_by_the_compiler() {
    let source = "#[error(\"a {b} cannot\")]\n#[error(\n \"it \\\n   says \\\"no\\\"\", x)]\n#[error(transparent)]\n#[error(\"{0}: {1}\")]";
    assert_eq!(texts(source), ["a {b} cannot", "it says \"no\""]);
}
