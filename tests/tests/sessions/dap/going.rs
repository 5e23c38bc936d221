//! Restarts of a job from an editor, jumps of a rank to another line, and sources, instructions and threads of a
//! process.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{
    all_stopped, configuration, go, set, set_none, source, wait_for_output, wait_for_second_threads,
};

#[test]
fn job_is_restarted_with_its_breakpoints() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 2));
    let line = Place::line("work.c", "return result;");
    let set = set(
        &mut editor,
        &[json!({"line": line, "condition": "number == 1"})],
    );
    editor.ask("configurationDone", &Value::Null);
    for _ in 0..2 {
        // A stop of the job that ends here must not count as one of the next job.
        let stopped = all_stopped(&mut editor);
        assert_eq!(stopped["hitBreakpointIds"], json!([set[0]["id"]]));
        let frames = editor.frames(&stopped["threadId"]);
        assert_eq!(editor.scope(&frames[0], "Arguments")[0]["value"], "1");
        editor.forget("breakpoint");
        let mut again = configuration(&work, &["steps"], 3);
        again["env"] = json!({"AGAIN": "1"});
        editor.ask("restart", &json!({"arguments": again}));
        let changed = editor.event("breakpoint");
        assert_eq!(changed["breakpoint"]["verified"], true, "{changed}");
    }
    all_stopped(&mut editor);
    assert_eq!(editor.threads().len(), 3);
    set_none(&mut editor);
    editor.run_to_end(&json!(1));
    let why = editor.refused("restart", &json!({}));
    assert!(why.contains("have ended"), "{why}");
    editor.disconnect();
}

#[test]
fn goto_moves_a_rank_without_running() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 2));
    let first = Place::line("work.c", "int result = number * 2;");
    let back = Place::line("work.c", "return result;");
    set(&mut editor, &[json!({"line": back})]);
    editor.ask("configurationDone", &Value::Null);
    all_stopped(&mut editor);
    let target = |line: usize| json!({"source": {"path": source()}, "line": line});
    // The comment at the beginning has no code: gdb returns the first line with code, or none.
    let none = editor.ask("gotoTargets", &target(99_999));
    assert_eq!(none["targets"], json!([]));
    let found = editor.ask("gotoTargets", &target(first));
    assert_eq!(found["targets"][0]["line"], first, "{found}");
    editor.forget("stopped");
    let goto = json!({"threadId": 2, "targetId": found["targets"][0]["id"]});
    editor.ask("goto", &goto);
    let stopped = editor.event("stopped");
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("goto"), &json!(2)),
        "{stopped}"
    );
    let threads = editor.threads();
    assert_eq!(threads[0].1, format!("rank 0: twice work.c:{back}"));
    assert_eq!(threads[1].1, format!("rank 1: twice work.c:{first}"));
    // The rank reaches the breakpoint a second time.
    let stopped = go(&mut editor, "next", &json!(2));
    assert_ne!(stopped["reason"], "goto");
    let unknown = json!({"threadId": 2, "targetId": 77});
    assert!(
        editor
            .refused("goto", &unknown)
            .contains("77 is not the number of a goto target")
    );
    editor.disconnect();
}

#[test]
fn sources_instructions_and_threads_are_listed() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 1));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "spinning");
    wait_for_second_threads(&work, 1);
    editor.ask("pause", &json!({"threadId": 1}));
    let stopped = editor.event("stopped");
    assert_eq!(stopped["threadId"], 1, "{stopped}");
    assert_eq!(
        editor.event("thread"),
        json!({"reason": "started", "threadId": 2})
    );
    let threads = editor.threads();
    assert_eq!(threads.len(), 2, "{threads:?}");
    assert!(threads[1].1.starts_with("thread 2 "), "{threads:?}");
    // The stack of the one that has not stopped the process, and its values.
    let frames = editor.frames(&json!(2));
    let waits = frames.iter().find(|frame| frame["name"] == "wait_for_ever");
    let waits = waits.unwrap_or_else(|| panic!("{frames:?}"));
    assert_eq!(editor.scope(waits, "Arguments")[0]["name"], "nothing");
    // After that the first is still the one that moves.
    let frames = editor.frames(&json!(1));
    let spin = frames
        .iter()
        .find(|frame| frame["name"] == "spin")
        .expect("it spins");
    let address = spin["instructionPointerReference"]
        .as_str()
        .expect("an address");
    let arguments = json!({"memoryReference": address, "instructionCount": 1});
    let body = editor.ask("disassemble", &arguments);
    let symbol = body["instructions"][0]["symbol"]
        .as_str()
        .expect("a symbol");
    assert!(symbol.starts_with("spin+"), "{body}");
    let sources = editor.ask("loadedSources", &json!({}));
    let paths = sources["sources"].as_array().expect("a list");
    assert!(paths.iter().any(|it| it["path"] == source()), "{sources}");
    // Where a breakpoint at an instruction stops, and one instruction on.
    let counts = Place::line("work.c", "rounds++;");
    set(&mut editor, &[json!({"line": counts})]);
    go(&mut editor, "continue", &json!(1));
    set_none(&mut editor);
    let frames = editor.frames(&json!(1));
    let here = &frames[0]["instructionPointerReference"];
    let wanted = json!({"breakpoints": [{"instructionReference": here}]});
    let body = editor.ask("setInstructionBreakpoints", &wanted);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    let stopped = go(&mut editor, "continue", &json!(1));
    assert_eq!(stopped["reason"], "instruction breakpoint", "{stopped}");
    editor.forget("stopped");
    let step = json!({"threadId": 1, "granularity": "instruction"});
    editor.ask("stepIn", &step);
    assert_eq!(editor.event("stopped")["reason"], "step");
    let frames = editor.frames(&json!(1));
    assert_ne!(&frames[0]["instructionPointerReference"], here);
    assert_eq!(frames[0]["line"], counts);
    editor.disconnect();
}
