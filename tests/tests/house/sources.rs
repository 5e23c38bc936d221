//! The sources of the workspace, for the tests that read them. They are read as text, as rustfmt leaves it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A source file.
pub(super) struct Source {
    /// The folder of its crate: `sdm-core`.
    pub(super) member: String,
    /// Its path from the workspace's root.
    pub(super) path: String,
    pub(super) text: String,
    /// True if it is compiled for tests only.
    pub(super) is_test: bool,
}

impl Source {
    /// Its module: `["node", "open"]`, empty for the crate itself. `None` outside of `src`, and for programs of a
    /// single file.
    pub(super) fn module(&self) -> Option<Vec<String>> {
        let inner = self.path.strip_prefix(&self.member)?;
        let inner = inner.strip_prefix("/src/")?.strip_suffix(".rs")?;
        let inner = inner.strip_suffix("/mod").unwrap_or(inner);
        let parts: Vec<&str> = match inner {
            "lib" | "main" => Vec::new(),
            inner => inner.split('/').collect(),
        };
        let is_program = parts.first() == Some(&"bin");
        (!is_program).then(|| parts.into_iter().map(str::to_owned).collect())
    }

    /// Its text without the parts for tests only.
    pub(super) fn shipped(&self) -> &str {
        let mut marks = self.text.match_indices("#[cfg(test)]\n");
        let inline = marks.find(|(at, mark)| {
            let line = self.text[at + mark.len()..].lines().next();
            line.is_some_and(|line| line.ends_with("mod tests {"))
        });
        &self.text[..inline.map_or(self.text.len(), |(at, _)| at)]
    }
}

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is a folder of the workspace")
}

/// Every Rust file of every crate.
pub(super) fn all() -> Vec<Source> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root()).expect("the workspace").flatten() {
        if !entry.path().join("Cargo.toml").is_file() {
            continue;
        }
        let member = entry.file_name().into_string().expect("a name of text");
        for folder in ["src", "tests", "examples", "benches"] {
            read(&member, &entry.path().join(folder), &mut found);
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 500, "{} files", found.len());
    let tests = for_tests(&found);
    for source in &mut found {
        let below = |test: &String| source.path.starts_with(&**test);
        source.is_test |= tests.iter().any(below);
    }
    found
}

fn read(member: &str, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(member, &path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let path = path.strip_prefix(root()).expect("below it");
            let path = path.to_str().expect("a path of text").to_owned();
            found.push(Source {
                member: member.to_owned(),
                is_test: !path.starts_with(&format!("{member}/src/")),
                path,
                text,
            });
        }
    }
}

/// Path prefixes of modules that are declared under `#[cfg(test)]`.
fn for_tests(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        let stem = source.path.trim_end_matches(".rs");
        let folder = match stem.rsplit_once('/') {
            Some((folder, "mod" | "lib" | "main")) => folder,
            _ => stem,
        };
        let mut lines = source.text.lines();
        while let Some(line) = lines.next() {
            if line.trim() != "#[cfg(test)]" {
                continue;
            }
            let declared = lines.next().and_then(|line| line.trim().strip_suffix(';'));
            if let Some((_, name)) = declared.and_then(|line| line.split_once("mod ")) {
                found.insert(format!("{folder}/{name}.rs"));
                found.insert(format!("{folder}/{name}/"));
            }
        }
    }
    found
}
