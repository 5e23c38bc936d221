//! Doc comments begin with their subject, and tests have short names: `tests/wording.md` has how many of each crate do
//! not, which become fewer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::sources::{self, Source, root};

/// First words of a comment that are no subject.
const OPENINGS: &[&str] = &["How", "What", "Where", "Who", "Whom", "Whose"];

/// Maximum number of characters of a test's name.
const NAME_CHARS_MAX: usize = 60;

/// First words of a test's name that are no subject.
const PRONOUNS: &[&str] = &[
    "how", "it", "that", "they", "those", "what", "where", "which", "who", "whoever", "whom",
    "whose", "why",
];

/// The file with the numbers of faults of the crates.
const LIST: &str = "tests/wording.md";

/// Wording faults of a crate: comments and test names.
#[derive(Default)]
struct Crate {
    comments: Vec<String>,
    names: Vec<String>,
}

/// The first line of each doc comment, without `///` or `//!`.
fn openings(text: &str) -> impl Iterator<Item = &str> {
    let doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let mut is_open = false;
    text.lines().map(str::trim).filter_map(move |line| {
        let begins = doc(line) && !is_open;
        is_open = doc(line);
        begins.then(|| line[3..].trim())
    })
}

/// The names of the tests in a text.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let rest = text.split("#[test]\n").skip(1);
    rest.filter_map(|rest| rest.split_once("fn ")?.1.split('(').next())
}

/// True if a test's name is too long, or begins with a pronoun.
fn is_poor(name: &str) -> bool {
    let first = name.split('_').next().unwrap_or_default();
    name.len() > NAME_CHARS_MAX || PRONOUNS.contains(&first)
}

fn found(sources: &[Source]) -> BTreeMap<String, Crate> {
    let mut found: BTreeMap<String, Crate> = BTreeMap::new();
    for source in sources {
        let all = found.entry(source.member.clone()).or_default();
        let begins = |line: &&str| OPENINGS.contains(&line.split(' ').next().unwrap_or_default());
        let comments = openings(&source.text).filter(begins);
        all.comments
            .extend(comments.map(|it| format!("{}: {it}", source.path)));
        let names = tests(&source.text).filter(|name| is_poor(name));
        all.names
            .extend(names.map(|it| format!("{}: {it}", source.path)));
    }
    found
}

/// The table: of each crate how many comments and how many names.
fn listed() -> BTreeMap<String, (usize, usize)> {
    let text = fs::read_to_string(root().join(LIST)).expect("the list");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let name = cells.next().expect("a crate").trim_end_matches('`');
        let mut count = || {
            cells
                .next()
                .and_then(|it| it.parse().ok())
                .expect("a number")
        };
        (name.to_owned(), (count(), count()))
    })
    .collect()
}

fn table(counts: &BTreeMap<String, (usize, usize)>) -> String {
    let mut text = "# Wording that becomes less\n\n\
        Doc comments that begin with What, Who, Where or How, and names of tests of more than 60 characters or with a\n\
        pronoun in front, by crate.\n\
        `tests/tests/house/wording.rs` fails where there are more; `UPDATE_GOLDEN=1` lowers a number, and raises none.\n\n\
        | crate | comments | names |\n| --- | --- | --- |\n"
        .to_owned();
    for (name, (comments, names)) in counts {
        writeln!(text, "| `{name}` | {comments} | {names} |").expect("a string takes all");
    }
    text
}

#[test]
fn wording_faults_do_not_increase() {
    let mut counts = listed();
    let mut wrong = String::new();
    for (name, all) in found(&sources::all()) {
        let (comments, names) = counts.entry(name.clone()).or_default();
        for (found, listed) in [(&all.comments, comments), (&all.names, names)] {
            if found.len() > *listed {
                writeln!(
                    wrong,
                    "{name}: {} and not {listed}: {found:#?}",
                    found.len()
                )
                .expect("a string takes all");
            }
            *listed = found.len().min(*listed);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(root().join(LIST), table(&counts)).expect("there is room");
    }
}

#[test]
fn wording_faults_are_detected() {
    let text = "//! What is here.\n//! Where it is.\n\n/// A thing.\n/// Who made it.\nfn a() {}\n    /// Whom it is for.\n";
    let begun: Vec<&str> = openings(text).collect();
    assert_eq!(begun, ["What is here.", "A thing.", "Whom it is for."]);
    let text = format!(
        "#[{}]\nfn one() {{}}\n#[{}]\n#[ignore]\nfn two() {{}}\n",
        "test", "test"
    );
    let names: Vec<&str> = tests(&text).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(is_poor("what_is_killed_ends") && is_poor("it_ends") && is_poor(&"a".repeat(61)));
    assert!(!is_poor("killed_rank_ends") && !is_poor(&"a".repeat(60)));
}
