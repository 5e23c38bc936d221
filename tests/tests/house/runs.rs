//! Decisions of `scripts/test`: skips, rows of parts, the tests of a change, comparisons with earlier runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sdm_tests::job::Folder;

use crate::sources;

/// Crates that no test of another program covers, with reasons.
const UNCOVERED: &[(&str, &str)] = &[
    ("tests", "its own files choose its tests"),
    ("benches", "its own tests are all there is"),
];

/// Runs lines of bash behind `source scripts/parts`, in a folder. Returns its exit code and output.
fn bash(folder: &Path, lines: &str) -> (Option<i32>, String) {
    let root = sources::root();
    let text = format!(
        "set -euo pipefail\nROOT={0}\nsource {0}/scripts/parts\n{lines}",
        root.display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &text]).current_dir(folder);
    command.env("CARGO_TARGET_DIR", folder.join("target"));
    let output = command.stdin(Stdio::null()).output().expect("a shell");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Writes the log of a run with a skip into a new folder.
fn logs(folder: &Path, name: &str, reason: &str) -> PathBuf {
    let logs = folder.join(name);
    fs::create_dir(&logs).expect("a new folder");
    let text = format!("a test\n    SKIP: {reason}\n");
    fs::write(logs.join("tests.log"), text).expect("a file");
    logs
}

#[test]
fn unlisted_skip_fails_the_run() {
    let folder = Folder::new("skips");
    let judged = |options: &str, reason: &str| {
        let name = format!("{options}{reason}").replace([' ', ':'], "");
        let logs = logs(&folder.0, &name, reason);
        let line = format!("$ROOT/scripts/test-skips {options} {}", logs.display());
        let (code, said) = bash(&folder.0, &line);
        assert!(said.contains(&format!("1 skipped: {reason}\n")), "{said}");
        code
    };
    let fetched = "openmpi5: no Open MPI 5.0.11: no network";
    assert_eq!(judged("", "root may look at everything"), Some(0));
    assert_eq!(judged("--whole", "root may look at everything"), Some(0));
    assert_eq!(judged("", fetched), Some(0));
    assert_eq!(judged("--whole", fetched), Some(1));
    assert_eq!(judged("", "openmpi5: a reason of today"), Some(1));
    assert_eq!(judged("", "it did not work"), Some(1));
    // The report of the runner has some characters encoded.
    let report = logs(
        &folder.0,
        "report",
        "somebody else&apos;s client: this is not root",
    );
    let line = format!("$ROOT/scripts/test-skips {}", report.display());
    let (code, said) = bash(&folder.0, &line);
    assert_eq!(
        said,
        "1 skipped: somebody else's client: this is not root\n"
    );
    assert_eq!(code, Some(0));
    let none = folder.0.join("none");
    fs::create_dir(&none).expect("a new folder");
    let line = format!("$ROOT/scripts/test-skips {}", none.display());
    assert_eq!(bash(&folder.0, &line), (Some(0), String::new()));
}

/// Without a network, what is fetched for tests is a skip that the list has.
#[test]
fn failed_download_of_a_test_tool_is_a_listed_skip() {
    let folder = Folder::new("fetched");
    let lines = "
        export PIP_NO_INDEX=1 PIP_FIND_LINKS= npm_config_registry=http://127.0.0.1:9 npm_config_fetch_retries=0
        mkdir logs
        for name in gdb18 openmpi5 editors; do
            $ROOT/scripts/$name 2>why && exit 9
            sed 's/^/SKIP: /' why >>logs/fetched.log
        done
        $ROOT/scripts/test-skips logs";
    let (code, said) = bash(&folder.0, lines);
    assert_eq!(code, Some(0), "{said}");
    for name in ["gdb 18: ", "openmpi5: ", "editors: "] {
        assert!(said.contains(&format!("1 skipped: {name}")), "{said}");
    }
}

