//! `sdm dap`: an editor debugs a job.

use std::path::Path;

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
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

/// Lets all run on from a thread, and gives the next stop.
fn go(editor: &mut Editor<'_>, command: &str, thread: &Value) -> Value {
    editor.forget("stopped");
    editor.ask(command, &json!({"threadId": thread}));
    editor.event("stopped")
}

#[test]
fn one_rank_is_debugged_from_its_launch_to_its_end() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let line = Place::line("work.c", "int result = number * 2;");
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 1));
    let set = set(&mut editor, &[json!({"line": line})]);
    assert_eq!(
        (&set[0]["verified"], &set[0]["line"]),
        (&json!(true), &json!(line))
    );
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
    assert_eq!(stopped["hitBreakpointIds"], json!([set[0]["id"]]));
    assert_eq!(stopped["allThreadsStopped"], true);
    let thread = &stopped["threadId"];
    assert_eq!(
        editor.threads(),
        [(1, format!("rank 0: twice work.c:{line}"))]
    );
    let frames = editor.frames(thread);
    let names: Vec<_> = frames.iter().map(|frame| frame["name"].as_str()).collect();
    assert_eq!(names, [Some("twice"), Some("step_through"), Some("main")]);
    assert_eq!(frames[0]["source"]["path"], source());
    let arguments = editor.scope(&frames[0], "Arguments");
    assert_eq!(arguments[0]["name"], "number");
    assert_eq!(arguments[0]["value"], "0");
    let locals = editor.scope(&frames[1], "Locals");
    let names: Vec<_> = locals.iter().map(|local| local["name"].as_str()).collect();
    assert!(names.contains(&Some("total")), "{locals:?}");
    let watch = json!({"expression": "total + 41", "frameId": frames[1]["id"], "context": "watch"});
    assert_eq!(editor.ask("evaluate", &watch)["result"], "41");
    // The parts of a value are fetched when they are looked at.
    let arguments = editor.scope(&frames[2], "Arguments");
    let parts = editor.below(&arguments[1]);
    assert!(
        parts[0]["value"]
            .as_str()
            .is_some_and(|value| value.contains("work")),
        "{parts:?}"
    );
    let stopped = go(&mut editor, "next", thread);
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("step"), thread)
    );
    // What was known of its frames is of no use any more.
    let why = editor.refused("scopes", &json!({"frameId": frames[0]["id"]}));
    assert!(why.contains("has run since"), "{why}");
    let stopped = go(&mut editor, "stepOut", thread);
    assert_eq!(stopped["reason"], "step");
    assert_eq!(editor.frames(thread)[0]["name"], "step_through");
    let stopped = go(&mut editor, "stepIn", thread);
    assert_eq!(stopped["allThreadsStopped"], true);
    set_none(&mut editor);
    editor.ask("continue", &json!({"threadId": thread}));
    assert_eq!(editor.event("exited")["exitCode"], 0);
    editor.event("terminated");
    assert_eq!(editor.output("stdout"), "total 6\n");
    editor.disconnect();
}

fn set_none(editor: &mut Editor<'_>) {
    assert!(set(editor, &[]).is_empty());
}

/// `condition`s at two lines, so that classes part: those below `1` go further than the others.
fn part(editor: &mut Editor<'_>) -> (usize, usize) {
    let first = Place::line("work.c", "int result = number * 2;");
    let second = Place::line("work.c", "return result;");
    let wanted = [
        json!({"line": first, "condition": "rank >= 1"}),
        json!({"line": second, "condition": "rank < 1"}),
    ];
    for set in set(editor, &wanted) {
        assert_eq!(set["verified"], true, "{set}");
    }
    (first, second)
}

/// A line of the debug console.
fn line(editor: &mut Editor<'_>, line: &str) -> String {
    let body = editor.ask("evaluate", &json!({"expression": line, "context": "repl"}));
    body["result"].as_str().expect("a text").to_owned()
}

