//! One rank in an editor session of its own, which joins the running one.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{
    all_stopped, at_entry, configuration, joined, set, set_none, wait_for_output,
    wait_for_second_threads,
};

#[test]
fn focused_rank_is_debugged_in_its_own_session() {
    let place = Place::new();
    let mut editor = at_entry(&place, &["steps"], 20);
    editor.event("stopped");
    let why = editor.refused("sdm/focus", &json!({"rank": 20}));
    assert!(why.contains("rank 20 does not exist"), "{why}");
    editor.ask("sdm/focus", &json!({"rank": 17}));
    let asked = editor.request("startDebugging");
    let mut other = joined(Editor::new(&place), &asked);
    let back = Place::line("work.c", "return result;");
    let points = set(&mut other, &[json!({"line": back})]);
    assert_eq!(points[0]["verified"], true, "{points:?}");
    other.ask("configurationDone", &Value::Null);
    // This is a session of one process, which is stopped at its former place.
    let stopped = other.event("stopped");
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("entry"), &json!(1))
    );
    let main = other.threads();
    assert!(main[0].1.starts_with("rank 17: main work.c:"), "{main:?}");
    // The process runs alone, and the other editors get events of it.
    editor.forget("thread");
    other.ask("continue", &json!({"threadId": 1}));
    let stopped = other.event("stopped");
    assert_eq!(stopped["reason"], "breakpoint");
    assert_eq!(stopped["hitBreakpointIds"], json!([points[0]["id"]]));
    let frames = other.frames(&json!(1));
    let locals = other.scope(&frames[0], "Locals");
    assert_eq!(
        (&locals[0]["name"], &locals[0]["value"]),
        (&json!("result"), &json!("0"))
    );
    let stopped = editor.event("stopped");
    assert_eq!(stopped["preserveFocusHint"], true, "{stopped}");
    assert!(stopped["hitBreakpointIds"].is_null(), "{stopped}");
    let threads: Vec<String> = editor.threads().into_iter().map(|(_, name)| name).collect();
    assert_eq!(threads.len(), 2, "{threads:?}");
    assert!(
        threads[0].starts_with("[0-16,18-19] 19 ranks: main"),
        "{threads:?}"
    );
    assert_eq!(threads[1], format!("rank 17: twice work.c:{back}"));
    // Its breakpoint is its own, and goes with it: all run to their end.
    set_none(&mut editor);
    other.leave();
    editor.run_to_end(&stopped["threadId"]);
    editor.disconnect();
}

#[test]
fn focused_rank_runs_and_ends_with_the_main_session() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 3));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "[0-2] spinning");
    wait_for_second_threads(&work, 3);
    editor.ask("sdm/focus", &json!({"rank": 1}));
    let asked = editor.request("startDebugging");
    let mut other = joined(Editor::new(&place), &asked);
    other.ask("configurationDone", &Value::Null);
    let why = other.refused("stackTrace", &json!({"threadId": 1}));
    assert!(why.contains("pause it first"), "{why}");
    // The run began before this editor connected; its end is reported all the same.
    editor.ask("pause", &json!({"threadId": 1}));
    assert_eq!(other.event("stopped")["reason"], "pause");
    // The threads of its process are its threads.
    let threads = other.threads();
    assert_eq!(
        threads.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [1, 2]
    );
    let frames = other.frames(&json!(2));
    let names = frames.iter().map(|frame| &frame["name"]);
    assert!(
        names.into_iter().any(|name| name == "wait_for_ever"),
        "{frames:?}"
    );
    let waits = frames.iter().find(|frame| frame["name"] == "wait_for_ever");
    let arguments = other.scope(waits.expect("it is there"), "Arguments");
    assert_eq!(arguments[0]["name"], "nothing", "{arguments:?}");
    all_stopped(&mut editor);
    editor.ask("continue", &json!({"threadId": 1}));
    assert_eq!(
        other.event("continued"),
        json!({"threadId": 1, "allThreadsContinued": true})
    );
    // Such a session cannot be restarted, and other editors cannot join it.
    let run = json!({"expression": "run", "context": "repl"});
    for (request, arguments) in [("restart", &json!({})), ("evaluate", &run)] {
        let why = other.refused(request, arguments);
        assert!(why.contains("another client"), "{request}: {why}");
    }
    editor.disconnect();
    other.event("terminated");
    other.end();
}

#[test]
fn attach_to_an_unknown_session_address_is_refused() {
    let place = Place::new();
    let mut editor = Editor::new(&place);
    editor.ask("initialize", &json!({"adapterID": "sdm"}));
    let configuration = json!({"rank": 1, "__sdmSession": "sdm-dap-0123"});
    editor.send("attach", &configuration);
    let said = editor.event("output");
    let text = said["output"].as_str().expect("a text");
    assert!(text.contains("the session, which may have ended"), "{text}");
    editor.event("terminated");
    editor.finish();
}

#[test]
fn focused_rank_uses_a_second_connection_to_the_adapter() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    for over in [Editor::over_tcp, Editor::over_unix] {
        let mut editor = over(&place);
        let mut launch = configuration(&work, &["steps"], 3);
        launch["stopAtEntry"] = json!(true);
        editor.launch(&launch);
        editor.ask("configurationDone", &Value::Null);
        all_stopped(&mut editor);
        // An editor without the secret gets advice, and changes nothing.
        let mut stranger = editor.beside();
        stranger.ask("initialize", &json!({"adapterID": "sdm"}));
        let why = stranger.refused("launch", &launch);
        assert!(why.contains("already serves an editor"), "{why}");
        stranger.leave();
        editor.ask("sdm/focus", &json!({"rank": 1}));
        let asked = editor.request("startDebugging");
        let mut other = joined(editor.beside(), &asked);
        other.ask("configurationDone", &Value::Null);
        assert_eq!(other.event("stopped")["reason"], "entry");
        other.ask("next", &json!({"threadId": 1}));
        assert_eq!(other.event("stopped")["reason"], "step");
        assert_eq!(editor.event("stopped")["threadId"], 2);
        editor.ask("disconnect", &json!({}));
        other.event("terminated");
        other.end();
        editor.finish();
    }
}
