//! Each row of `docs/requirements.md` and `docs/claims.md` names a test that exists, or says that there is none, and the
//! counts are right.

use std::fs;

use crate::cited::{is_there, quoted};
use crate::sources::root;
use crate::test_names::{Test, tests, unit_tests};

const DOCUMENT: &str = "docs/requirements.md";
/// The documents with rows, each with the number of rows that it has at least.
const DOCUMENTS: [(&str, usize); 2] = [(DOCUMENT, 200), ("docs/claims.md", 45)];

/// True if a test exists, named as `program module::function`. A program is a test program, or a crate.
fn exists(name: &str, programs: &[Test], crates: &[Test]) -> bool {
    let Some((program, name)) = name.split_once(' ') else {
        return false;
    };
    let places = ["/", ".rs"].map(|end| format!("/tests/{program}{end}"));
    let nested = format!("tests/tests/{program}/");
    let is_in_program = |test: &&Test| {
        let path = &test.path;
        path.starts_with(&nested) || places.iter().any(|place| path.contains(place))
    };
    let mut in_program = programs.iter().filter(is_in_program);
    let mut in_crate = crates.iter().filter(|test| test.member == program);
    in_program.any(|test| test.name == name) || in_crate.any(|test| test.name == name)
}

/// The rows of the tables with three cells: the sentence, the place, and the test.
fn rows(text: &str) -> Vec<[&str; 3]> {
    let rows = text.lines().filter_map(|line| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<&str> = cells.split(" | ").collect();
        cells.try_into().ok()
    });
    let is_head = |row: &[&str; 3]| row[2] == "test" || row[0].starts_with("---");
    rows.filter(|row| !is_head(row)).collect()
}

/// Fault of a row; `None` for a right one.
fn fault([sentence, place, test]: [&str; 3], exists: impl Fn(&str) -> bool) -> Option<String> {
    let says_why = test.contains("not met: ") || test.contains("no test");
    let named = quoted(test);
    let missing = named.iter().find(|name| !exists(name));
    let is_path = |cited: &&&str| !cited.contains([' ', '<', '$']) && cited.contains('/');
    let all = quoted(place);
    let lost = all.iter().filter(is_path).find(|path| !is_there(path));
    match (missing, lost) {
        (Some(name), _) => Some(format!("{sentence}: no test `{name}`")),
        (None, Some(path)) => Some(format!("{sentence}: no file `{path}`")),
        _ if named.is_empty() && !says_why => {
            Some(format!("{sentence}: neither a test nor a reason"))
        }
        _ => None,
    }
}

/// Numbers of rows: all, shown by tests, not met, and without a test.
fn counts(rows: &[[&str; 3]]) -> [usize; 4] {
    let unmet = rows.iter().filter(|row| row[2].contains("not met: "));
    let unmet = unmet.count();
    let bare = |row: &&[&str; 3]| row[2].contains("no test") && !row[2].contains("not met: ");
    let bare = rows.iter().filter(bare).count();
    [rows.len(), rows.len() - unmet - bare, unmet, bare]
}

#[test]
fn requirements_and_claims_cite_existing_tests() {
    let (programs, crates) = (tests(), unit_tests());
    let exists = |name: &str| exists(name, &programs, &crates);
    for (document, rows_min) in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).expect("a document");
        let rows = rows(&text);
        assert!(rows.len() >= rows_min, "{document}: {} rows", rows.len());
        let wrong: Vec<_> = rows.iter().filter_map(|row| fault(*row, exists)).collect();
        assert!(wrong.is_empty(), "{document}: {wrong:#?}");
    }
}

#[test]
fn table_of_requirement_counts_matches_the_rows() {
    let text = fs::read_to_string(root().join(DOCUMENT)).expect("a document");
    let mut sum = [0; 4];
    let line = |name: &str, [all, shown, unmet, bare]: [usize; 4]| {
        format!("| {name} | {all} | {shown} | {unmet} | {bare} |")
    };
    let mut missing = Vec::new();
    for chapter in text.split("\n## ").skip(1) {
        let title = chapter.lines().next().unwrap_or_default();
        let its = counts(&rows(chapter));
        if its[0] > 0 {
            (0..4).for_each(|at| sum[at] += its[at]);
            missing.push(line(title, its));
        }
    }
    missing.push(line("all", sum));
    missing.retain(|line| !text.contains(line));
    assert!(missing.is_empty(), "not in {DOCUMENT}: {missing:#?}");
}

#[test]
fn requirement_with_a_missing_place_or_test_is_a_fault() {
    let exists = |name: &str| name == "wire agent::a";
    let fault = |place, test| fault(["s", place, test], exists);
    assert_eq!(
        fault("`tests/tests/house/main.rs`", "`wire agent::a`"),
        None
    );
    assert_eq!(fault("`sdm run x/y`", "not met: nobody asks"), None);
    assert!(fault("`docs/no-such.md`", "`wire agent::a`").is_some());
    assert!(fault("", "`wire agent::b`").is_some());
    assert!(fault("", "see the code").is_some());
    let rows =
        rows("| sentence | place | test |\n| --- | --- | --- |\n| a | b | no test |\n| a | b |");
    assert_eq!(counts(&rows), [1, 0, 0, 1]);
}
