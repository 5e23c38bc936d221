//! Values, memory and instructions in an editor, and the stops of ranks.

use std::collections::BTreeMap;

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::united::united;
use serde_json::{Value, json};

use super::{at_entry, configuration, go, set, set_none, source};

#[test]
fn conditions_hit_counts_and_log_points_are_set_in_gdb() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 2));
    let line = Place::line("work.c", "int result = number * 2;");
    let back = Place::line("work.c", "return result;");
    let wanted = [
        json!({"line": line, "logMessage": "twice {number} is wanted"}),
        json!({"line": back, "hitCondition": "3"}),
    ];
    for set in set(&mut editor, &wanted) {
        assert_eq!(set["verified"], true, "{set}");
    }
    let refused = set(
        &mut editor,
        &[
            wanted[0].clone(),
            wanted[1].clone(),
            json!({
                "line": back, "hitCondition": "% 2",
            }),
        ],
    );
    assert_eq!(refused[2]["verified"], false);
    assert!(
        refused[2]["message"]
            .as_str()
            .is_some_and(|text| text.contains("hit count"))
    );
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
    // The third call is stopped at its end, and all three have printed their messages.
    let frames = editor.frames(&stopped["threadId"]);
    assert_eq!(editor.scope(&frames[0], "Arguments")[0]["value"], "2");
    let wanted = [0, 1, 2].map(|number| format!("[0-1] twice {number} is wanted"));
    let has_all = |said: &str| wanted.iter().all(|line| said.contains(line));
    while !has_all(&united(&editor.output("console"))) {
        editor.event("output");
    }
    let said = united(&editor.output("console"));
    assert_eq!(said.lines().count(), 3, "each once: {said}");
    editor.disconnect();
}

#[test]
fn changed_condition_that_gdb_refuses_is_not_verified() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 2));
    let line = Place::line("work.c", "int result = number * 2;");
    let mut on = |condition: &str| {
        let points = set(
            &mut editor,
            &[json!({"line": line, "condition": condition})],
        );
        points[0].clone()
    };
    assert_eq!(on("number == 0")["verified"], true);
    let refused = on("nosuch == 1");
    assert_eq!(refused["verified"], false, "{refused}");
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(why.contains("nosuch"), "{refused}");
    // The earlier condition stops no rank, and the next one is taken.
    let taken = on("number == 2");
    assert_eq!(taken["verified"], true, "{taken}");
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    let frames = editor.frames(&stopped["threadId"]);
    assert_eq!(editor.scope(&frames[0], "Arguments")[0]["value"], "2");
    editor.disconnect();
}

/// The children of variables that were asked for, by the variables' references.
type Opened = BTreeMap<i64, Vec<Value>>;

/// The variable at the end of a path of names, which begins among `variables`. Each variable is asked for once.
fn opened(editor: &mut Editor<'_>, known: &mut Opened, variables: &[Value], way: &[&str]) -> Value {
    let mut here = variables;
    let (last, before) = way.split_last().expect("a way has an end");
    for name in before {
        let found = here.iter().find(|it| it["name"] == *name);
        let found = found.unwrap_or_else(|| panic!("no {name} of {way:?} in {here:?}"));
        let reference = found["variablesReference"].as_i64().expect("a number");
        let found = found.clone();
        here = known
            .entry(reference)
            .or_insert_with(|| editor.below(&found));
    }
    let found = here.iter().find(|it| it["name"] == *last);
    let found = found.unwrap_or_else(|| panic!("no {last} of {way:?} in {here:?}"));
    found.clone()
}

/// An editor at the function of `opened.cc`, with its frame and the members of its argument.
fn at_field(place: &Place) -> (Editor<'_>, Value, Vec<Value>) {
    let program = place.compile_with("opened", Compiler::Cxx, &["-g", "-std=c++17"]);
    let mut editor = Editor::new(place);
    editor.launch(&configuration(&program, &[], 2));
    let source = source().replace("work.c", "opened.cc");
    let line = Place::line("opened.cc", "// looked at");
    let breakpoints = json!({"source": {"path": source}, "breakpoints": [{"line": line}]});
    editor.ask("setBreakpoints", &breakpoints);
    editor.ask("configurationDone", &Value::Null);
    let stopped = super::all_stopped(&mut editor);
    let frame = editor.frames(&stopped["threadId"])[0].clone();
    let arguments = editor.scope(&frame, "Arguments");
    let members = editor.below(&arguments[0]);
    (editor, frame["id"].clone(), members)
}

