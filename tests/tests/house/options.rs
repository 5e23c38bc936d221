//! The options and commands of `sdm` that the documents show exist in the manual pages.

use std::collections::BTreeSet;
use std::fs;

use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;

use crate::prose;
use crate::sources::root;

/// Options of other programs, each with the program.
const OTHERS: &[(&str, &str)] = &[
    ("--account", "sbatch"),
    ("--agent-path", "sdm-agent"),
    ("--arch", "scripts/release"),
    ("--bcast", "srun"),
    ("--bind-to", "mpirun"),
    ("--built", "scripts/release-check"),
    ("--check", "sha256sum"),
    ("--doctor", "sdm-server"),
    ("--eof", "the prompt's `send`"),
    ("--handover", "sdm-server"),
    ("--hold", "sbatch"),
    ("--hosts-file", "sdm-agent"),
    ("--hosts", "PALS's mpiexec"),
    ("--id", "sdm-server"),
    ("--ids", "sdm-agent"),
    ("--install", "scripts/release"),
    ("--install-extension", "code"),
    ("--jobid", "srun"),
    ("--kill-on-bad-exit", "srun"),
    ("--label", "srun"),
    ("--map-by", "mpirun"),
    ("--mem", "sbatch"),
    ("--mpi", "srun"),
    ("--no-index", "pip"),
    ("--nodelist", "srun"),
    ("--nodes", "srun"),
    ("--ntasks", "flux"),
    ("--ntasks-per-node", "srun"),
    ("--overlap", "srun"),
    ("--oversubscribe", "mpirun"),
    ("--own-streams", "sdm-server"),
    ("--partition", "sbatch"),
    ("--path", "sdm-agent"),
    ("--requires", "flux"),
    ("--preload-binary", "mpirun"),
    ("--proxy", "sdm-agent"),
    ("--quiet", "scripts/install"),
    ("--remove", "scripts/install"),
    ("--rm", "sdm-agent"),
    ("--run-job", "sdm-agent"),
    ("--runtime-options", "prterun"),
    ("--share", "sdm-server"),
    ("--signal", "sbatch"),
    ("--static", "scripts/install"),
    ("--steps", "squeue, and the solver of an example"),
    ("--tag-output", "mpirun"),
    ("--user", "systemctl"),
];

/// Documents about using SDM, not about working on it.
fn documents() -> Vec<&'static str> {
    let of_work = [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/modules.md",
        "docs/performance.md",
        "docs/simulator.md",
        "docs/skips.md",
        "docs/test-parts.md",
        "docs/api.md",
    ];
    let all = prose::DOCUMENTS.iter().copied();
    let all = all.chain(["docs/json.md", "docs/security.md"]);
    all.filter(|it| !of_work.contains(it)).collect()
}

/// Long options in a text, without their values.
fn options(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "-_".contains(c)) {
            continue;
        }
        let rest = &text[at + 2..];
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('-');
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            found.insert(&text[at..at + 2 + name.len()]);
        }
    }
    found
}

/// The words after `sdm ` at the beginning of a command line, in code and in examples.
fn verbs(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for start in ["`sdm ", "\n    sdm ", "$ sdm "] {
        for (at, _) in text.match_indices(start) {
            let rest = &text[at + start.len()..];
            let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '-'));
            found.insert(&rest[..end.unwrap_or(rest.len())]);
        }
    }
    // `sdm is 0.1.0, and ...` is a message.
    found.retain(|it| it.starts_with(|c: char| c.is_ascii_lowercase()) && *it != "is");
    found
}

#[test]
fn documents_show_existing_options_and_commands() {
    let place = Place::new();
    let _done = Sdm::new(&place, "man").args(["pages"]).finish().code(0);
    let mut pages = String::new();
    let mut commands = BTreeSet::from(["help".to_owned()]);
    for entry in fs::read_dir(place.path().join("pages")).expect("they are written") {
        let entry = entry.expect("it can be read");
        let text = fs::read_to_string(entry.path()).expect("a page");
        let text = text.replace("\\-", "-");
        pages.push_str(&text.replace("\\fB", " ").replace("\\fR", " "));
        let name = entry.file_name().into_string().expect("a name of text");
        let verb = name.trim_end_matches(".1").strip_prefix("sdm-");
        commands.extend(verb.map(str::to_owned));
    }
    let known = options(&pages);
    assert!(
        known.len() > 80 && commands.len() > 30,
        "{known:?} {commands:?}"
    );
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(document)).expect("a document");
        for option in options(&text) {
            let other = OTHERS.iter().find(|(name, _)| *name == option);
            used.extend(other.map(|(name, _)| *name));
            if !known.contains(option) && other.is_none() {
                wrong.push(format!("{document}: {option}"));
            }
        }
        let verbs = verbs(&text).into_iter();
        let verbs = verbs.filter(|verb| !commands.contains(*verb));
        wrong.extend(verbs.map(|verb| format!("{document}: sdm {verb}")));
    }
    let unused = OTHERS.iter().filter(|(name, _)| !used.contains(name));
    wrong.extend(unused.map(|(name, of)| format!("{name} of {of} is nowhere")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn options_and_commands_are_extracted_from_text() {
    let text =
        "a--b `--hang-timeout 5`, --pmix=on; -- ./a --\n    sdm run -n 4\n$ sdm ps\n`sdm --help`";
    assert_eq!(
        options(text),
        BTreeSet::from(["--hang-timeout", "--help", "--pmix"])
    );
    assert_eq!(verbs(text), BTreeSet::from(["ps", "run"]));
}
