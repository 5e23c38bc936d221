//! Editors' own clients drive `sdm dap`: VS Code's client for tests, and Emacs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::{binaries, editor, ordinary, parts, sdm};

const _: () = sdm_tests::run::test_group("crowded", "editors' own clients beside gdb");

/// The adapter that an editor starts: a script that copies the adapter's output to a file for each run. Returns the
/// script and the folder of the files.
fn adapter(place: &Place) -> (PathBuf, PathBuf) {
    let kept = place.path().join("kept");
    fs::create_dir_all(&kept).expect("a folder");
    ordinary::give(&kept);
    let path = place.path().join("adapter");
    let sdm = binaries::folder().join("sdm");
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\" | tee '{}'/$$\n",
        sdm.display(),
        kept.display()
    );
    fs::write(&path, script).expect("a script");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    (path, kept)
}

/// Checks all messages of adapters against the schema. Returns the names of the answered requests.
fn answered(kept: &Path) -> Vec<String> {
    let files = fs::read_dir(kept).expect("a folder");
    let files = files.map(|file| fs::read(file.expect("a file").path()).expect("a file"));
    let messages = files.flat_map(|bytes| editor::kept_messages(&bytes));
    let answered = messages.filter(|message| message["type"] == "response");
    let names = answered.map(|message| message["command"].as_str().map(str::to_owned));
    names.map(|name| name.expect("a name")).collect()
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = ordinary::lower(command).output().expect("it starts");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{}: {said}", output.status);
    said
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

#[test]
fn the_client_of_vs_code_debugs_1_4_and_64_ranks() {
    let Some(installed) = parts::editors("testsupport") else {
        return;
    };
    let place = Place::new();
    let _work = place.compile("work", Compiler::C);
    let _sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let (adapter, kept) = adapter(&place);
    let stories = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/testsupport/stories.js");
    let mut node = sdm::command(&place, "node");
    node.arg(installed.join("node_modules/mocha/bin/mocha.js"));
    node.args(["--ui", "tdd", "--reporter", "spec"])
        .arg(stories);
    node.env("NODE_PATH", installed.join("node_modules"));
    node.env("ADAPTER", adapter).env("FIXTURES", fixtures());
    node.env("PROGRAMS", place.path());
    let said = run(&mut node);
    assert!(said.contains("8 passing"), "{said}");
    let answered = answered(&kept);
    for request in ["initialize", "launch", "stackTrace", "next", "disconnect"] {
        assert!(answered.iter().any(|name| name == request), "no {request}");
    }
    place.assert_gone();
}

#[test]
fn vs_code_extension_registers_what_its_manifest_names() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("SKIP: no node: the extension of VS Code is not tried");
        return;
    }
    let place = Place::new();
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/testsupport/extension.js");
    let mut node = sdm::command(&place, "node");
    node.arg(check).env("SDM", binaries::folder().join("sdm"));
    let said = run(&mut node);
    assert!(said.contains("the extension is whole"), "{said}");
    // A script packs the extension, without npm.
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/vscode/package");
    ordinary::give(place.path());
    let packed = run(sdm::command(&place, pack).arg(place.path()));
    assert!(packed.trim_end().ends_with("sdm-0.1.0.vsix"), "{packed}");
}

#[test]
fn emacs_client_debugs_a_session() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    if !Path::new("/usr/share/emacs/site-lisp/elpa-src")
        .join("dap-mode-0.7")
        .is_dir()
    {
        println!("SKIP: no Emacs with dap-mode 0.7 here (Debian: emacs-nox, elpa-dap-mode)");
        return;
    }
    let (adapter, kept) = adapter(&place);
    let home = place.path().join("home");
    fs::create_dir_all(&home).expect("a folder");
    ordinary::give(&home);
    let line = Place::line("work.c", "int result = number * 2;");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/emacs/session.el");
    let mut emacs = sdm::command(&place, "emacs");
    emacs.args(["--batch", "-l"]).arg(script).current_dir(&home);
    emacs.env("HOME", &home).env("ADAPTER", adapter);
    emacs.env("PROGRAM", work).env("LINE", line.to_string());
    emacs.env("SOURCE", fixtures().join("work.c"));
    let said = run(&mut emacs);
    for expected in [
        format!("stopped: twice work.c:{line}"),
        "stepped: twice work.c:".to_owned(),
        "evaluated: 0".to_owned(),
        "the end".to_owned(),
    ] {
        assert!(said.contains(&expected), "no {expected} in {said}");
    }
    let answered = answered(&kept);
    for request in ["setBreakpoints", "configurationDone", "next", "scopes"] {
        assert!(answered.iter().any(|name| name == request), "no {request}");
    }
    place.assert_gone();
}
