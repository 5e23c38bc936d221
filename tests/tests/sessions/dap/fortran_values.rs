//! Values of Fortran that an editor sets.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

/// The value at a path of names below a scope, and its parent.
fn find(editor: &mut Editor<'_>, scope: &Value, path: &[&str]) -> (Value, Value) {
    let (mut parent, mut found) = (scope.clone(), scope.clone());
    for name in path {
        let all = editor.below(&found);
        let is_it = |one: &&Value| {
            let shown = one["name"].as_str().expect("a name");
            shown.trim_matches(['[', ']']) == *name
        };
        let one = all.iter().find(is_it);
        let one = one.unwrap_or_else(|| panic!("no {name} of {path:?} in {all:?}"));
        (parent, found) = (found, one.clone());
    }
    (parent, found)
}

/// A path below the arguments, the designator there, a new value, and the text of it.
type Row = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
);

const ROWS: [Row; 13] = [
    (&["row", "20"], "row(20)", "9.5", "9.5"),
    (&["part", "2", "2"], "part(2,2)", "80", "80"),
    (&["back", "2"], "back(2)", "-80", "-80"),
    (&["own", "id"], "own%id", "33", "33"),
    (&["own", "weights", "15"], "own%weights(15)", "7.25", "7.25"),
    (&["phase"], "phase", "(3.0,4.0)", "(3,4)"),
    (&["flag"], "flag", ".FALSE.", ".FALSE."),
    (&["wide"], "wide", "2.75", "2.75"),
    (&["word"], "word", "'world'", "'world'"),
    (&["word"], "word", "'cat'", "'cat  '"),
    (&["list", "30"], "list(30)", "70", "70"),
    (&["cells", "2", "id"], "cells(2)%id", "99", "99"),
    (
        &["cells", "2", "weights", "2"],
        "cells(2)%weights(2)",
        "8.5",
        "8.5",
    ),
];

/// Each sort of value is set where it lies.
#[test]
fn editor_sets_each_sort_of_fortran_value() {
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Fortran);
    let mut editor = Editor::new(&place);
    editor.launch(&json!({"program": program, "ranks": 1, "launcher": "local"}));
    let breakpoints = json!({"breakpoints": [{"name": "look"}]});
    editor.ask("setFunctionBreakpoints", &breakpoints);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    let frame = editor.frames(&stopped["threadId"])[0]["id"].clone();
    let scopes = editor.ask("scopes", &json!({"frameId": frame}));
    let scope = scopes["scopes"][0].clone();
    let mut wrong = Vec::new();
    for (path, designator, value, expect) in ROWS {
        let shown = |editor: &mut Editor<'_>, expression: &str| {
            let watch = json!({"expression": expression, "frameId": frame, "context": "watch"});
            editor.try_out("evaluate", &watch)["body"]["result"].clone()
        };
        let (parent, found) = find(&mut editor, &scope, path);
        let name = found["evaluateName"].as_str().unwrap_or_default();
        let arguments = json!({
            "variablesReference": parent["variablesReference"], "name": found["name"], "value": value,
        });
        let set = editor.try_out("setVariable", &arguments);
        let is_right = set["body"]["value"] == expect && shown(&mut editor, designator) == expect;
        if !is_right || name != designator {
            let after = shown(&mut editor, designator);
            wrong.push(format!("{designator}: {name} {set}, then {after}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    editor.disconnect();
}
