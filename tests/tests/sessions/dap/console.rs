//! The debug console takes the whole language of the prompt.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{all_stopped, configuration, set};

/// Output of a line in the console.
fn line(editor: &mut Editor<'_>, line: &str) -> String {
    let body = editor.ask("evaluate", &json!({"expression": line, "context": "repl"}));
    body["result"].as_str().expect("a text").to_owned()
}

fn expect(editor: &mut Editor<'_>, text: &str, parts: &[&str]) {
    let said = line(editor, text);
    for part in parts {
        assert!(said.contains(part), "{text}: no {part:?} in {said}");
    }
}

/// An editor at the beginning of three ranks, which has a breakpoint.
fn begin<'a>(place: &'a Place, point: usize) -> Editor<'a> {
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(place);
    let mut configuration = configuration(&work, &["steps"], 3);
    configuration["stopAtEntry"] = json!(true);
    configuration["threads"] = json!("classes");
    editor.launch(&configuration);
    let known = set(&mut editor, &[json!({"line": point})]);
    assert_eq!(known[0]["id"], 1);
    editor.ask("configurationDone", &Value::Null);
    editor.event("stopped");
    editor
}

#[test]
fn console_breakpoints_are_sent_to_the_editor() {
    let place = Place::new();
    let back = Place::line("work.c", "return result;");
    let mut editor = begin(&place, back);
    expect(&mut editor, "break twice", &["breakpoint 2 at work.c:"]);
    let new = editor.event("breakpoint");
    assert_eq!(
        (
            &new["reason"],
            &new["breakpoint"]["id"],
            &new["breakpoint"]["verified"]
        ),
        (&json!("new"), &json!(2), &json!(true))
    );
    let both = ["twice", &format!("work.c:{back}")];
    expect(&mut editor, "info breakpoints", &both);
    assert_eq!(line(&mut editor, "continue"), "");
    let at = all_stopped(&mut editor);
    assert_eq!(at["hitBreakpointIds"], json!([2]), "{at}");
    // A breakpoint of the editor's is deleted in the console: the editor gets an event.
    line(&mut editor, "delete 1");
    let gone = editor.event("breakpoint");
    assert_eq!(
        (&gone["reason"], &gone["breakpoint"]["id"]),
        (&json!("removed"), &json!(1))
    );
    line(&mut editor, "condition 2 number == 2");
    line(&mut editor, "continue");
    all_stopped(&mut editor);
    assert_eq!(line(&mut editor, "print number"), "2");
    line(&mut editor, "quit");
    editor.event("terminated");
    editor.disconnect();
}

#[test]
fn console_runs_rank_sets_displays_and_defined_commands() {
    let place = Place::new();
    let back = Place::line("work.c", "return result;");
    let mut editor = begin(&place, back);
    line(&mut editor, "[1] set var rank = 5");
    line(&mut editor, "continue");
    all_stopped(&mut editor);
    // Sets by name, by displayed class, and by a condition.
    line(&mut editor, "defset middle 1");
    assert_eq!(line(&mut editor, "[@middle] print number"), "rank 1: 5");
    assert_eq!(line(&mut editor, "[all] print number"), "0 [0,2], 5 [1]");
    assert_eq!(line(&mut editor, "[@2] print rank"), "rank 1: 5");
    expect(&mut editor, "[@if:(number == 0)] print rank", &["0"]);
    expect(&mut editor, "stats number", &["5", "0"]);
    // Lines that belong together.
    line(&mut editor, "define both");
    line(&mut editor, "echo first");
    line(&mut editor, "print number");
    line(&mut editor, "end");
    expect(&mut editor, "both", &["first", "5"]);
    // Expressions that are displayed after each stop.
    line(&mut editor, "display result");
    line(&mut editor, "[1] next");
    editor.event("stopped");
    while !editor.output("console").contains("result") {
        editor.event("output");
    }
    // This machine: files and commands.
    let file = place.path().join("kept.sdm");
    line(&mut editor, &format!("save {}", file.display()));
    let kept = std::fs::read_to_string(&file).expect("it was saved");
    assert!(kept.contains("middle"), "{kept}");
    line(&mut editor, "shell echo from the shell");
    while !editor.output("console").contains("from the shell") {
        editor.event("output");
    }
    let refused = json!({"expression": "shell exit 3", "context": "repl"});
    assert!(
        editor
            .refused("evaluate", &refused)
            .contains("exit status: 3")
    );
    line(&mut editor, "kill");
    assert_eq!(editor.event("exited")["exitCode"], 137);
    editor.event("terminated");
    editor.disconnect();
}

