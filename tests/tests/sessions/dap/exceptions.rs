//! Stops at exceptions, signals, forks and data breakpoints in an editor; and Fortran variables and strided arrays in
//! an editor.

use std::path::Path;

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{all_stopped, at_entry, configuration, go};

/// An editor that has launched one rank, with these exception filters.
fn launched<'a>(place: &'a Place, program: &Path, args: &[&str], filters: &Value) -> Editor<'a> {
    let mut editor = Editor::new(place);
    editor.launch(&configuration(program, args, 1));
    editor.ask("setExceptionBreakpoints", filters);
    editor
}

/// Reason of rank 0's stop, from the event and from `exceptionInfo`.
fn exception(editor: &mut Editor<'_>, stopped: &Value) -> String {
    assert_eq!(stopped["reason"], "exception", "{stopped}");
    assert!(stopped["text"].is_string(), "{stopped}");
    let info = editor.ask("exceptionInfo", &json!({"threadId": stopped["threadId"]}));
    info["exceptionId"].as_str().expect("a text").to_owned()
}

/// The functions of the stack.
fn functions(editor: &mut Editor<'_>, thread: &Value) -> Vec<String> {
    let frames = editor.frames(thread);
    let names = frames.iter().map(|frame| frame["name"].as_str());
    names.map(|name| name.unwrap_or("").to_owned()).collect()
}

#[test]
fn cxx_exceptions_stop_at_throw_and_catch() {
    let place = Place::new();
    let throws = place.compile("throws", Compiler::Cxx);
    let filters = json!({"filters": ["throw", "abort"]});
    let mut editor = launched(&place, &throws, &["abort"], &filters);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(exception(&mut editor, &stopped), "throw");
    let thread = &stopped["threadId"];
    let names = functions(&mut editor, thread);
    assert!(names.iter().any(|name| name == "refuse"), "{names:?}");
    // The condition of the throw never holds; the catch stops now.
    let filters = json!({"filters": ["abort"], "filterOptions": [
        {"filterId": "throw", "condition": "0"}, {"filterId": "catch"},
    ]});
    editor.ask("setExceptionBreakpoints", &filters);
    let stopped = go(&mut editor, "continue", thread);
    assert_eq!(exception(&mut editor, &stopped), "catch");
    // A container is shown by its length and elements.
    let frames = editor.frames(thread);
    let main = frames.iter().find(|frame| frame["name"] == "main");
    let locals = editor.scope(main.expect("it is there"), "Locals");
    let caught = locals.iter().find(|local| local["name"] == "caught");
    let caught = caught.unwrap_or_else(|| panic!("{locals:?}"));
    let value = caught["value"].as_str().expect("a text");
    assert!(value.contains("vector of length 1"), "{caught}");
    let parts = editor.below(caught);
    assert_eq!(parts[0]["value"], "7", "{parts:?}");
    // Nothing but its end is left to stop it.
    editor.ask("setExceptionBreakpoints", &json!({"filters": ["abort"]}));
    let stopped = go(&mut editor, "continue", thread);
    assert_eq!(exception(&mut editor, &stopped), "abort");
    let stopped = go(&mut editor, "continue", thread);
    assert_eq!(exception(&mut editor, &stopped), "SIGABRT");
    editor.ask("continue", &json!({"threadId": thread}));
    assert_eq!(editor.event("exited")["exitCode"], 128 + 6);
    editor.disconnect();
}

#[test]
fn exception_filters_stop_at_signals_forks_and_execs() {
    let place = Place::new();
    let raises = place.compile("raises", Compiler::C);
    let forks = place.compile("forks", Compiler::C);
    let execs = place.compile("execs", Compiler::C);
    for (program, args, filter, said) in [
        (&raises, &["10"][..], "signals", "SIGUSR1"),
        (&forks, &[], "fork", "fork"),
        (&execs, &["once"], "exec", "exec"),
    ] {
        let mut editor = launched(&place, program, args, &json!({"filters": [filter]}));
        editor.ask("configurationDone", &Value::Null);
        let stopped = editor.event("stopped");
        let exception = exception(&mut editor, &stopped);
        assert!(exception.ends_with(said), "{filter}: {exception}");
        editor.disconnect();
        // Without the filter no rank stops.
        if filter != "signals" {
            let mut editor = launched(&place, program, args, &json!({"filters": []}));
            editor.ask("configurationDone", &Value::Null);
            editor.event("terminated");
            assert_eq!(editor.unread("stopped"), 0, "{filter}");
            editor.disconnect();
        }
    }
    let mut editor = launched(&place, &raises, &["10"], &json!({"filters": ["nonsense"]}));
    let said = editor.event("output");
    assert!(
        said["output"]
            .as_str()
            .is_some_and(|text| text.contains("unknown filter `nonsense`")),
        "{said}"
    );
    editor.disconnect();
}