#[test]
fn test_part_is_recorded_only_after_a_whole_pass_of_a_commit() {
    let folder = Folder::new("rows");
    let tree = folder.0.join("tree");
    fs::create_dir(&tree).expect("a new folder");
    let root = sources::root();
    for path in ["docs/skips.md", "docs/test-parts.md", "scripts/test-skips"] {
        fs::create_dir_all(tree.join(path).parent().expect("a folder")).expect("a folder");
        fs::copy(root.join(path), tree.join(path)).expect("a copy");
    }
    let row = |case: &str, before: &str, after: &str, seconds: u32, reason: &str| {
        let logs = logs(&folder.0, case, reason);
        // The folder of builds lies beside: what git does not know makes the tree none of its commits.
        let lines = format!(
            "git init --quiet . && git add . && git -c user.name=a -c user.email=a@b commit --quiet --message a
             rm -rf target
             {before}
             logs={} built=$(committed)
             {after}
             passed sessions {seconds}
             grep '^| sessions ' docs/test-parts.md | grep -c \" $(git rev-parse --short HEAD) \" || true
             rm -rf .git && cp $ROOT/docs/test-parts.md docs && rm -f new",
            logs.display()
        );
        bash(&tree, &lines).1
    };
    let right = "root may look at everything";
    assert_eq!(row("whole", "", "", 100, right), "1\n");
    let other_row = "echo >>docs/test-parts.md";
    assert_eq!(row("second", other_row, "", 100, right), "1\n");
    let new = "touch new";
    for (case, before, after, seconds, reason, fault) in [
        ("long", "", "", 2701, right, "more than 45 minutes"),
        ("skip", "", "", 100, "it did not work", "does not list"),
        ("part", "", "", 100, "slurm: this is not root", "incomplete"),
        ("dirty", new, "", 100, right, "the tree is no commit"),
        ("meanwhile", "", new, 100, right, "the tree is no commit"),
    ] {
        let said = row(case, before, after, seconds, reason);
        assert!(said.contains(fault), "{case}: {said}");
        assert!(said.ends_with("\n0\n"), "{case}: {said}");
    }
}

#[test]
fn each_crate_is_covered_or_listed_with_a_reason() {
    let text = fs::read_to_string(sources::root().join("Cargo.toml")).expect("the workspace");
    let table: toml::Table = text.parse().expect("TOML");
    let members = table["workspace"]["members"].as_array().expect("a list");
    let script = fs::read_to_string(sources::root().join("scripts/parts")).expect("the parts");
    for member in members {
        let member = member.as_str().expect("a name");
        let is_excepted = UNCOVERED.iter().any(|(name, _)| *name == member);
        let is_covered = script.contains(&format!("[{member}]='"));
        assert!(is_covered != is_excepted, "{member}: see `covers`");
    }
}

#[test]
fn changed_files_choose_their_tests() {
    let folder = sources::root();
    let kept = Folder::new("changed");
    for (file, parts) in [
        (
            "sdm-web/src/lib.rs",
            &["rdeps(sdm-web)", "test(/^web::/)", "test(/^pages::/)"][..],
        ),
        (
            "tests/fixtures/hangs.c",
            &["(binary(launchers) & test(/^hangs::/))", "test(/^keys::/)"],
        ),
        (
            "tests/tests/sessions/dap/picked.rs",
            &["(binary(sessions) & test(/^dap::/))"],
        ),
        ("tests/src/run.rs", &["package(sdm-tests)"]),
        ("docs/guide.md", &["(binary(sessions) & test(/^guide::/))"]),
        ("Cargo.lock", &["all()"]),
        ("README", &["binary(house)"]),
    ] {
        let lines = format!("target={}; echo {file} | changed_filter", kept.0.display());
        let mut command = Command::new("bash");
        command.args(["-c", &format!("source scripts/parts\n{lines}")]);
        command.current_dir(folder).env("CARGO_TARGET_DIR", &kept.0);
        let output = command.output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("binary(house)"), "{file}: {said}");
        for part in parts {
            assert!(said.contains(part), "{file}: no {part} in {said}");
        }
        assert_eq!(said.lines().count(), 1, "{file}: {said}");
    }
}

