//! Whole conversations of an editor with `sdm dap`, stored in `tests/golden`: `UPDATE_GOLDEN=1` rewrites them.

use std::path::Path;

use sdm_tests::editor::Editor;
use sdm_tests::golden;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{configuration, go, set, set_none};

/// Messages of an adapter, one line each, without those that differ from run to run: the progress of a start, and
/// the notice that a step takes long, as on a busy machine.
fn kept(place: &Place, transcript: &[Value]) -> String {
    let is_kept = |message: &&Value| {
        let event = message["event"].as_str();
        let output = message["body"]["output"].as_str();
        let is_progress = event.is_some_and(|event| event.starts_with("progress"));
        let is_late = message["body"]["category"] == "console"
            && output.is_some_and(|text| text.contains("still run"));
        !is_progress && !is_late
    };
    let messages = transcript.iter().filter(is_kept).enumerate();
    let lines = messages.map(|(at, message)| {
        let mut message = message.clone();
        message["seq"] = json!(at + 1);
        format!("{message}\n")
    });
    let text = golden::normalised(&lines.collect::<String>(), place);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    text.replace(&fixtures.display().to_string(), "FIXTURES")
}

#[test]
fn session_of_one_rank_matches_its_transcript() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let line = Place::line("work.c", "int result = number * 2;");
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 1));
    let wanted = [json!({"line": line, "condition": "number > 0"})];
    set(&mut editor, &wanted);
    editor.ask(
        "setExceptionBreakpoints",
        &json!({"filters": ["mpi_abort"]}),
    );
    editor.ask("configurationDone", &Value::Null);
    editor.event("stopped");
    editor.threads();
    let frames = editor.frames(&json!(1));
    let body = editor.ask("scopes", &json!({"frameId": frames[1]["id"]}));
    for scope in &body["scopes"].as_array().expect("a list")[..2] {
        editor.below(scope);
    }
    let watch = json!({"expression": "number + 1", "frameId": frames[0]["id"], "context": "watch"});
    editor.ask("evaluate", &watch);
    let targets = json!({"source": {"path": super::source()}, "line": line + 1});
    editor.ask("gotoTargets", &targets);
    editor.refused("frobnicate", &json!({}));
    go(&mut editor, "next", &json!(1));
    set_none(&mut editor);
    editor.ask("continue", &json!({"threadId": 1}));
    editor.event("terminated");
    let transcript = editor.disconnect();
    golden::check("dap.one-rank", &kept(&place, &transcript));
}

#[test]
fn session_of_emulated_ranks_matches_its_transcript() {
    let place = Place::new();
    let scenario = place.path().join("scenario");
    let stacks = (1..4).map(|line| format!("stack = main m.c:9 > solve s.c:{line}\n"));
    let text = format!("[all]\n{}", stacks.collect::<String>());
    std::fs::write(&scenario, text).expect("a file");
    let mut editor = Editor::new(&place);
    let options = ["--scenario", scenario.to_str().expect("text")];
    editor.launch(&json!({"emulate": 40, "stopAtEntry": true, "sdmOptions": options}));
    editor.ask("configurationDone", &Value::Null);
    editor.event("stopped");
    editor.threads();
    for thread in 1..4 {
        editor.frames(&json!(thread));
    }
    editor.ask("sdm/ranks", &json!({}));
    editor.ask("sdm/focus", &json!({"rank": 39}));
    let asked = editor.request("startDebugging");
    // The word by which another client comes is another one each time.
    let word = asked["configuration"]["__sdmSession"]
        .as_str()
        .expect("a word")
        .to_owned();
    editor.refused("stackTrace", &json!({"threadId": 9}));
    let transcript = editor.disconnect();
    let text = kept(&place, &transcript).replace(&word, "WORD");
    golden::check("dap.three-places", &text);
}