#[test]
fn data_breakpoints_take_access_type_and_hit_count() {
    let place = Place::new();
    let mut editor = at_entry(&place, &["steps"], 1);
    let stopped = editor.event("stopped");
    let frames = editor.frames(&stopped["threadId"]);
    let arguments = json!({"name": "rank", "frameId": frames[0]["id"]});
    let info = editor.ask("dataBreakpointInfo", &arguments);
    let id = &info["dataId"];
    // `rank` is read once in each of three calls, which `i` numbers.
    let watch = json!({"dataId": id, "accessType": "read", "hitCondition": "2"});
    let body = editor.ask("setDataBreakpoints", &json!({"breakpoints": [watch]}));
    let point = &body["breakpoints"][0];
    assert_eq!(point["verified"], true, "{body}");
    let stopped = go(&mut editor, "continue", &stopped["threadId"]);
    assert_eq!(stopped["reason"], "data breakpoint", "{stopped}");
    assert_eq!(stopped["hitBreakpointIds"], json!([point["id"]]));
    let frames = editor.frames(&stopped["threadId"]);
    let i = json!({"expression": "i", "frameId": frames[0]["id"], "context": "hover"});
    assert_eq!(editor.ask("evaluate", &i)["result"], "1");
    let watch = json!({"dataId": id, "accessType": "readWrite", "hitCondition": "% 2"});
    let body = editor.ask("setDataBreakpoints", &json!({"breakpoints": [watch]}));
    let point = &body["breakpoints"][0];
    assert_eq!(point["verified"], false, "{body}");
    let none = json!({"breakpoints": [{"dataId": "", "accessType": "read"}]});
    let body = editor.ask("setDataBreakpoints", &none);
    assert_eq!(body["breakpoints"][0]["verified"], false, "{body}");
    editor.ask("continue", &json!({"threadId": stopped["threadId"]}));
    assert_eq!(editor.event("exited")["exitCode"], 0);
    editor.disconnect();
}

#[test]
fn fortran_variables_are_read_and_set() {
    let place = Place::new();
    let heat = place.compile("heat", Compiler::Fortran);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&heat, &[], 2));
    let source = super::source().replace("work.c", "heat.f90");
    let line = Place::line("heat.f90", "values(0) = values(0) + number");
    let points = json!({"source": {"path": source}, "breakpoints": [
        {"line": line, "condition": "number == 2"},
    ]});
    let body = editor.ask("setBreakpoints", &points);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    editor.ask("configurationDone", &Value::Null);
    all_stopped(&mut editor);
    let frames = editor.frames(&json!(2));
    let arguments = editor.scope(&frames[0], "Arguments");
    let named = |name: &str| arguments.iter().find(|it| it["name"] == name);
    assert_eq!(named("number").expect("it is there")["value"], "2");
    let values = named("values").expect("it is there");
    let parts = editor.below(values);
    let shown: Vec<_> = parts
        .iter()
        .map(|part| (part["name"].as_str(), part["value"].as_str()))
        .collect();
    let expect = [
        ("[-1]", "0.5"),
        ("[0]", "2.5"),
        ("[1]", "2.5"),
        ("[2]", "3.5"),
    ];
    assert_eq!(shown, expect.map(|(name, value)| (Some(name), Some(value))));
    let main = editor.scope(&frames[1], "Locals");
    let hot = main.iter().find(|local| local["name"] == "hot");
    let parts = editor.below(hot.unwrap_or_else(|| panic!("{main:?}")));
    assert_eq!(
        (&parts[0]["name"], &parts[0]["value"]),
        (&json!("id"), &json!("7"))
    );
    let place_of =
        json!({"expression": "cells(0)", "frameId": frames[0]["id"], "context": "watch"});
    assert_eq!(editor.ask("evaluate", &place_of)["result"], "2.5");
    let change = json!({"expression": "cells(0)", "frameId": frames[0]["id"], "value": "10.5"});
    assert_eq!(editor.ask("setExpression", &change)["value"], "10.5");
    editor.ask(
        "setBreakpoints",
        &json!({"source": {"path": source}, "breakpoints": []}),
    );
    editor.ask("continue", &json!({"threadId": 2}));
    editor.event("terminated");
    // 0.5 + 2.5 + 3.5, and 6.5 + 1 on one rank, 10.5 + 2 + 3 on the other.
    let output = editor.output("stdout");
    let sums = output.contains("14.00") && output.contains("22.00");
    assert!(sums, "{output}");
    editor.disconnect();
}

#[test]
fn editor_shows_the_right_elements_of_strided_arrays() {
    let place = Place::new();
    let sections = place.compile("sections", Compiler::Fortran);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&sections, &[], 1));
    let source = super::source().replace("work.c", "sections.f90");
    let line = Place::line("sections.f90", "print *, row(1), grid(1, 1)");
    // gdb reads 20 for this element, whose value is 100.
    let points = json!({"source": {"path": source}, "breakpoints": [
        {"line": line, "condition": "back(1) == 20"},
        {"line": line, "condition": "every(2) == 60"},
    ]});
    editor.ask("setBreakpoints", &points);
    editor.ask("configurationDone", &Value::Null);
    all_stopped(&mut editor);
    let frames = editor.frames(&json!(1));
    let arguments = editor.scope(&frames[0], "Arguments");
    let mut parts_of = |names: &[&str]| {
        let mut all = arguments.clone();
        for name in names {
            let found = all.iter().find(|it| it["name"] == *name).cloned();
            all = editor.below(&found.unwrap_or_else(|| panic!("{name}: {all:?}")));
        }
        let values = all
            .iter()
            .map(|part| part["value"].as_str().map(str::to_owned));
        values.map(Option::unwrap_or_default).collect::<Vec<_>>()
    };
    assert_eq!(parts_of(&["back"]), ["100", "80", "60", "40", "20"]);
    assert_eq!(parts_of(&["every"]), ["20", "60", "100"]);
    assert_eq!(parts_of(&["own", "view"]), ["80", "20"]);
    editor.disconnect();
}