#[test]
fn comparison_of_test_runs_names_new_failures_and_tests() {
    let folder = Folder::new("results");
    let now = "a-01\tone\t2.0\t1.0\t1\na-01\ttwo\t1.0\t1.0\t1\na-01\tnew\t0.5\t0.1\t0\n";
    let before = "a-02\tone\t1.5\t1.0\t0\na-02\ttwo\t1.0\t1.0\t1\n";
    fs::write(folder.0.join("now"), now).expect("a file");
    let line = "$ROOT/scripts/test-results now before";
    let (code, said) = bash(&folder.0, line);
    assert!(code == Some(0) && said.contains("new: a one\n"), "{said}");
    fs::write(folder.0.join("before"), before).expect("a file");
    let (code, said) = bash(&folder.0, line);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "2.0 s,    1.0 s of processors, 1.5 s before: a one\n",
        "new: a new\n",
        "3 tests, 2 s of processors\n",
        "failed, passed before: a one\n",
        "failed: a two\n",
    ] {
        assert!(said.contains(part), "no {part:?}: {said}");
    }
}

#[test]
fn test_absent_from_the_base_counts_as_new() {
    let folder = Folder::new("new");
    let lines = "
        git init --quiet . && echo target >.gitignore
        printf '#[test]\\nfn old_one() {\\n}\\n' >a.rs
        git add . && git -c user.name=a -c user.email=a@b commit --quiet --message a
        printf 'fn helps() {\\n}\\n\\n/// It is new.\\n#[test]\\n#[expect(unused)]\\nfn new_one() {\\n    f(1)\\n}\\nfn f(a: u8) {\\n}\\n' >>a.rs
        new_tests HEAD";
    assert_eq!(bash(&folder.0, lines), (Some(0), "new_one\n".to_owned()));
}

/// No other test runs the line of scripts/install that names packages, which can be renamed.
#[test]
fn packages_named_in_the_install_script_exist() {
    let root = sources::root();
    let script = fs::read_to_string(root.join("scripts/install")).expect("a file");
    let lists = script.lines().filter_map(|line| {
        let (name, list) = line.trim().split_once('=')?;
        ["many", "others", "packages"]
            .contains(&name)
            .then_some(list)
    });
    let names = lists.flat_map(|list| list.trim_matches('"').split(' '));
    // The program sdm-pmix is of the package sdm-foreign.
    let names = names.filter(|name| !name.starts_with('$') && *name != "sdm-pmix");
    let names: BTreeSet<&str> = names.collect();
    assert!(names.contains("sdm-foreign"), "{names:?}");
    for name in names {
        assert!(root.join(name).join("Cargo.toml").is_file(), "{name}");
    }
}

#[test]
fn score_goes_on_past_a_program_that_fails_to_compile() {
    let folder = Folder::new("score");
    let programs = folder.0.join("programs");
    fs::create_dir(&programs).expect("a new folder");
    for name in ["a.c", "b.c"] {
        let line = "// score: ranks=2 cause=none\n";
        fs::write(programs.join(name), line).expect("a file");
    }
    let lines = "mkdir bin\nprintf '#!/bin/sh\\nexit 3\\n' > bin/mpicc.openmpi\nchmod +x bin/mpicc.openmpi\n\
                 PATH=$PWD/bin:$PATH python3 $ROOT/scripts/score programs --mpi openmpi";
    let (code, said) = bash(&folder.0, lines);
    let failed = |name: &str| format!("failed     openmpi {name}: its compiler ended with 3\n");
    let total = "openmpi: 0 right, 0 incomplete, 0 wrong, 2 failed\n";
    assert_eq!(said, failed("a.c") + &failed("b.c") + total);
    assert_eq!(code, Some(1));
}

/// A set of ranks can have strides.
#[test]
fn score_script_parses_rank_lists_ranges_and_strides() {
    let folder = Folder::new("score-ranks");
    let lines = "python3 -c \"import runpy; f = runpy.run_path('$ROOT/scripts/score')['ranks']\nprint(sorted(f('0,2-3,4-8/2')))\"";
    let (code, said) = bash(&folder.0, lines);
    assert_eq!((code, &*said), (Some(0), "[0, 2, 3, 4, 6, 8]\n"));
}
