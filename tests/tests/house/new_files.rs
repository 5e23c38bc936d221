//! Files are made in one place: by `sdm_system::files`, which follows no link of another user's.

use crate::sources;

/// Calls that create a file, or truncate one.
const WAYS: [&str; 9] = [
    "fs::write(",
    "fs::copy(",
    "File::create",
    ".create(true)",
    ".create_new(true)",
    ".truncate(true)",
    "O_CREAT",
    "O_TRUNC",
    "mkstemp",
];

/// Files that may use these calls, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("sdm-system/src/files/new_file.rs", "the one place"),
    (
        "sdm-agent/src/local/output.rs",
        "a job's output, in the folder of the user's own that its record is in",
    ),
    (
        "sdm-xstate/src/opens/sys.rs",
        "what gdb makes: its own `open` passes there",
    ),
    (
        "sdm-rm/src/socket_path.rs",
        "a lock in the runtime folder, which is the user's own",
    ),
    (
        "sdm/src/app/manual.rs",
        "manual pages for all users, in the folder that the user names",
    ),
    (
        "sdm-rm/src/definition.rs",
        "a lock beside the configuration",
    ),
];

#[test]
fn only_listed_modules_create_files() {
    let mut found = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    let all = sources::all();
    let product = |source: &&sources::Source| !source.is_test && source.member.starts_with("sdm");
    for source in all.iter().filter(product) {
        let exception = EXCEPTIONS.iter().position(|(path, _)| source.path == *path);
        for (index, line) in source.shipped().lines().enumerate() {
            let line = line.trim();
            if line.starts_with("//") || !WAYS.iter().any(|way| line.contains(way)) {
                continue;
            }
            match exception {
                Some(at) => used[at] = true,
                None => found.push(format!("{}:{}: {line}", source.path, index + 1)),
            }
        }
    }
    assert!(
        found.is_empty(),
        "made around sdm_system::files:\n{}",
        found.join("\n")
    );
    let unused: Vec<&str> = EXCEPTIONS
        .iter()
        .zip(used)
        .filter(|(_, used)| !used)
        .map(|((path, _), _)| *path)
        .collect();
    assert!(unused.is_empty(), "need no leave: {unused:?}");
}
