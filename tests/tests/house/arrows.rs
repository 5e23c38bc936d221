//! Tests of imports by the Cargo.toml files: those of our crates against a table below, and those of other libraries
//! against docs/libraries.md.

use std::collections::BTreeSet;
use std::path::Path;

/// Every crate of ours and the crates of ours that it may import.
const ARROWS: &[(&str, &[&str])] = &[
    ("sdm-idset", &[]),
    ("sdm-text", &[]),
    ("sdm-system", &["sdm-text"]),
    ("sdm-core", &["sdm-idset"]),
    ("sdm-bootstrap", &["sdm-text", "sdm-core", "sdm-system"]),
    ("sdm-mpi", &[]),
    ("sdm-debug", &["sdm-idset", "sdm-core", "sdm-mpi"]),
    ("sdm-fake", &["sdm-idset", "sdm-core", "sdm-debug"]),
    (
        "sdm-sim",
        &["sdm-idset", "sdm-core", "sdm-debug", "sdm-keep"],
    ),
    ("sdm-mi", &[]),
    ("sdm-check", &["sdm-text", "sdm-system", "sdm-mpi"]),
    (
        "sdm-child",
        &[
            "sdm-check",
            "sdm-text",
            "sdm-idset",
            "sdm-system",
            "sdm-core",
            "sdm-debug",
            "sdm-mpi",
            "sdm-inferior",
        ],
    ),
    (
        "sdm-gdb",
        &[
            "sdm-check",
            "sdm-text",
            "sdm-idset",
            "sdm-system",
            "sdm-doctor",
            "sdm-core",
            "sdm-debug",
            "sdm-child",
            "sdm-inspect",
            "sdm-mi",
            "sdm-mpi",
            "sdm-foreign",
        ],
    ),
    (
        "sdm-backend-gdbmi",
        &[
            "sdm-check",
            "sdm-text",
            "sdm-idset",
            "sdm-system",
            "sdm-doctor",
            "sdm-core",
            "sdm-debug",
            "sdm-gdb",
            "sdm-child",
            "sdm-inferior",
            "sdm-inspect",
            "sdm-mi",
            "sdm-mpi",
            "sdm-foreign",
        ],
    ),
    ("sdm-inferior", &["sdm-text", "sdm-system"]),
    (
        "sdm-inspect",
        &[
            "sdm-text",
            "sdm-system",
            "sdm-debug",
            "sdm-mpi",
            "sdm-foreign",
        ],
    ),
    ("sdm-hosts", &["sdm-text", "sdm-system", "sdm-mpi"]),
    ("sdm-doctor", &["sdm-text", "sdm-system"]),
    (
        "sdm-launch",
        &[
            "sdm-text",
            "sdm-system",
            "sdm-core",
            "sdm-bootstrap",
            "sdm-hosts",
        ],
    ),
    (
        "sdm-foreign",
        &[
            "sdm-text",
            "sdm-idset",
            "sdm-system",
            "sdm-hosts",
            "sdm-runtime",
        ],
    ),
    ("sdm-xstate", &[]),
    ("sdm-runtime", &["sdm-text"]),
    (
        "sdm-agent",
        &["sdm-text", "sdm-system", "sdm-hosts", "sdm-runtime"],
    ),
    ("sdm-rm", &["sdm-text", "sdm-system", "sdm-runtime"]),
    ("sdm-keep", &["sdm-text", "sdm-system"]),
    (
        "sdm-diagnose",
        &["sdm-text", "sdm-idset", "sdm-debug", "sdm-mpi"],
    ),
    (
        "sdm-view",
        &[
            "sdm-text",
            "sdm-idset",
            "sdm-debug",
            "sdm-mpi",
            "sdm-diagnose",
        ],
    ),
    (
        "sdm-session",
        &[
            "sdm-text",
            "sdm-idset",
            "sdm-system",
            "sdm-core",
            "sdm-bootstrap",
            "sdm-debug",
            "sdm-hosts",
            "sdm-launch",
        ],
    ),
    (
        "sdm-shell",
        &[
            "sdm-text",
            "sdm-idset",
            "sdm-core",
            "sdm-debug",
            "sdm-mpi",
            "sdm-hosts",
            "sdm-session",
            "sdm-diagnose",
            "sdm-view",
        ],
    ),
    (
        "sdm-dap",
        &[
            "sdm-text",
            "sdm-idset",
            "sdm-core",
            "sdm-debug",
            "sdm-mpi",
            "sdm-session",
            "sdm-view",
            "sdm-shell",
            "sdm-web",
        ],
    ),
    (
        "sdm-screen",
        &[
            "sdm-text",
            "sdm-idset",
            "sdm-debug",
            "sdm-view",
            "sdm-runtime",
        ],
    ),
    ("sdm-web", &["sdm-text", "sdm-view"]),
    (
        "sdm-master",
        &["sdm-system", "sdm-core", "sdm-bootstrap", "sdm-debug"],
    ),
    (
        "sdm-server",
        &[
            "sdm-idset",
            "sdm-system",
            "sdm-doctor",
            "sdm-core",
            "sdm-bootstrap",
            "sdm-debug",
            "sdm-foreign",
            "sdm-fake",
            "sdm-backend-gdbmi",
            "sdm-child",
        ],
    ),
    (
        "sdm",
        &[
            "sdm-check",
            "sdm-text",
            "sdm-idset",
            "sdm-doctor",
            "sdm-system",
            "sdm-core",
            "sdm-bootstrap",
            "sdm-debug",
            "sdm-fake",
            "sdm-hosts",
            "sdm-inferior",
            "sdm-launch",
            "sdm-foreign",
            "sdm-rm",
            "sdm-runtime",
            "sdm-keep",
            "sdm-session",
            "sdm-diagnose",
            "sdm-view",
            "sdm-shell",
            "sdm-dap",
            "sdm-screen",
            "sdm-web",
        ],
    ),
];

