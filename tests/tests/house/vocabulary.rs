//! `docs/vocabulary.tsv` has the words of names, of the field and of SDM. The glossary of ARCHITECTURE.md is made from it.
//! The number of files with a vague word in their name, such as a pronoun or a participle, does not rise.

use std::collections::BTreeSet;
use std::fs;

use crate::sources::{self, root};

/// The origins of words.
const SOURCES: &[&str] = &[
    "DAP",
    "DWARF",
    "English",
    "GridRPC",
    "Linux",
    "MPI standard",
    "PMIx",
    "POSIX",
    "Rust",
    "SDM",
    "Slurm",
    "computing",
    "gdb",
    "valgrind",
];

/// Words that do not describe what has the name.
pub(super) const VAGUE: &[&str] = &[
    "asked",
    "asking",
    "attendant",
    "beside",
    "board",
    "going",
    "heard",
    "hearing",
    "held",
    "kept",
    "left",
    "lender",
    "letter",
    "looking",
    "meeting",
    "own",
    "pointing",
    "room",
    "said",
    "told",
    "turn",
    "wanted",
    "way",
];

/// Maximum number of files with such a word in their name. It is lowered where one gets another name, and never raised.
const VAGUE_FILES_MAX: usize = 12;

/// Maximum number of words of a meaning.
const MEANING_WORDS_MAX: usize = 30;

/// A word, its meaning, and its source.
pub(super) struct Row {
    pub(super) word: String,
    meaning: String,
    source: String,
}

pub(super) fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/vocabulary.tsv")).expect("the vocabulary");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("word\tmeaning\tsource"));
    let row = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [word, meaning, source] => Row {
            word: word.to_owned(),
            meaning: meaning.to_owned(),
            source: source.to_owned(),
        },
        _ => panic!("three columns: {line}"),
    };
    lines.map(row).collect()
}

/// The rows of SDM's own words, as a table.
fn glossary(rows: &[Row]) -> String {
    let own = rows.iter().filter(|row| row.source == "SDM");
    let own = own.map(|row| format!("| {} | {} |\n", row.word, row.meaning));
    let head = "| word | meaning |\n| --- | --- |\n".to_owned();
    std::iter::once(head).chain(own).collect()
}

/// True if a file's name contains a word of [`VAGUE`].
fn is_vague(path: &str) -> bool {
    let path = path.strip_suffix("/mod.rs").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut words = name.trim_end_matches(".rs").split('_');
    words.any(|word| VAGUE.contains(&word))
}

#[test]
fn vocabulary_is_sorted_and_names_its_sources() {
    let rows = rows();
    let mut wrong = Vec::new();
    for row in &rows {
        let words = row.meaning.split_whitespace().count();
        if row.word.is_empty() || !(1..=MEANING_WORDS_MAX).contains(&words) {
            wrong.push(format!("{}: {words} words", row.word));
        }
        if !SOURCES.contains(&&*row.source) {
            wrong.push(format!("{}: nothing is known of {}", row.word, row.source));
        }
    }
    let keys: Vec<String> = rows.iter().map(|row| row.word.to_lowercase()).collect();
    let sorted: Vec<String> = keys
        .iter()
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    assert_eq!(keys, sorted, "in order, each once");
    let unused = SOURCES
        .iter()
        .filter(|it| !rows.iter().any(|row| row.source == ***it));
    wrong.extend(unused.map(|it| format!("no word of {it}")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn glossary_is_made_from_the_vocabulary() {
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).expect("it is there");
    let start = text.find("| word | meaning |").expect("a glossary");
    let length = text[start..].find("\n\n").expect("its end") + 1;
    let made = glossary(&rows());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = [&text[..start], &made, &text[start + length..]].concat();
        fs::write(path, text).expect("there is room");
        return;
    }
    assert_eq!(
        text[start..start + length],
        made,
        "UPDATE_GOLDEN=1 writes it"
    );
}

#[test]
fn vague_file_names_do_not_increase() {
    let all = sources::all();
    let vague: Vec<&str> = all
        .iter()
        .map(|source| &*source.path)
        .filter(|path| is_vague(path))
        .collect();
    assert!(
        vague.len() <= VAGUE_FILES_MAX,
        "more than {VAGUE_FILES_MAX}: a file is called after the thing in it: {vague:#?}"
    );
    assert!(is_vague("a/src/held_back.rs") && is_vague("a/src/told/mod.rs"));
    assert!(!is_vague("a/src/told/values.rs") && !is_vague("a/src/township.rs"));
}
