//! Tests of launch.json (profile, environment, folder, scope, `noDebug`), and of breakpoints that are set while all
//! ranks run.

use std::fs;

use sdm_tests::editor::Editor;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{all_stopped, configuration, go, set, source, wait_for_output};

#[test]
fn settings_profile_completes_launch_json() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let settings = place.path().join("settings.toml");
    let profile = "[profile.big]\nprocesses = 3\nlauncher = \"local\"\n";
    fs::write(&settings, profile).expect("a file");
    let settings = settings.to_str().expect("text");
    let mut editor = Editor::with(&place, &[("SDM_CONFIG", settings)]);
    editor.launch(&json!({"program": work, "profile": "big", "stopAtEntry": true}));
    editor.ask("configurationDone", &Value::Null);
    assert_eq!(all_stopped(&mut editor)["reason"], "entry");
    assert_eq!(editor.threads().len(), 3);
    editor.disconnect();
    let mut editor = Editor::with(&place, &[("SDM_CONFIG", settings)]);
    editor.ask("initialize", &json!({}));
    let why = editor.refused("launch", &json!({"program": work, "profile": "small"}));
    assert!(why.contains("profile 'small': there are: big"), "{why}");
    editor.disconnect();
}

#[test]
fn launch_json_sets_environment_folder_and_step_scope() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let folder = place.path().join("elsewhere");
    fs::create_dir(&folder).expect("a folder");
    ordinary::give(&folder);
    let mut editor = Editor::with(&place, &[("GOES", "1"), ("STAYS", "2")]);
    let mut configuration = configuration(&work, &["steps"], 2);
    configuration["cwd"] = json!(folder);
    configuration["env"] = json!({"COMES": "3", "GOES": null});
    configuration["scope"] = json!("class");
    configuration["stopAtEntry"] = json!(true);
    editor.launch(&configuration);
    editor.ask("configurationDone", &Value::Null);
    all_stopped(&mut editor);
    for (variable, value) in [("COMES", "\"3\""), ("GOES", "0x0"), ("STAYS", "\"2\"")] {
        let line = format!("(char *)getenv(\"{variable}\")");
        let body = editor.ask("evaluate", &json!({"expression": line, "context": "repl"}));
        let text = body["result"].as_str().expect("a text");
        assert!(text.ends_with(value), "{variable}: {text}");
    }
    let line = json!({"expression": "[0] info proc cwd", "context": "repl"});
    let said = editor.ask("evaluate", &line)["result"].to_string();
    assert!(said.contains("elsewhere"), "{said}");
    // A step is of the selected thread's ranks alone, and so is `continue`.
    let before = editor.threads();
    let stopped = go(&mut editor, "next", &json!(2));
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("step"), &json!(2))
    );
    let after = editor.threads();
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
    let body = editor.ask("continue", &json!({"threadId": 2}));
    assert_eq!(body["allThreadsContinued"], false);
    editor.event("thread");
    assert_eq!(editor.threads(), [after[0].clone()]);
    editor.disconnect();
}

#[test]
fn no_debug_launch_runs_without_breakpoints() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    let mut configuration = configuration(&work, &["steps"], 2);
    configuration["noDebug"] = json!(true);
    configuration["stopAtEntry"] = json!(true);
    editor.launch(&configuration);
    editor.ask("configurationDone", &Value::Null);
    assert_eq!(editor.event("exited")["exitCode"], 0);
    editor.event("terminated");
    assert_eq!(editor.unread("stopped"), 0);
    editor.disconnect();
}

#[test]
fn breakpoint_stops_one_rank_and_remote_source_is_refused() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    let mut configuration = configuration(&work, &["spin"], 4);
    configuration["threads"] = json!("classes");
    editor.launch(&configuration);
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "[0-3] spinning");
    // A breakpoint set while all run, which only some ranks reach: only those stop and are reported.
    let line = Place::line("work.c", "rounds++;");
    set(
        &mut editor,
        &[json!({"line": line, "condition": "rank == 1"})],
    );
    assert_eq!(editor.unread("stopped"), 0);
    let threads = editor.threads();
    assert_eq!(threads, [(1, "[0-3] 4 ranks: running".to_owned())]);
    editor.ask("pause", &json!({"threadId": 1}));
    let stopped = all_stopped(&mut editor);
    let line = json!({"expression": "[2] set var rank = 1", "context": "repl"});
    editor.ask("evaluate", &line);
    let id = stopped["threadId"].clone();
    let stopped = go(&mut editor, "continue", &id);
    assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
    assert_eq!(stopped["allThreadsStopped"], false, "{stopped}");
    let threads: Vec<String> = editor.threads().into_iter().map(|it| it.1).collect();
    assert!(
        threads
            .iter()
            .any(|it| it.starts_with("rank 2: spin work.c:")),
        "{threads:?}"
    );
    assert!(
        threads.iter().any(|it| it == "[0-1,3] 3 ranks: running"),
        "{threads:?}"
    );
    let frames = editor.frames(&stopped["threadId"]);
    let change = json!({"expression": "leave", "frameId": frames[0]["id"], "value": "1"});
    editor.forget("invalidated");
    assert_eq!(editor.ask("setExpression", &change)["value"], "1");
    assert_eq!(editor.event("invalidated")["areas"], json!(["variables"]));
    let why = editor.refused(
        "source",
        &json!({"source": {"path": source()}, "sourceReference": 1}),
    );
    assert!(why.contains("not on the host of the editor"), "{why}");
    editor.disconnect();
}
