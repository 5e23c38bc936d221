//! Values of every kind, by reference and otherwise, in an editor and in traces.

use std::path::{Path, PathBuf};
use std::process::Command;

use sdm_tests::editor::Editor;
use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;
use serde_json::{Value, json};

/// Expressions in the frame of `look` of `sorts.cc`, each with its value.
const VALUES: [(&str, &str); 14] = [
    ("cell.heat", "2.5"),
    ("cell", "{id = 1, heat = 2.5}"),
    ("pointer->id", "1"),
    ("array", "{1, 2, 3}"),
    ("array[1]", "2"),
    ("number", "5"),
    ("number + 1", "6"),
    ("bits.high", "-3"),
    ("color", "Color::Green"),
    ("maybe", "std::optional<int> = {[contained value] = 4}"),
    ("row", "std::vector of length 3, capacity 3 = {1, 2, 3}"),
    ("name", "\"hello\""),
    ("letter", "120 'x'"),
    ("wide", "1.5"),
];

fn compile(place: &Place) -> (PathBuf, PathBuf) {
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdm-backend-gdbmi/tests/fixtures");
    let source = fixtures.join("sorts.cc").canonicalize().expect("a fixture");
    let program = place.path().join("sorts");
    let mut compiler = Command::new("c++");
    compiler.args(["-g", "-O0", "-o"]).args([&program, &source]);
    assert!(compiler.status().expect("c++").success());
    (program, source)
}

#[test]
fn editor_shows_the_target_of_references() {
    let place = Place::new();
    let (program, _) = compile(&place);
    let mut editor = Editor::new(&place);
    editor.launch(&json!({"program": program, "ranks": 2, "launcher": "local"}));
    let breakpoints = json!({"breakpoints": [{"name": "look"}]});
    editor.ask("setFunctionBreakpoints", &breakpoints);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    let frames = editor.frames(&stopped["threadId"]);
    let mut wrong = Vec::new();
    for (expression, expect) in VALUES {
        for context in ["hover", "watch", "clipboard"] {
            let arguments =
                json!({"expression": expression, "frameId": frames[0]["id"], "context": context});
            let body = editor.ask("evaluate", &arguments);
            if body["result"] != expect {
                wrong.push(format!("{context} {expression}: {}", body["result"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let scopes = editor.ask("scopes", &json!({"frameId": frames[0]["id"]}));
    let scope = scopes["scopes"][0].clone();
    assert_eq!(scope["name"], "Arguments", "{scopes}");
    let all = editor.below(&scope);
    for (name, expect) in VALUES {
        let Some(found) = all.iter().find(|one| one["name"] == name) else {
            continue;
        };
        let is_plain = found["variablesReference"] == 0;
        assert!(!is_plain || found["value"] == expect, "{found}");
    }
    let reference = &scope["variablesReference"];
    for (name, value, expect) in [
        ("number", "9", "9"),
        ("color", "Color::Red", "Color::Red"),
        ("wide", "2.25", "2.25"),
        ("letter", "'y'", "121 'y'"),
        ("number", "5", "5"),
    ] {
        let arguments = json!({"variablesReference": reference, "name": name, "value": value});
        let set = editor.ask("setVariable", &arguments);
        assert_eq!(set["value"], expect, "{name}");
        let arguments = json!({"expression": name, "frameId": frames[0]["id"]});
        assert_eq!(
            editor.ask("evaluate", &arguments)["result"],
            expect,
            "{name}"
        );
    }
    editor.disconnect();
}

#[test]
fn trace_prints_the_target_of_references() {
    let place = Place::new();
    let (program, source) = compile(&place);
    let line = "number = 6;";
    let text = std::fs::read_to_string(&source).expect("a fixture");
    let at = text.lines().position(|it| it.contains(line)).expect(line) + 1;
    let expressions = VALUES.map(|(expression, _)| expression).join(", ");
    let trace = format!("trace sorts.cc:{at} {expressions}");
    let done = Sdm::run(&place, 2)
        .lines(&[&trace, "continue"])
        .program(&program, &[])
        .finish();
    let all = VALUES.map(|(expression, value)| format!("{expression} = {value}"));
    done.expect_part(
        "continue",
        &format!(
            "ranks 0-1 (2): breakpoint 1 printed\n  {}\n",
            all.join(", ")
        ),
    );
}
