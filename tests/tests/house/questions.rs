//! `tests/ask-again.md` lists each question that a test asks again.

use std::fs;

use sdm_tests::questions::is_listed;

use crate::sources;

/// Maximum number of entries of the list. It is lowered where one goes, and never raised.
const AGAIN_MAX: usize = 4;

/// The files of the tests that ask again, each with its reasons.
fn called() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for source in sources::all() {
        if !source.path.starts_with("tests/tests/") || source.path.ends_with("house/questions.rs") {
            continue;
        }
        for (_, rest) in source
            .text
            .match_indices(".ask_again(")
            .map(|(at, call)| source.text.split_at(at + call.len()))
        {
            let reason = rest
                .trim_start()
                .strip_prefix('"')
                .and_then(|rest| rest.split_once('"'));
            let (reason, _) =
                reason.unwrap_or_else(|| panic!("{}: a reason in quotes", source.path));
            found.push((source.path.clone(), reason.to_owned()));
        }
    }
    found.sort();
    found
}

/// The rows of the list.
fn listed() -> Vec<(String, String)> {
    let text = fs::read_to_string(sources::root().join("tests/ask-again.md")).expect("the list");
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let pairs = rows.map(|row| row.split_once("` | ").expect("two columns"));
    let mut found: Vec<_> = pairs
        .map(|(file, reason)| (file.to_owned(), reason.to_owned()))
        .collect();
    found.sort();
    found
}

#[test]
fn tests_list_and_limit_their_ask_again_calls() {
    assert_eq!(called(), listed(), "the code, and tests/ask-again.md");
    assert!(
        listed().len() <= AGAIN_MAX,
        "more than {AGAIN_MAX}: wait for what is to be seen, and ask once"
    );
}

/// A word of no list would count as a question that is no question, and as a change that is no change.
#[test]
fn every_shell_command_is_classified_by_its_effect() {
    let mut names = 0;
    for source in sources::all() {
        if !source.path.starts_with("sdm-shell/src/commands/words/") {
            continue;
        }
        let lines = source.text.lines();
        let named = lines.filter_map(|line| line.trim().strip_prefix("name: \""));
        for name in named.filter_map(|rest| rest.strip_suffix("\",")) {
            names += 1;
            assert!(is_listed(name), "tests/src/questions.rs lacks {name}");
        }
    }
    assert!(names > 80, "{names} commands");
}
