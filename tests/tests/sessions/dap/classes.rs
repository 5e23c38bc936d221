//! Ranks with equal stacks are one thread of the editor.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{all_stopped, all_stopped_behind, configuration, go, set, set_none};

/// Sets two conditional breakpoints, at which the ranks stop as two classes. Returns the lines.
fn part(editor: &mut Editor<'_>) -> (usize, usize) {
    let first = Place::line("work.c", "int result = number * 2;");
    let second = Place::line("work.c", "return result;");
    let wanted = [
        json!({"line": first, "condition": "rank >= 1"}),
        json!({"line": second, "condition": "rank < 1"}),
    ];
    for set in set(editor, &wanted) {
        assert_eq!(set["verified"], true, "{set}");
    }
    (first, second)
}

/// A line of the debug console.
fn line(editor: &mut Editor<'_>, line: &str) -> String {
    let body = editor.ask("evaluate", &json!({"expression": line, "context": "repl"}));
    body["result"].as_str().expect("a text").to_owned()
}

#[test]
fn ranks_with_equal_stacks_share_one_thread_id() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    let mut configuration = configuration(&work, &["steps"], 4);
    configuration["threads"] = json!("classes");
    configuration["stopAtEntry"] = json!(true);
    editor.launch(&configuration);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("entry"), &json!(1))
    );
    for (task, value) in [(2, 1), (3, 2)] {
        line(&mut editor, &format!("[{task}] set var rank = {value}"));
    }
    let (first, second) = part(&mut editor);
    let stopped = go(&mut editor, "continue", &json!(1));
    assert!(stopped["preserveFocusHint"].is_null(), "{stopped}");
    // The part with the lowest rank keeps the number and the focus, where all come at once.
    let at_once = stopped["allThreadsStopped"] == true;
    if at_once {
        assert_eq!(stopped["threadId"], 1, "{stopped}");
        assert_eq!(editor.unread("stopped"), 0);
    }
    all_stopped_behind(&mut editor, stopped);
    assert_eq!(
        editor.event("thread"),
        json!({"reason": "started", "threadId": 2})
    );
    assert_eq!(editor.event("invalidated")["areas"], json!(["threads"]));
    let lower = format!("[0-1] 2 ranks: twice work.c:{second}");
    let upper = format!("[2-3] 2 ranks: twice work.c:{first}");
    let threads = editor.threads();
    assert_eq!(threads.len(), 2);
    let ids = [&lower, &upper].map(|name| named(&threads, name));
    assert!(!at_once || ids == [1, 2], "{ids:?}");
    // Values that differ have their tasks.
    let frames = editor.frames(&json!(ids[1]));
    let arguments = editor.scope(&frames[0], "Arguments");
    assert_eq!(arguments[0]["value"], "1 [2], 2 [3]");
    let values = editor.below(&arguments[0]);
    let values: Vec<_> = values
        .iter()
        .map(|row| (&row["name"], &row["value"]))
        .collect();
    let expect = [(json!("[2]"), json!("1")), (json!("[3]"), json!("2"))];
    assert_eq!(
        values,
        expect
            .iter()
            .map(|(name, value)| (name, value))
            .collect::<Vec<_>>()
    );
    let id = go_alone(&mut editor, ids[1], &lower, &upper);
    meet(&mut editor, id);
    editor.disconnect();
}

/// The number of the thread of this name.
fn named(threads: &[(i64, String)], name: &str) -> i64 {
    let mut found = threads.iter().filter(|(_, its)| its.starts_with(name));
    let (Some((id, _)), None) = (found.next(), found.next()) else {
        panic!("one {name:?} in {threads:?}");
    };
    *id
}

/// Checks that the class with this number has stopped; the number is unchanged where the whole class stopped at once.
fn moved(editor: &mut Editor<'_>, id: i64) {
    let stopped = editor.event("stopped");
    if stopped["allThreadsStopped"] == true {
        assert_eq!(stopped["threadId"], id, "{stopped}");
        assert_eq!(editor.unread("stopped"), 0);
    }
    all_stopped_behind(editor, stopped);
}