#[test]
fn ranks_that_stand_alike_are_one_thread_and_keep_its_number() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    let mut configuration = configuration(&work, &["steps"], 4);
    configuration["threads"] = json!("classes");
    configuration["stopAtEntry"] = json!(true);
    editor.launch(&configuration);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("entry"), &json!(1))
    );
    for (task, value) in [(2, 1), (3, 2)] {
        line(&mut editor, &format!("[{task}] set var rank = {value}"));
    }
    let (first, second) = part(&mut editor);
    // The part with the lowest rank keeps the number and the focus.
    let stopped = go(&mut editor, "continue", &json!(1));
    assert_eq!(stopped["threadId"], 1, "{stopped}");
    assert!(stopped["preserveFocusHint"].is_null(), "{stopped}");
    let other = editor.event("stopped");
    assert_eq!(
        (&other["threadId"], &other["preserveFocusHint"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(
        editor.event("thread"),
        json!({"reason": "started", "threadId": 2})
    );
    let expect = [
        (1, format!("[0-1] 2 ranks: twice work.c:{second}")),
        (2, format!("[2-3] 2 ranks: twice work.c:{first}")),
    ];
    assert_eq!(editor.threads(), expect);
    // Values that differ have their tasks.
    let frames = editor.frames(&json!(2));
    let arguments = editor.scope(&frames[0], "Arguments");
    assert_eq!(arguments[0]["value"], "1 [2], 2 [3]");
    let values = editor.below(&arguments[0]);
    let values: Vec<_> = values
        .iter()
        .map(|row| (&row["name"], &row["value"]))
        .collect();
    let expect = [(json!("[2]"), json!("1")), (json!("[3]"), json!("2"))];
    assert_eq!(
        values,
        expect
            .iter()
            .map(|(name, value)| (name, value))
            .collect::<Vec<_>>()
    );
    // One class goes on alone where that is asked for; the other stands where it was.
    let arguments = json!({"threadId": 2, "singleThread": true});
    editor.forget("stopped");
    let body = editor.ask("continue", &arguments);
    assert_eq!(body["allThreadsContinued"], false);
    let stopped = editor.event("stopped");
    assert_eq!(
        (&stopped["threadId"], &stopped["allThreadsStopped"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(editor.unread("stopped"), 0);
    let frames = editor.frames(&json!(2));
    assert_eq!(
        editor.scope(&frames[0], "Arguments")[0]["value"],
        "2 [2], 3 [3]"
    );
    // Classes that meet are one thread, with the number of the focused one.
    set_none(&mut editor);
    let out = Place::line("work.c", "printf(\"total %d");
    let set = set(&mut editor, &[json!({"line": out})]);
    assert_eq!(set[0]["verified"], true);
    let stopped = go(&mut editor, "continue", &json!(2));
    assert_eq!(stopped["threadId"], 2);
    assert_eq!(
        editor.threads(),
        [(2, format!("[0-3] 4 ranks: step_through work.c:{out}"))]
    );
    assert_eq!(line(&mut editor, "total"), "6 [0-1], 12 [2], 18 [3]");
    set_none(&mut editor);
    editor.ask("continue", &json!({"threadId": 2}));
    editor.event("terminated");
    let output = editor.output("stdout");
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let expect = ["[0-1] total 6", "[2] total 12", "[3] total 18"];
    assert_eq!(
        sdm_tests::united::united(&output).lines().count(),
        3,
        "{lines:?} {expect:?}"
    );
    editor.disconnect();
}

#[test]
fn ranks_are_paused_take_breakpoints_while_they_run_and_are_ended() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "spinning");
    let why = editor.refused("continue", &json!({"threadId": 1}));
    assert!(why.contains("pause it first"), "{why}");
    editor.ask("pause", &json!({"threadId": 1}));
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "pause", "{stopped}");
    // Each rank is a thread: there are few.
    let threads = editor.threads();
    assert_eq!(
        threads.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [1, 2]
    );
    let names: Vec<_> = editor
        .frames(&json!(2))
        .iter()
        .map(|frame| frame["name"].clone())
        .collect();
    assert!(names.contains(&json!("spin")), "{names:?}");
    editor.ask("continue", &json!({"threadId": 1}));
    editor.forget("stopped");
    let counts = Place::line("work.c", "rounds++;");
    let set = set(&mut editor, &[json!({"line": counts})]);
    assert_eq!(set[0]["verified"], true, "{set:?}");
    let mut threads = [editor.event("stopped"), editor.event("stopped")];
    threads.sort_by_key(|stopped| stopped["threadId"].as_i64());
    for (stopped, id) in threads.iter().zip(1..) {
        assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
        assert_eq!(stopped["threadId"], id);
    }
    set_none(&mut editor);
    editor.ask("continue", &json!({"threadId": 2}));
    editor.ask("terminate", &json!({}));
    assert_eq!(editor.event("exited")["exitCode"], 137);
    editor.event("terminated");
    editor.disconnect();
}

/// Waits until all that is printed holds `text`.
fn wait_for_output(editor: &mut Editor<'_>, text: &str) {
    while !editor.output("stdout").contains(text) {
        editor.event("output");
    }
}

#[test]
fn what_was_attached_to_runs_on() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut command = sdm_tests::sdm::command(&place, &work);
    let mut child = command.arg("spin").spawn().expect("it starts");
    let mut editor = Editor::new(&place);
    editor.ask("initialize", &json!({"adapterID": "sdm"}));
    editor.ask("attach", &json!({"target": child.id()}));
    editor.event("initialized");
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "entry", "{stopped}");
    assert!(!editor.frames(&stopped["threadId"]).is_empty());
    editor.ask("disconnect", &json!({}));
    assert!(child.try_wait().expect("a child").is_none(), "it runs on");
    child.kill().expect("it is there");
    child.wait().expect("a child");
    editor.finish();
}

