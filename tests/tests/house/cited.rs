//! Existence of everything that the documents cite: files, scripts, and tests by their names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::prose;

/// Documents that cite sources.
const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "docs/api.md",
    "docs/diagnosis.md",
    "docs/guide.md",
    "docs/install.md",
    "docs/json.md",
    "docs/launchers.md",
    "docs/modules.md",
    "docs/reference.md",
    "docs/security.md",
    "docs/simulator.md",
    "docs/tutorial.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a folder of the workspace")
}

/// The documents, the decisions among them.
fn documents() -> Vec<String> {
    let decisions = prose::decisions()
        .into_iter()
        .map(|it| format!("docs/adr/{it}"));
    let others = DOCUMENTS.iter().map(|it| (*it).to_owned());
    others.chain(decisions).collect()
}

/// All sources, with their paths from the root.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let name = entry.file_name();
            let path = entry.path();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if path.is_dir() && !hidden && name != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let path = path.strip_prefix(root()).expect("it is below the root");
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// Texts between backticks, outside of examples.
pub(super) fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|part| part.split('`').skip(1).step_by(2))
        .collect()
}

fn has_function(file: &Path, name: &str) -> bool {
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    text.contains(&format!("fn {name}("))
}

/// Fault of a citation; `None` if it is right, or does not cite a file of ours.
fn wrong(cited: &str, sources: &[PathBuf]) -> Option<String> {
    let missing = |what: &str| Some(format!("`{cited}`: there is no {what}"));
    if let Some(script) = cited.strip_prefix("scripts/") {
        let name = script.split_whitespace().next().unwrap_or_default();
        let there = root().join("scripts").join(name).is_file();
        return (!there).then(|| missing("such script")).flatten();
    }
    let (place, function) = match cited.split_once(".rs::") {
        Some((file, function)) => (format!("{file}.rs"), Some(function)),
        None => (cited.to_owned(), None),
    };
    let first = place.split('/').next().unwrap_or_default();
    if place.ends_with(".rs") && !place.contains(' ') {
        // `node/answers.rs` and `sys.rs` are enough: any file that ends so.
        let mut named = sources.iter().filter(|path| path.ends_with(&place));
        return match function {
            Some(function) if !named.any(|file| has_function(file, function)) => {
                missing("such function in such a file")
            }
            None if named.next().is_none() => missing("such file"),
            _ => None,
        };
    }
    if !matches!(first, "" | ".")
        && place.contains('/')
        && root().join(first).join("Cargo.toml").is_file()
    {
        return (!is_there(&place))
            .then(|| missing("such folder or file"))
            .flatten();
    }
    module_tests(cited, sources)
        .filter(|right| !right)
        .and_then(|_| missing("such test"))
}

/// True if this path exists below the root; a `*` in its last part matches anything.
pub(super) fn is_there(place: &str) -> bool {
    let path = root().join(place);
    let Some((before, after)) = place
        .rsplit('/')
        .next()
        .and_then(|last| last.split_once('*'))
    else {
        return path.exists();
    };
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    entries.into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(before) && name.ends_with(after)
    })
}

/// Whether `link::tests` or `link::tests::control_overtakes_bulk` exists; `None` for any other text.
fn module_tests(cited: &str, sources: &[PathBuf]) -> Option<bool> {
    let (module, test) = match cited.split_once("::tests") {
        Some((module, "")) => (module, None),
        Some((module, rest)) => (module, Some(rest.strip_prefix("::")?)),
        None => return None,
    };
    let module = module.replace("::", "/");
    let places =
        ["/tests.rs", "/tests/mod.rs", "/mod.rs", ".rs"].map(|end| format!("{module}{end}"));
    let mut files = sources
        .iter()
        .filter(|path| places.iter().any(|place| path.ends_with(place)));
    Some(match test {
        Some(test) => files.any(|file| has_function(file, test)),
        None => files.any(|file| {
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            text.contains("mod tests")
        }),
    })
}

#[test]
fn documents_cite_existing_files_and_tests() {
    let sources = sources();
    let mut cited = 0;
    let mut wrongs = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).expect("a document");
        for citation in quoted(&text) {
            cited += usize::from(citation.contains(".rs") || citation.contains("::tests"));
            wrongs.extend(wrong(citation, &sources).map(|why| format!("{document}: {why}")));
        }
    }
    assert!(cited > 200, "{cited} are found");
    assert!(wrongs.is_empty(), "{wrongs:#?}");
}

/// Every invariant cites the test that proves it.
#[test]
fn every_invariant_cites_a_test() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let invariants = text.split("## Invariants").nth(1).expect("a chapter");
    let invariants = invariants.split("\n## ").next().expect("its end");
    let one = |line: &str| line.starts_with(|c: char| c.is_ascii_digit());
    let mut items: Vec<String> = Vec::new();
    for line in invariants.lines() {
        match items.last_mut() {
            _ if one(line) => items.push(line.to_owned()),
            Some(item) => item.push_str(line),
            None => {}
        }
    }
    assert!(items.len() >= 12, "{items:?}");
    for item in items {
        let proved = quoted(&item)
            .iter()
            .any(|it| it.contains("tests") || it.starts_with("fuzz_"));
        assert!(proved || item.contains("The simulator's ledger"), "{item}");
    }
}

#[test]
fn citation_of_a_missing_file_or_test_is_detected() {
    let sources = sources();
    for cited in [
        "sdm-core/src/no_such.rs",
        "sdm-core/tests/link*.rs",
        "node/no_such.rs",
        "tests/src/lib.rs::no_such_test",
        "link::tests::no_such_test",
        "no_such::tests",
        "scripts/no-such",
        "sdm/src/no_such",
    ] {
        assert!(wrong(cited, &sources).is_some(), "{cited}");
    }
    for cited in [
        "/proc/PID/fd",
        "sdm run -n 2",
        "node3:7004",
        "called://3",
        "a.rs or b",
    ] {
        assert_eq!(wrong(cited, &sources), None);
    }
}
