//! An editor, or the adapter itself, dies without a message: launched programs end, and attached ones run on.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::BOUND;
use serde_json::{Value, json};

use super::{all_stopped, at_entry, configuration, joined, wait_for_output};

/// A program that was started without SDM, and an editor that has attached to it.
fn attached(place: &Place) -> (Child, Editor<'_>) {
    let work = place.compile("work", Compiler::C);
    let mut command = sdm_tests::sdm::command(place, &work);
    let child = command.arg("spin").spawn().expect("it starts");
    let mut editor = Editor::new(place);
    editor.ask("initialize", &json!({"adapterID": "sdm"}));
    editor.ask("attach", &json!({"target": child.id()}));
    editor.event("initialized");
    editor.ask("configurationDone", &Value::Null);
    assert_eq!(editor.event("stopped")["reason"], "entry");
    (child, editor)
}

/// Waits until a process runs without a debugger, and ends it.
fn runs_on(place: &Place, mut child: Child) {
    let until = Instant::now() + BOUND;
    loop {
        let state = processes::of(child.id()).state().expect("it is there");
        let tracer = processes::tracer(child.id());
        if tracer.is_none() && matches!(state.0, 'S' | 'R') {
            break;
        }
        assert!(Instant::now() < until, "{state:?}, traced by {tracer:?}");
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it is there");
    child.wait().expect("a child");
    place.assert_gone();
}

#[test]
fn dying_editor_leaves_attached_processes_running() {
    let place = Place::new();
    let (child, mut editor) = attached(&place);
    editor.hang_up();
    runs_on(&place, child);
}

#[test]
fn dying_editor_leaves_no_launched_ranks() {
    let place = Place::new();
    let mut editor = at_entry(&place, &["spin"], 3);
    all_stopped(&mut editor);
    editor.finish();
}

#[test]
fn killed_adapter_leaves_nothing() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    // At `main`, before the client's `configurationDone`.
    editor.kill();
    place.assert_gone();
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "spinning");
    editor.kill();
    place.assert_gone();
}

#[test]
fn killed_adapter_detaches_attached_processes() {
    let place = Place::new();
    let (child, editor) = attached(&place);
    editor.kill();
    runs_on(&place, child);
}

#[test]
fn session_continues_when_a_focused_adapter_dies() {
    let place = Place::new();
    let mut editor = at_entry(&place, &["steps"], 2);
    all_stopped(&mut editor);
    editor.ask("sdm/focus", &json!({"rank": 1}));
    let asked = editor.request("startDebugging");
    let mut other = joined(Editor::new(&place), &asked);
    other.ask("configurationDone", &Value::Null);
    assert_eq!(other.event("stopped")["reason"], "entry");
    other.kill();
    editor.ask("continue", &json!({"threadId": 1}));
    assert_eq!(editor.event("exited")["exitCode"], 0);
    editor.disconnect();
}