#[test]
fn an_editor_that_dies_takes_what_it_has_launched_with_it() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "spinning");
    editor.finish();
}

#[test]
fn what_makes_no_sense_is_refused_in_words_and_harms_nothing() {
    let place = Place::new();
    let mut editor = Editor::new(&place);
    editor.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(complaint(&mut editor).contains("Content-Length"));
    editor.write(b"Content-Length: 3\r\n\r\n{,}");
    assert!(complaint(&mut editor).contains("not understood"));
    let mut deep = br#"{"type":"request","arguments":"#.to_vec();
    deep.resize(100_000, b'[');
    editor.write(format!("Content-Length: {}\r\n\r\n", deep.len()).as_bytes());
    editor.write(&deep);
    assert!(complaint(&mut editor).contains("recursion"));
    let long = 64 << 20;
    editor.write(format!("Content-Length: {long}\r\n\r\n").as_bytes());
    for _ in 0..64 {
        editor.write(&vec![b' '; 1 << 20]);
    }
    assert!(complaint(&mut editor).contains("67108864 bytes"));
    let why = editor.refused("launch", &json!({"program": "/bin/true"}));
    assert!(why.contains("`initialize` comes first"), "{why}");
    editor.ask("initialize", &json!({}));
    for (command, arguments, expect) in [
        ("initialize", json!({}), "it comes once"),
        ("frobnicate", json!({}), "does not know"),
        ("threads", json!([]), ""),
        ("stackTrace", json!({"threadId": 7}), "comes first"),
        ("launch", json!({}), "`program` is missing"),
        ("launch", json!({"program": 7}), "wrong arguments"),
        ("attach", json!({}), "`target` is missing"),
    ] {
        if expect.is_empty() {
            editor.ask(command, &arguments);
            continue;
        }
        let why = editor.refused(command, &arguments);
        assert!(why.contains(expect), "{command}: {why}");
    }
    let why = editor.refused(
        "launch",
        &json!({"program": "/nowhere/app", "launcher": "local"}),
    );
    assert!(why.contains("/nowhere/app"), "{why}");
    editor.event("terminated");
    editor.disconnect();
}