/// Members that may import every crate, and that no crate may import.
const LEAVES: &[&str] = &["tests", "benches"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is a folder of the workspace")
}

/// The crates named in the `[dependencies]` of a Cargo.toml, or of the workspace, its platform tables included.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let path = root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut in_dependencies = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies") && !line.contains("dev-dependencies");
        } else if in_dependencies && line.starts_with(|it: char| it.is_ascii_alphabetic()) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.insert(name.to_owned());
        }
    }
    found
}

/// The crates of ours that a crate imports.
fn imports(folder: &str) -> BTreeSet<String> {
    let ours = |name: &String| name.starts_with("sdm");
    dependencies(folder).into_iter().filter(ours).collect()
}

/// The libraries of others among these crates.
fn libraries(crates: BTreeSet<String>) -> BTreeSet<String> {
    let others = |name: &String| !name.starts_with("sdm");
    crates.into_iter().filter(others).collect()
}

/// The libraries in the first cells of a chapter's table, each with a reason in its last cell.
fn explained(chapter: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for row in chapter.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let is_explained = cells.last().is_some_and(|reason| reason.len() > 10);
        assert!(is_explained, "no reason: {row}");
        let names = cells.first().into_iter().flat_map(|it| it.split(", "));
        found.extend(names.map(|name| name.trim_matches('`').to_owned()));
    }
    found
}

#[test]
fn crates_import_only_allowed_crates() {
    for (name, allowed) in ARROWS {
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(imports(name), allowed, "{name}, by its Cargo.toml and here");
    }
}

/// Crates that are programs are not imported; tests and benches start them.
#[test]
fn no_library_crate_imports_a_program_crate() {
    const PROGRAMS: &[&str] = &["sdm", "sdm-master", "sdm-server"];
    for name in ARROWS.iter().map(|(name, _)| name).chain(LEAVES) {
        for program in PROGRAMS {
            assert!(
                !imports(name).contains(*program),
                "{name} imports {program}"
            );
        }
    }
}

#[test]
fn every_crate_is_in_the_import_table() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace's file");
    let members = text
        .split("members = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let members = members.expect("the workspace lists its members");
    let listed: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    let known: BTreeSet<&str> = ARROWS
        .iter()
        .map(|(name, _)| *name)
        .chain(LEAVES.iter().copied())
        .collect();
    assert_eq!(listed, known);
}

#[test]
fn every_library_has_a_reason_in_its_table() {
    let path = root().join("docs/libraries.md");
    let text = std::fs::read_to_string(path).expect("the page of libraries");
    let (installed, tried) = text.split_once("\n## In tests").expect("two tables");
    let shipped = ARROWS.iter().map(|(name, _)| dependencies(name));
    let shipped = libraries(shipped.flatten().collect());
    assert_eq!(
        explained(installed),
        shipped,
        "in programs that are installed"
    );
    let others = libraries(dependencies(""));
    let others: BTreeSet<String> = others.difference(&shipped).cloned().collect();
    let tried = tried.split("\n## ").next().unwrap_or_default();
    assert_eq!(explained(tried), others, "in tests and benches only");
}

#[test]
fn imports_of_a_crate_are_read_from_its_manifest() {
    assert!(imports("sdm-server").contains("sdm-backend-gdbmi"));
    assert!(!imports("sdm-core").contains("sdm-debug"));
}
