//! An editor starts a job on several hosts: `hosts` and `launcher` of launch.json.

use sdm_tests::editor::Editor;
use sdm_tests::parts::Part;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use crate::ssh;

const _: () = sdm_tests::run::test_group("hosts", "hosts in namespaces, with one sshd each");

/// Ends the configuration, and returns the only thread, where all ranks are stopped.
pub(crate) fn stopped(editor: &mut Editor<'_>) -> String {
    editor.ask("configurationDone", &Value::Null);
    while editor.event("stopped")["allThreadsStopped"] != true {}
    let mut threads = editor.threads();
    assert_eq!(threads.len(), 1, "{threads:?}");
    threads.remove(0).1
}

/// A breakpoint in a function, of all ranks.
pub(crate) fn break_at(editor: &mut Editor<'_>, function: &str) {
    let points = json!({"breakpoints": [{"name": function}]});
    let body = editor.ask("setFunctionBreakpoints", &points);
    let point = &body["breakpoints"][0];
    assert_eq!(
        (&point["verified"], &point["message"]),
        (&json!(true), &Value::Null)
    );
}

/// Continues all ranks to their end, and checks that no process is left.
pub(crate) fn end(mut editor: Editor<'_>) {
    editor.ask("setFunctionBreakpoints", &json!({"breakpoints": []}));
    editor.run_to_end(&json!(1));
    editor.disconnect();
}

#[test]
fn an_editor_starts_ranks_on_the_hosts_of_launch_json() {
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let server = ssh::server(&place);
    let mut editor = Editor::new(&place);
    editor.launch(&json!({
        "program": work, "args": ["steps"], "ranks": 4, "threads": "classes",
        "launcher": "ssh", "hosts": ["10.77.0.1", "10.77.0.2:2", "10.77.0.3"],
        "launcherOptions": ["-F", ssh::CONFIG], "sdmOptions": ["--server-path", server],
    }));
    break_at(&mut editor, "twice");
    let thread = stopped(&mut editor);
    assert!(
        thread.starts_with("[0-3] 4 ranks: twice work.c:"),
        "{thread}"
    );
    end(editor);
    // For a host that does not exist the user gets an error.
    let mut editor = Editor::new(&place);
    editor.ask("initialize", &json!({}));
    let configuration = json!({
        "program": work, "ranks": 2, "launcher": "ssh", "hosts": ["10.77.0.1", "10.77.0.99"],
        "launcherOptions": ["-F", ssh::CONFIG], "sdmOptions": ["--server-path", server],
    });
    let why = editor.refused("launch", &configuration);
    assert!(why.contains("10.77.0.99"), "{why}");
    editor.disconnect();
}