/// The next thing that the adapter says to the person.
fn complaint(editor: &mut Editor<'_>) -> String {
    let body = editor.event("output");
    body["output"].as_str().expect("a text").to_owned()
}

#[test]
fn conditions_hit_counts_and_log_points_are_gdbs() {
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
    // The third call is stopped at its end, and all three have said what they were for.
    let frames = editor.frames(&stopped["threadId"]);
    assert_eq!(editor.scope(&frames[0], "Arguments")[0]["value"], "2");
    while sdm_tests::united::united(&editor.output("console"))
        .lines()
        .count()
        < 3
    {
        editor.event("output");
    }
    let said = sdm_tests::united::united(&editor.output("console"));
    for number in 0..3 {
        assert!(
            said.contains(&format!("[0-1] twice {number} is wanted")),
            "{said}"
        );
    }
    editor.disconnect();
}

#[test]
fn values_and_memory_are_read_and_changed() {
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
    // The instructions of a function, those before it unknown.
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
    // Words of gdb's and of the program's.
    let words = |editor: &mut Editor<'_>, text: &str| {
        let body = editor.ask(
            "completions",
            &json!({"text": text, "column": text.len() + 1}),
        );
        body["targets"].to_string()
    };
    assert!(words(&mut editor, "conti").contains("\"continue\""));
    assert!(words(&mut editor, "print resu").contains("\"result\""));
    assert!(words(&mut editor, "1 + resu").contains("\"result\""));
    // A watched value stops what changes it.
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
fn sixty_four_ranks_are_a_few_threads() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["steps"], 64));
    let function = json!({"breakpoints": [{"name": "twice"}]});
    let body = editor.ask("setFunctionBreakpoints", &function);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    editor.ask("configurationDone", &Value::Null);
    let mut stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "function breakpoint", "{stopped}");
    // A busy machine may part them for a while.
    while stopped["allThreadsStopped"] == false {
        stopped = editor.event("stopped");
    }
    let threads = editor.threads();
    assert_eq!(threads.len(), 1, "{threads:?}");
    assert!(
        threads[0].1.starts_with("[0-63] 64 ranks: twice work.c:"),
        "{threads:?}"
    );
    let frames = editor.frames(&stopped["threadId"]);
    assert_eq!(editor.scope(&frames[0], "Arguments")[0]["value"], "0");
    editor.ask("terminate", &json!({}));
    editor.event("terminated");
    editor.disconnect();
}

#[test]
fn ten_thousand_ranks_in_a_hundred_places_are_at_most_sixty_four_threads() {
    let place = Place::new();
    let scenario = place.path().join("scenario");
    let stacks = (0..100).map(|line| format!("stack = main m.c:9 > solve s.c:{}\n", line + 1));
    let text = format!("[all]\n{}", stacks.collect::<String>());
    std::fs::write(&scenario, text).expect("a file");
    let mut editor = Editor::new(&place);
    let options = [
        "--tasks-per-server",
        "200",
        "--scenario",
        scenario.to_str().expect("text"),
    ];
    editor.launch(&json!({"emulate": 10_000, "stopAtEntry": true, "sdmOptions": options}));
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["allThreadsStopped"], true, "{stopped}");
    let threads = editor.threads();
    assert_eq!(threads.len(), 64);
    let (other, name) = threads.last().expect("there are some");
    assert!(name.ends_with("3700 ranks: other (37 classes)"), "{name}");
    for (thread, _) in &threads {
        assert!(!editor.frames(&json!(thread)).is_empty());
    }
    let frames = editor.frames(&json!(other));
    assert_eq!(frames[0]["name"], "solve");
    // Each thread is told of once, and only one of them takes the focus.
    let told: Vec<_> = editor
        .transcript
        .iter()
        .filter(|it| it["event"] == "stopped")
        .collect();
    assert_eq!(told.len(), 64);
    let focus = told
        .iter()
        .filter(|it| it["body"]["preserveFocusHint"].is_null());
    assert_eq!(focus.count(), 1);
    editor.disconnect();
}
