//! Files of `/proc` are read in one place: by `sdm_system::proc`, which knows what no text in them may look like.

use std::path::{Path, PathBuf};

/// Who reads some by itself, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("sdm-system/src/proc.rs", "the reader"),
    (
        "sdm-pmix/src/",
        "imports nothing of ours, and its keeper allocates nothing",
    ),
    ("sdm-xstate/src/", "is loaded into gdb, without a library"),
    (
        "sdm-system/src/files.rs",
        "opens a descriptor again by its name",
    ),
    (
        "sdm-system/src/lender.rs",
        "names a descriptor for others to open",
    ),
    (
        "sdm-backend-gdbmi/src/child/preload.rs",
        "names a descriptor for gdb to open",
    ),
    (
        "sdm-shell/src/shell/memory_estimate.rs",
        "names a program for a server to look at",
    ),
];

/// What a path of a process's file, or of all processes, is written with.
const PATHS: [&str; 4] = [
    "\"/proc/{",
    "\"/proc/self/",
    "\"/proc/thread-self/",
    "read_dir(\"/proc",
];

#[test]
fn nobody_else_reads_files_of_proc() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = root.expect("tests/ is a folder of the workspace");
    let mut found = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    for path in sources(root) {
        let text = std::fs::read_to_string(&path).expect("a source file");
        let name = path.strip_prefix(root).expect("it lies below");
        let name = name.to_str().expect("names of ours are text");
        let exception = EXCEPTIONS
            .iter()
            .position(|(path, _)| name.starts_with(path));
        for (index, line) in text.lines().enumerate() {
            // Whatever follows is tests, which may name paths.
            if line.starts_with("mod tests {") {
                break;
            }
            if !PATHS.iter().any(|path| line.contains(path)) {
                continue;
            }
            match exception {
                Some(at) => used[at] = true,
                None => found.push(format!("{name}:{}: {}", index + 1, line.trim())),
            }
        }
    }
    assert!(
        found.is_empty(),
        "use sdm_system::proc, in tests sdm_tests::processes:\n{}",
        found.join("\n")
    );
    let unused = EXCEPTIONS.iter().zip(&used).filter(|(_, used)| !**used);
    let unused: Vec<_> = unused.map(|(exception, _)| exception).collect();
    assert!(unused.is_empty(), "no exceptions any more: {unused:?}");
}

/// The Rust files of every crate: of what is delivered, and of what the tests and benches share.
fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root).expect("the workspace").flatten();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.path().join("src")).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 300, "{} files", files.len());
    files
}
