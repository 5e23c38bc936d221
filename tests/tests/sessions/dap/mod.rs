//! `sdm dap`: an editor debugs a job.

mod beside;
mod classes;
mod console;
mod dying;
mod exceptions;
mod going;
mod hostile;
mod launching;
mod life;
mod looking;
mod picked;
mod transcript;

use std::path::Path;

use sdm_tests::editor::Editor;
use serde_json::{Value, json};

/// `setBreakpoints` at lines of `tests/fixtures/work.c`.
fn set(editor: &mut Editor<'_>, breakpoints: &[Value]) -> Vec<Value> {
    let source = json!({"path": source()});
    let body = editor.ask(
        "setBreakpoints",
        &json!({"source": source, "breakpoints": breakpoints}),
    );
    body["breakpoints"].as_array().expect("a list").clone()
}

/// The path of the program's source, as the compiler was given it.
fn source() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/work.c");
    path.to_str().expect("text").to_owned()
}

fn configuration(program: &Path, args: &[&str], ranks: u32) -> Value {
    json!({"program": program, "args": args, "ranks": ranks, "launcher": "local"})
}

/// Lets all run on from a thread, and gives the next stop.
fn go(editor: &mut Editor<'_>, command: &str, thread: &Value) -> Value {
    editor.forget("stopped");
    editor.ask(command, &json!({"threadId": thread}));
    editor.event("stopped")
}

fn set_none(editor: &mut Editor<'_>) {
    assert!(set(editor, &[]).is_empty());
}

/// Waits until all that is printed holds `text`.
fn wait_for_output(editor: &mut Editor<'_>, text: &str) {
    while !editor.output("stdout").contains(text) {
        editor.event("output");
    }
}