#[test]
fn members_are_expanded_to_their_leaves() {
    let place = Place::new();
    let (mut editor, frame, members) = at_field(&place);
    let names: Vec<&str> = members
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    let base = ["Named"];
    let own = ["rows", "groups", "hot", "own", "cells", "first"];
    let added = ["places", "words", "flags"];
    assert_eq!(names, [&base[..], &own, &added].concat());
    let mut known = Opened::new();
    for (way, value, evaluate_name) in [
        (&["rows", "[0]", "[1]"][..], "2", Some("field.rows[0][1]")),
        (&["rows", "[1]", "[0]"], "3", Some("field.rows[1][0]")),
        (
            &["groups", "[\"west\"]", "[0]"],
            "4",
            Some("($_sdm_child(field.groups, 0))[0]"),
        ),
        (
            &["hot", "[contained value]", "id"],
            "5",
            Some("($_sdm_child(field.hot, 0)).id"),
        ),
        (
            &["own", "get()", "id"],
            "7",
            Some("($_sdm_child(field.own, 0))->id"),
        ),
        (
            &["places", "[{first = 1, second = 2}]", "id"],
            "13",
            Some("($_sdm_child(field.places, 0)).id"),
        ),
        (
            &["words", "[1]"],
            "\"north\"",
            Some("$_sdm_child(field.words, 1)"),
        ),
        (&["flags", "[1]"], "true", Some("field.flags[1]")),
        (
            &["Named", "raw", "[0]"],
            "65 'A'",
            Some("((*(Named *) &field).raw)[0]"),
        ),
        (&["cells", "[0]", "id"], "9", Some("field.cells[0].id")),
        (&["first", "id"], "11", Some("field.first->id")),
    ] {
        let found = opened(&mut editor, &mut known, &members, way);
        assert_eq!(found["value"], value, "{way:?}");
        assert_eq!(found["evaluateName"].as_str(), evaluate_name, "{way:?}");
        if let Some(expression) = evaluate_name {
            let asked = json!({"expression": expression, "frameId": frame});
            assert_eq!(editor.ask("evaluate", &asked)["result"], value, "{way:?}");
        }
    }
    editor.disconnect();
}

#[test]
fn texts_are_shown_and_elements_of_maps_are_changed() {
    let place = Place::new();
    let (mut editor, frame, members) = at_field(&place);
    let mut known = Opened::new();
    for (name, text) in [("name", "\"middle\""), ("raw", "\"A\\377\"")] {
        let found = opened(&mut editor, &mut known, &members, &["Named", name]);
        assert_eq!(found["value"], text, "{name}");
    }
    let way = ["groups", "[\"west\"]"];
    let group = opened(&mut editor, &mut known, &members, &way);
    let reference = &group["variablesReference"];
    let asked = json!({"variablesReference": reference, "name": "[0]", "value": "40"});
    let _ = editor.below(&group);
    assert_eq!(editor.ask("setVariable", &asked)["value"], "40");
    let expression = "($_sdm_child(field.groups, 0))[0]";
    let asked = json!({"expression": expression, "frameId": frame});
    assert_eq!(editor.ask("evaluate", &asked)["result"], "40");
    let asked = json!({"expression": expression, "value": "41", "frameId": frame});
    assert_eq!(editor.ask("setExpression", &asked)["value"], "41");
    editor.disconnect();
}

#[test]
fn source_map_finds_a_moved_source() {
    let place = Place::new();
    let fixtures = source().replace("/work.c", "");
    let moved = format!("-fdebug-prefix-map={fixtures}=/built/elsewhere");
    let work = place.compile_with("work", Compiler::C, &["-g", &moved]);
    let breakpoint = json!({"line": Place::line("work.c", "int result = number * 2;")});
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 2));
    let unplaced = &set(&mut editor, std::slice::from_ref(&breakpoint))[0];
    let said = "the program was compiled with work.c at /built/elsewhere/work.c: map that folder with `sourceFileMap`";
    assert_eq!(
        (&unplaced["verified"], &unplaced["message"]),
        (&json!(false), &json!(said))
    );
    editor.disconnect();
    let mut editor = Editor::new(&place);
    let mut configuration = configuration(&work, &["steps"], 2);
    configuration["sourceFileMap"] = json!({"/built/elsewhere": fixtures});
    editor.launch(&configuration);
    assert_eq!(set(&mut editor, &[breakpoint])[0]["verified"], true);
    editor.ask("configurationDone", &Value::Null);
    let stopped = super::all_stopped(&mut editor);
    assert_eq!(stopped["reason"], "breakpoint");
    let frames = editor.frames(&stopped["threadId"]);
    assert_eq!(frames[0]["source"]["path"], source());
    editor.disconnect();
}

