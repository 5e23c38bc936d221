//! `sdm dap`: an editor debugs a job.

mod beside;
mod classes;
mod console;
mod dying;
mod exceptions;
mod fortran_values;
mod going;
mod hostile;
mod launching;
mod life;
mod looking;
mod names;
mod paged;
mod picked;
mod transcript;
mod unread;

use std::path::Path;

use sdm_system::proc::State;
use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::until;
use sdm_tests::united::united;
use sdm_tests::{job, processes};
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

/// An editor that has launched ranks of `tests/fixtures/work.c`, which stop at their entry.
fn at_entry<'a>(place: &'a Place, args: &[&str], ranks: u32) -> Editor<'a> {
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(place);
    let mut configuration = configuration(&work, args, ranks);
    configuration["stopAtEntry"] = json!(true);
    editor.launch(&configuration);
    editor.ask("configurationDone", &Value::Null);
    editor
}

/// Makes an editor join a session by the arguments of a `startDebugging` request to another editor.
fn joined<'a>(mut editor: Editor<'a>, asked: &Value) -> Editor<'a> {
    assert_eq!(asked["request"], "attach");
    editor.ask("initialize", &json!({"adapterID": "sdm"}));
    editor.ask("attach", &asked["configuration"]);
    editor.event("initialized");
    editor
}

/// Runs all ranks by a command on a thread, and returns the next stop.
fn go(editor: &mut Editor<'_>, command: &str, thread: &Value) -> Value {
    editor.forget("stopped");
    editor.ask(command, &json!({"threadId": thread}));
    editor.event("stopped")
}

fn set_none(editor: &mut Editor<'_>) {
    assert!(set(editor, &[]).is_empty());
}

/// Waits until no rank runs any more, and returns the stopped event that reports it.
fn all_stopped(editor: &mut Editor<'_>) -> Value {
    let first = editor.event("stopped");
    all_stopped_behind(editor, first)
}

/// As [`all_stopped`], after a first stopped event. On a busy machine some ranks stop long after others, and the
/// editor gets an event for the first ones before.
fn all_stopped_behind(editor: &mut Editor<'_>, mut stopped: Value) -> Value {
    while stopped["allThreadsStopped"] == false {
        stopped = editor.event("stopped");
    }
    // After this answer no event of the same stop is outstanding.
    editor.settle();
    editor.forget("stopped");
    stopped
}

/// Waits until all that is printed, with equal lines of several ranks put together, holds `text`.
fn wait_for_output(editor: &mut Editor<'_>, text: &str) {
    while !united(&editor.output("stdout")).contains(text) {
        editor.event("output");
    }
}

/// Waits until the second thread sleeps in each of `processes` processes of `work spin`. On a busy machine that may
/// be long after the first thread has reported that it spins.
fn wait_for_second_threads(work: &Path, processes: usize) {
    let waits = |pid: &u32| {
        let process = processes::of(*pid);
        let mut ids = process.thread_ids().into_iter().flatten();
        let second = ids.find(|id| id.cast_unsigned() != *pid);
        second.and_then(|id| process.thread(id).state()) == Some(State('S'))
    };
    until("the second threads wait", || {
        job::running(work).iter().filter(|pid| waits(pid)).count() == processes
    });
}