/// Moves the upper class, of this number, while ranks 0 and 1 stay stopped. Returns the number that the class has then.
fn go_alone(editor: &mut Editor<'_>, id: i64, lower: &str, upper: &str) -> i64 {
    // With `singleThread` one class continues alone; the other stays stopped.
    let arguments = json!({"threadId": id, "singleThread": true});
    editor.forget("stopped");
    let body = editor.ask("continue", &arguments);
    assert_eq!(body["allThreadsContinued"], false);
    moved(editor, id);
    let threads = editor.threads();
    named(&threads, lower);
    let id = named(&threads, upper);
    let frames = editor.frames(&json!(id));
    assert_eq!(
        editor.scope(&frames[0], "Arguments")[0]["value"],
        "2 [2], 3 [3]"
    );
    // An editor's setting does the same for every step, until it is set back.
    let ranks = editor.ask("sdm/ranks", &json!({}));
    let threads = ranks["threads"].as_array().expect("a list");
    assert!(threads.iter().any(|it| it["ranks"] == "2-3"), "{ranks}");
    editor.ask("sdm/scope", &json!({"scope": "class"}));
    editor.ask("stepOut", &json!({"threadId": id}));
    moved(editor, id);
    let threads = editor.threads();
    named(&threads, lower);
    let id = named(&threads, "[2-3] 2 ranks: step_through work.c:");
    editor.ask("sdm/scope", &json!({"scope": "all"}));
    id
}

/// Continues all ranks to a line where their stacks are equal again, and then to their end.
fn meet(editor: &mut Editor<'_>, id: i64) {
    // Classes that meet are one thread, with the number of the focused one.
    set_none(editor);
    let out = Place::line("work.c", "printf(\"total %d");
    let set = set(editor, &[json!({"line": out})]);
    assert_eq!(set[0]["verified"], true);
    let stopped = go(editor, "continue", &json!(id));
    if stopped["allThreadsStopped"] == true {
        assert_eq!(stopped["threadId"], id);
    }
    let stopped = all_stopped_behind(editor, stopped);
    let id = stopped["threadId"].as_i64().expect("a number");
    assert_eq!(
        editor.threads(),
        [(id, format!("[0-3] 4 ranks: step_through work.c:{out}"))]
    );
    assert_eq!(line(editor, "total"), "6 [0-1], 12 [2], 18 [3]");
    set_none(editor);
    editor.ask("continue", &json!({"threadId": id}));
    editor.event("terminated");
    let output = editor.output("stdout");
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let expect = ["[0-1] total 6", "[2] total 12", "[3] total 18"];
    assert_eq!(
        sdm_tests::united::united(&output).lines().count(),
        3,
        "{lines:?} {expect:?}"
    );
}

#[test]
fn sixty_four_ranks_with_equal_stacks_are_one_thread() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 64));
    let function = json!({"breakpoints": [{"name": "twice"}]});
    let body = editor.ask("setFunctionBreakpoints", &function);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    editor.ask("configurationDone", &Value::Null);
    let stopped = all_stopped(&mut editor);
    assert_eq!(stopped["reason"], "function breakpoint", "{stopped}");
    let threads = editor.threads();
    assert_eq!(threads.len(), 1, "{threads:?}");
    assert!(
        threads[0].1.starts_with("[0-63] 64 ranks: twice work.c:"),
        "{threads:?}"
    );
    let frames = editor.frames(&stopped["threadId"]);
    assert_eq!(editor.scope(&frames[0], "Arguments")[0]["value"], "0");
    editor.ask("terminate", &json!({}));
    editor.event("terminated");
    editor.disconnect();
}

#[test]
fn many_distinct_ranks_are_at_most_sixty_four_threads() {
    let place = Place::new();
    let scenario = place.path().join("scenario");
    let stacks = (0..100).map(|line| format!("stack = main m.c:9 > solve s.c:{}\n", line + 1));
    let text = format!("[all]\n{}", stacks.collect::<String>());
    std::fs::write(&scenario, text).expect("a file");
    let mut editor = Editor::new(&place);
    let options = [
        "--tasks-per-server",
        "200",
        "--scenario",
        scenario.to_str().expect("text"),
    ];
    editor.launch(&json!({"emulate": 10_000, "stopAtEntry": true, "sdmOptions": options}));
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["allThreadsStopped"], true, "{stopped}");
    let threads = editor.threads();
    assert_eq!(threads.len(), 64);
    let ((other, name), classes) = threads.split_last().expect("there are some");
    assert!(name.ends_with("3700 ranks: 37 other stacks"), "{name}");
    for (thread, _) in classes {
        assert!(!editor.frames(&json!(thread)).is_empty());
    }
    let frames = editor.frames(&json!(other));
    assert_eq!(frames[0]["name"], "solve");
    // All threads stop by one event.
    let told = editor.transcript.iter();
    assert_eq!(told.filter(|it| it["event"] == "stopped").count(), 1);
    editor.disconnect();
}