/// Registers do not open, as an address in one has no type, and are assigned by their names.
fn expect_plain_registers(editor: &mut Editor<'_>, scope: &Value) {
    let registers = &scope["variablesReference"];
    let found = editor.ask("variables", &json!({"variablesReference": registers}));
    let found = found["variables"].as_array().expect("registers");
    for one in found {
        assert_eq!(one["variablesReference"], 0, "{one}");
        let name = one["name"].as_str().expect("a name");
        assert_eq!(one["evaluateName"], format!("${name}"), "{one}");
    }
    let name = &found[0]["name"];
    let arguments = json!({"variablesReference": registers, "name": name, "value": "7"});
    assert_eq!(editor.ask("setVariable", &arguments)["value"], "7");
}

#[test]
fn values_and_memory_are_read_and_written() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 1));
    let line = Place::line("work.c", "return result;");
    set(&mut editor, &[json!({"line": line})]);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    let thread = &stopped["threadId"];
    let frames = editor.frames(thread);
    let scopes = editor.ask("scopes", &json!({"frameId": frames[0]["id"]}));
    let locals = &scopes["scopes"][1]["variablesReference"];
    let arguments = json!({"variablesReference": locals, "name": "result", "value": "40 + 1"});
    assert_eq!(editor.ask("setVariable", &arguments)["value"], "41");
    expect_plain_registers(&mut editor, &scopes["scopes"][2]);
    let arguments = json!({"frameId": frames[1]["id"], "expression": "total", "value": "1"});
    assert_eq!(editor.ask("setExpression", &arguments)["value"], "1");
    let why = editor.refused(
        "setVariable",
        &json!({
            "variablesReference": locals, "name": "result", "value": "nonsense",
        }),
    );
    assert!(why.contains("nonsense"), "{why}");
    // Memory, through a pointer to it.
    let arguments =
        json!({"expression": "&result", "frameId": frames[0]["id"], "context": "watch"});
    let pointer = editor.ask("evaluate", &arguments);
    let reference = &pointer["memoryReference"];
    let read = json!({"memoryReference": reference, "count": 4});
    assert_eq!(editor.ask("readMemory", &read)["data"], "KQAAAA==");
    let write = json!({"memoryReference": reference, "data": "KgA="});
    assert_eq!(editor.ask("writeMemory", &write)["bytesWritten"], 2);
    assert_eq!(editor.ask("readMemory", &read)["data"], "KgAAAA==");
    let nowhere = json!({"memoryReference": "0x10", "count": 4});
    assert!(!editor.refused("readMemory", &nowhere).is_empty());
    // The instructions of a function; those before it are unknown.
    let arguments = json!({"expression": "twice", "frameId": frames[0]["id"], "context": "watch"});
    let function = editor.ask("evaluate", &arguments);
    let address = function["result"]
        .as_str()
        .and_then(|text| text.split(' ').find(|it| it.starts_with("0x")));
    let arguments = json!({
        "memoryReference": address, "instructionOffset": -1, "instructionCount": 4,
    });
    let body = editor.ask("disassemble", &arguments);
    let instructions = body["instructions"].as_array().expect("a list");
    assert_eq!(instructions.len(), 4);
    assert_eq!(instructions[0]["presentationHint"], "invalid");
    assert_eq!(instructions[1]["symbol"], "twice+0");
    let modules = editor.ask("modules", &json!({}));
    let modules = modules["modules"].as_array().expect("a list");
    assert!(
        modules.iter().any(|module| module["name"] == "libc.so.6"),
        "{modules:?}"
    );
    offers_words(&mut editor);
    // A data breakpoint stops the code that changes the value.
    let arguments = json!({"name": "total", "frameId": frames[1]["id"]});
    let info = editor.ask("dataBreakpointInfo", &arguments);
    set_none(&mut editor);
    let watched = json!({"breakpoints": [{"dataId": info["dataId"], "accessType": "write"}]});
    let body = editor.ask("setDataBreakpoints", &watched);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    let stopped = go(&mut editor, "continue", thread);
    assert_eq!(stopped["reason"], "data breakpoint", "{stopped}");
    editor.disconnect();
}

/// Number of parts, and the names and values of the first and of the last.
fn ends(parts: &[Value]) -> (usize, [(&str, &str); 2]) {
    fn end(part: Option<&Value>) -> (&str, &str) {
        let part = part.expect("there are some");
        let name = part["name"].as_str().expect("a text");
        (name, part["value"].as_str().expect("a text"))
    }
    (parts.len(), [end(parts.first()), end(parts.last())])
}