#[test]
fn waiting_console_line_is_cancelled_and_run_restarts() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    super::wait_for_output(&mut editor, "spinning");
    let wait = json!({"expression": "shell sleep 1000", "context": "repl"});
    let waits = editor.send("evaluate", &wait);
    let behind = editor.send(
        "evaluate",
        &json!({"expression": "info sets", "context": "repl"}),
    );
    editor.ask("cancel", &json!({"requestId": behind}));
    assert_eq!(editor.response(behind)["message"], "cancelled");
    // A line that has begun is ended together with the commands that it has started.
    let other = editor.send("evaluate", &wait);
    editor.ask("cancel", &json!({"requestId": waits}));
    assert_eq!(editor.response(waits)["message"], "cancelled");
    let waits = other;
    editor.ask("sdm/ranks", &json!({}));
    // The command has the console until it has ended; the job goes on.
    line(&mut editor, "interrupt");
    all_stopped(&mut editor);
    let next = editor.send("restart", &json!({}));
    assert_eq!(editor.response(waits)["message"], "cancelled");
    assert_eq!(editor.response(next)["success"], true);
    super::wait_for_output(&mut editor, "spinning");
    editor.forget("stopped");
    line(&mut editor, "start");
    let at = all_stopped(&mut editor);
    assert_eq!(at["reason"], "entry", "{at}");
    editor.disconnect();
}

#[test]
fn console_breakpoints_survive_a_restart() {
    let place = Place::new();
    let back = Place::line("work.c", "return result;");
    let mut editor = begin(&place, back);
    line(&mut editor, "delete 1");
    expect(&mut editor, "[1-2] break twice", &["breakpoint 2"]);
    line(&mut editor, "condition 2 number == 1");
    expect(&mut editor, "break spin", &["breakpoint 3"]);
    line(&mut editor, &format!("break work.c:{back}"));
    line(&mut editor, "[0-1] disable 4");
    line(&mut editor, "tbreak step_through");
    editor.forget("breakpoint");
    line(&mut editor, "continue");
    all_stopped(&mut editor);
    // The temporary breakpoint is gone.
    let gone = editor.event("breakpoint");
    assert_eq!(
        (&gone["reason"], &gone["breakpoint"]["id"]),
        (&json!("removed"), &json!(5)),
        "{gone}"
    );
    editor.forget("breakpoint");
    editor.ask("restart", &json!({}));
    for (number, message) in [
        (2, json!("set on 2 of 3 ranks: 1-2")),
        (3, Value::Null),
        (4, Value::Null),
    ] {
        let changed = editor.event("breakpoint");
        let point = &changed["breakpoint"];
        assert_eq!(
            (&changed["reason"], &point["id"], &point["message"]),
            (&json!("changed"), &json!(number), &message),
            "{changed}"
        );
        assert_eq!(point["verified"], true, "{changed}");
    }
    // They hold where they did: 0 passes by all, 1 has a condition, 2 is not switched off.
    assert_eq!(all_stopped(&mut editor)["reason"], "entry");
    line(&mut editor, "continue");
    let mut hit: Vec<Value> = Vec::new();
    while hit.len() < 2 {
        let stopped = editor.event("stopped");
        hit.extend(
            stopped["hitBreakpointIds"]
                .as_array()
                .expect("a list")
                .clone(),
        );
    }
    hit.sort_by_key(Value::to_string);
    assert_eq!(hit, [json!(2), json!(4)]);
    assert_eq!(line(&mut editor, "[1-2] print number"), "1 [1], 0 [2]");
    editor.disconnect();
}
