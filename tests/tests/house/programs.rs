//! Programs are started in one place: by `sdm_system::programs`, which looks no name up in a folder where other
//! users can write.

use crate::sources;

/// Calls that start a program, and shells.
const WAYS: [&str; 5] = [
    "Command::new(",
    "\"/bin/sh\"",
    "user_shell(",
    "execvp",
    "posix_spawn",
];
/// A type whose name contains `Command::new(` and which is not a program's.
const NAMESAKE: &str = "OpenCommand::new(";

/// Files that may use these calls, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("sdm-system/src/programs.rs", "the one place"),
    (
        "sdm-core/src/transport/ssh.rs",
        "imports nothing of ours, and is given the path of ssh",
    ),
    ("sdm/src/app/local.rs", "a line that a person has typed"),
    (
        "sdm/src/app/dap/console_machine.rs",
        "a line that a person has typed",
    ),
    ("sdm/src/app/notify.rs", "the command of --notify"),
    ("sdm/src/cli/gdb.rs", "the command of --wrapper"),
    ("sdm-launch/src/spec.rs", "becomes the launcher at its path"),
    ("sdm-launch/src/ssh.rs", "the first words to a host"),
    (
        "sdm-hosts/src/job/hydra.rs",
        "words to a host's login shell",
    ),
    ("sdm-hosts/src/job/slurm.rs", "words to srun"),
    ("sdm-agent/src/gridengine/mod.rs", "an option of qsub"),
    (
        "sdm-child/src/gdb.rs",
        "the shell by which gdb starts the program",
    ),
];

/// Scripts that a shell runs with another user's PATH, so that they set one for their tools.
const SCRIPTS: [&str; 3] = [
    "sdm-launch/src/ssh.sh",
    "sdm-hosts/src/job/hydra.sh",
    "sdm-hosts/src/job/slurm.sh",
];

#[test]
fn only_listed_modules_start_programs() {
    let mut found = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    let all = sources::all();
    let product = |source: &&sources::Source| !source.is_test && source.member.starts_with("sdm");
    for source in all.iter().filter(product) {
        let exception = EXCEPTIONS.iter().position(|(path, _)| source.path == *path);
        for (index, line) in source.shipped().lines().enumerate() {
            let line = line.trim();
            let is_one = WAYS.iter().any(|way| line.contains(way));
            if !is_one || line.starts_with("//") || line.contains(NAMESAKE) {
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
        "started around sdm_system::programs:\n{}",
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

#[test]
fn scripts_set_path_before_using_tools() {
    const TOOLS: [&str; 12] = [
        "cat", "chmod", "find", "grep", "head", "hostname", "mkfifo", "mktemp", "rm", "sed",
        "tail", "tr",
    ];
    for path in SCRIPTS {
        let text = std::fs::read_to_string(sources::root().join(path)).expect("a script");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let before: Vec<&str> = lines
            .take_while(|line| !line.starts_with("PATH=/"))
            .collect();
        let is_tool = |word: &str| TOOLS.contains(&word);
        let split = |line: &&str| {
            line.split(|c: char| !c.is_ascii_alphanumeric())
                .any(is_tool)
        };
        let early: Vec<_> = before.iter().filter(|line| split(line)).collect();
        assert!(
            before.len() < text.lines().count() - 1,
            "{path} sets no PATH"
        );
        assert!(early.is_empty(), "{path}: {early:?}");
    }
}