#[test]
fn arrays_are_fetched_in_pieces() {
    let place = Place::new();
    let arrays = place.compile("arrays", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&arrays, &[], 2));
    let line = Place::line("arrays.c", "return *sum;");
    let path = source().replace("work.c", "arrays.c");
    let points = json!({"source": {"path": path}, "breakpoints": [{"line": line}]});
    editor.ask("setBreakpoints", &points);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    let frames = editor.frames(&stopped["threadId"]);
    let locals = editor.scope(&frames[0], "Locals");
    let named = |name: &str| {
        let found = locals.iter().find(|local| local["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {locals:?}"))
    };
    // A request for all elements returns a thousand, and the rest below one row.
    let parts = editor.below(named("values"));
    let more = ("[1000...]", "more elements; expand to see them");
    assert_eq!(ends(&parts), (1001, [("[0]", "0"), more]));
    let parts = editor.below(&parts[1000]);
    let more = ("[2000...]", "more elements; expand to see them");
    assert_eq!(ends(&parts), (1001, [("[1000]", "2000"), more]));
    let parts = editor.below(&parts[1000]);
    assert_eq!(
        ends(&parts),
        (500, [("[2000]", "4000"), ("[2499]", "4998")])
    );
    // An editor that knows the number of elements requests pieces.
    let members = editor.below(named("grid"));
    assert_eq!(ends(&members).0, 2);
    assert_eq!(members[1]["indexedVariables"], 3, "{members:?}");
    let rows = editor.below(&members[1]);
    assert_eq!(rows[2]["indexedVariables"], 1500, "{rows:?}");
    let mut piece = |start: i64, count: i64| {
        let arguments = json!({
            "variablesReference": rows[2]["variablesReference"],
            "filter": "indexed", "start": start, "count": count,
        });
        let body = editor.ask("variables", &arguments);
        body["variables"].as_array().expect("a list").clone()
    };
    let parts = piece(0, 100);
    assert_eq!(ends(&parts), (100, [("[0]", "3000"), ("[99]", "3099")]));
    let parts = piece(1450, 100);
    assert_eq!(ends(&parts), (50, [("[1450]", "4450"), ("[1499]", "4499")]));
    editor.disconnect();
}

fn offers_words(editor: &mut Editor<'_>) {
    // Words of gdb and of the program.
    let words = |editor: &mut Editor<'_>, text: &str| {
        let body = editor.ask(
            "completions",
            &json!({"text": text, "column": text.len() + 1}),
        );
        body["targets"].to_string()
    };
    assert!(words(editor, "conti").contains("\"continue\""));
    assert!(words(editor, "print resu").contains("\"result\""));
    assert!(words(editor, "1 + resu").contains("\"result\""));
}

#[test]
fn a_crash_is_an_exception_with_its_signal() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["segv"], 1));
    editor.ask("setExceptionBreakpoints", &json!({"filters": ["throw"]}));
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "exception", "{stopped}");
    let info = editor.ask("exceptionInfo", &json!({"threadId": stopped["threadId"]}));
    assert_eq!(info["exceptionId"], "SIGSEGV", "{info}");
    editor.ask("continue", &json!({"threadId": stopped["threadId"]}));
    assert_eq!(editor.event("exited")["exitCode"], 128 + 11);
    editor.disconnect();
}

#[test]
fn debug_console_takes_prompt_commands() {
    let place = Place::new();
    let mut editor = at_entry(&place, &["steps"], 2);
    editor.event("stopped");
    let line = |editor: &mut Editor<'_>, line: &str| {
        let body = editor.ask("evaluate", &json!({"expression": line, "context": "repl"}));
        body["result"].as_str().expect("a text").to_owned()
    };
    assert_eq!(line(&mut editor, "[all] print argc + 1"), "3");
    assert_eq!(line(&mut editor, "argc + 2"), "4");
    assert!(line(&mut editor, "[0-1] info line main").contains("work.c"));
    assert!(line(&mut editor, "[@stopped] stacks").starts_with("ranks 0-1 (2): main ()"));
    assert!(line(&mut editor, "ranks").starts_with("ranks 0-1 (2)  stopped"));
    assert!(line(&mut editor, "help stacks").contains("stacks"));
    for (text, why) in [
        ("[7] print argc", "7"),
        ("[0 print", "end of the set"),
        ("[@nobody] print argc", "nobody"),
        ("run 1 2", "launch.json"),
    ] {
        let arguments = json!({"expression": text, "context": "repl"});
        let refused = editor.refused("evaluate", &arguments);
        assert!(refused.contains(why), "{text}: {refused}");
    }
    // Ranks that a console line runs are reported to the editor, which has not requested the run.
    editor.forget("stopped");
    line(&mut editor, "[1] next");
    assert_eq!(
        editor.event("continued"),
        json!({"threadId": 2, "allThreadsContinued": false})
    );
    let stopped = editor.event("stopped");
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("step"), &json!(2))
    );
    line(&mut editor, "continue");
    assert_eq!(editor.event("exited")["exitCode"], 0);
    editor.disconnect();
}
