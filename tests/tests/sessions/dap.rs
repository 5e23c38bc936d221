//! `sdm dap`: an editor debugs a job.

use std::path::Path;

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
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

#[test]
fn one_rank_is_debugged_from_its_launch_to_its_end() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let line = Place::line("work.c", "int result = number * 2;");
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 1));
    let set = set(&mut editor, &[json!({"line": line})]);
    assert_eq!(
        (&set[0]["verified"], &set[0]["line"]),
        (&json!(true), &json!(line))
    );
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
    assert_eq!(stopped["hitBreakpointIds"], json!([set[0]["id"]]));
    assert_eq!(stopped["allThreadsStopped"], true);
    let thread = &stopped["threadId"];
    assert_eq!(
        editor.threads(),
        [(1, format!("rank 0: twice work.c:{line}"))]
    );
    let frames = editor.frames(thread);
    let names: Vec<_> = frames.iter().map(|frame| frame["name"].as_str()).collect();
    assert_eq!(names, [Some("twice"), Some("step_through"), Some("main")]);
    assert_eq!(frames[0]["source"]["path"], source());
    let arguments = editor.scope(&frames[0], "Arguments");
    assert_eq!(arguments[0]["name"], "number");
    assert_eq!(arguments[0]["value"], "0");
    let locals = editor.scope(&frames[1], "Locals");
    let names: Vec<_> = locals.iter().map(|local| local["name"].as_str()).collect();
    assert!(names.contains(&Some("total")), "{locals:?}");
    let watch = json!({"expression": "total + 41", "frameId": frames[1]["id"], "context": "watch"});
    assert_eq!(editor.ask("evaluate", &watch)["result"], "41");
    // The parts of a value are fetched when they are looked at.
    let arguments = editor.scope(&frames[2], "Arguments");
    let parts = editor.below(&arguments[1]);
    assert!(
        parts[0]["value"]
            .as_str()
            .is_some_and(|value| value.contains("work")),
        "{parts:?}"
    );
    let stopped = go(&mut editor, "next", thread);
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("step"), thread)
    );
    // What was known of its frames is of no use any more.
    let why = editor.refused("scopes", &json!({"frameId": frames[0]["id"]}));
    assert!(why.contains("has run since"), "{why}");
    let stopped = go(&mut editor, "stepOut", thread);
    assert_eq!(stopped["reason"], "step");
    assert_eq!(editor.frames(thread)[0]["name"], "step_through");
    let stopped = go(&mut editor, "stepIn", thread);
    assert_eq!(stopped["allThreadsStopped"], true);
    set_none(&mut editor);
    editor.ask("continue", &json!({"threadId": thread}));
    assert_eq!(editor.event("exited")["exitCode"], 0);
    editor.event("terminated");
    assert_eq!(editor.output("stdout"), "total 6\n");
    editor.disconnect();
}

fn set_none(editor: &mut Editor<'_>) {
    assert!(set(editor, &[]).is_empty());
}
