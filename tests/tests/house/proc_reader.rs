//! Files of `/proc` are read in one place: by `sdm_system::proc`, which rejects malformed text in them.

use crate::sources;

/// Files that read some of `/proc` themselves, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("sdm-system/src/proc.rs", "the reader"),
    (
        "sdm-foreign/src/",
        "imports nothing of ours, and its keeper allocates nothing",
    ),
    ("sdm-xstate/src/", "is loaded into gdb, without a library"),
    (
        "sdm-system/src/files/new_file.rs",
        "opens a descriptor again by its name",
    ),
    (
        "sdm-system/src/files.rs",
        "opens a descriptor again by its name",
    ),
    (
        "sdm-system/src/fd_server.rs",
        "names a descriptor for others to open",
    ),
    (
        "sdm-child/src/preload.rs",
        "names a descriptor for gdb to open",
    ),
    (
        "sdm-shell/src/shell/memory_estimate.rs",
        "names a program for a server to look at",
    ),
];

/// Texts by which a source names a process's file, or the list of processes.
const PATHS: [&str; 4] = [
    "\"/proc/{",
    "\"/proc/self/",
    "\"/proc/thread-self/",
    "read_dir(\"/proc",
];

#[test]
fn only_listed_modules_read_proc_files() {
    let mut found = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    let all = sources::all();
    for source in all.iter().filter(|source| !source.is_test) {
        let name = &source.path;
        let exception = EXCEPTIONS
            .iter()
            .position(|(path, _)| name.starts_with(path));
        for (index, line) in source.shipped().lines().enumerate() {
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
