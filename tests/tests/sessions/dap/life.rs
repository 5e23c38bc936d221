//! An editor's session from its beginning to its end, and failed attempts to begin one.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{all_stopped, configuration, go, set, set_none, source, wait_for_output};

#[test]
fn one_rank_is_debugged_from_launch_to_exit() {
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
    // The parts of a value are fetched when the editor shows them.
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
    // References to the earlier frames are invalid now.
    let why = editor.refused("scopes", &json!({"frameId": frames[0]["id"]}));
    assert!(why.contains("has run since"), "{why}");
    let stopped = go(&mut editor, "stepOut", thread);
    assert_eq!(stopped["reason"], "step");
    assert_eq!(editor.frames(thread)[0]["name"], "step_through");
    let stopped = go(&mut editor, "stepIn", thread);
    assert_eq!(stopped["allThreadsStopped"], true);
    set_none(&mut editor);
    editor.run_to_end(thread);
    assert_eq!(editor.output("stdout"), "total 6\n");
    editor.disconnect();
}

#[test]
fn running_ranks_are_paused_take_breakpoints_and_are_ended() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "[0-1] spinning");
    let why = editor.refused("continue", &json!({"threadId": 1}));
    assert!(why.contains("pause it first"), "{why}");
    editor.ask("pause", &json!({"threadId": 1}));
    let stopped = all_stopped(&mut editor);
    assert_eq!(stopped["reason"], "pause", "{stopped}");
    // Each rank is a thread, as there are few ranks.
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
    let stopped = all_stopped(&mut editor);
    assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
    set_none(&mut editor);
    editor.ask("continue", &json!({"threadId": 2}));
    editor.ask("terminate", &json!({}));
    assert_eq!(editor.event("exited")["exitCode"], 137);
    editor.event("terminated");
    editor.disconnect();
}

#[test]
fn attached_process_continues_after_the_session() {
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
fn dying_editor_ends_launched_ranks() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "spinning");
    editor.finish();
}

#[test]
fn malformed_messages_are_refused_with_a_reason() {
    let place = Place::new();
    let mut editor = Editor::new(&place);
    editor.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(complaint(&mut editor).contains("Content-Length"));
    editor.write(b"Content-Length: 3\r\n\r\n{,}");
    assert!(complaint(&mut editor).contains("malformed message"));
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
    assert!(why.contains("`initialize` must come first"), "{why}");
    editor.ask("initialize", &json!({}));
    for (command, arguments, expect) in [
        ("initialize", json!({}), "allowed once"),
        ("frobnicate", json!({}), "does not know"),
        ("threads", json!([]), ""),
        ("stackTrace", json!({"threadId": 7}), "must come first"),
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

/// The next output event of the adapter, as text.
fn complaint(editor: &mut Editor<'_>) -> String {
    let body = editor.event("output");
    body["output"].as_str().expect("a text").to_owned()
}

#[test]
fn editor_connects_over_a_socket() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    for over in [Editor::over_tcp, Editor::over_unix] {
        let mut editor = over(&place);
        editor.launch(&configuration(&work, &["steps"], 1));
        editor.ask("configurationDone", &Value::Null);
        assert_eq!(editor.event("exited")["exitCode"], 0);
        editor.disconnect();
    }
}

#[test]
fn slow_start_is_cancelled_by_disconnect() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.ask("initialize", &json!({"supportsProgressReporting": true}));
    // Servers that the user must start: here no user does.
    let mut configuration = configuration(&work, &[], 2);
    configuration["launcher"] = json!("manual");
    let launch = editor.send("launch", &configuration);
    editor.event("progressStart");
    let why = editor.refused("threads_of_none", &json!({}));
    assert!(why.contains("does not know"), "{why}");
    let disconnect = editor.send("disconnect", &json!({}));
    assert_eq!(editor.response(launch)["message"], "cancelled");
    assert_eq!(editor.response(disconnect)["success"], true);
    editor.finish();
}

#[test]
fn slow_start_is_cancelled_by_progress_or_request_id() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    for by_progress in [true, false] {
        let mut editor = Editor::new(&place);
        editor.ask("initialize", &json!({"supportsProgressReporting": true}));
        // Servers that the user must start: here no user does.
        let mut configuration = configuration(&work, &[], 2);
        configuration["launcher"] = json!("manual");
        let launch = editor.send("launch", &configuration);
        let start = editor.event("progressStart");
        assert_eq!(start["cancellable"], true, "{start}");
        editor.ask("cancel", &json!({"progressId": "another"}));
        let cancel = match by_progress {
            true => json!({"progressId": start["progressId"]}),
            false => json!({"requestId": launch}),
        };
        editor.ask("cancel", &cancel);
        assert_eq!(editor.response(launch)["message"], "cancelled");
        let end = editor.event("progressEnd");
        assert_eq!(end["progressId"], start["progressId"]);
        editor.event("terminated");
        editor.disconnect();
    }
}

#[test]
fn launched_ranks_keep_running_if_the_editor_detaches() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(&place);
    editor.launch(&configuration(&work, &["spin"], 2));
    editor.ask("configurationDone", &Value::Null);
    wait_for_output(&mut editor, "[0-1] spinning");
    editor.ask("pause", &json!({"threadId": 1}));
    all_stopped(&mut editor);
    let pids = |editor: &mut Editor<'_>| {
        let line = json!({"expression": "[all] info inferiors", "context": "repl"});
        let body = editor.ask("evaluate", &line);
        let text = body["result"].as_str().expect("a text").to_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let pids = words.windows(2).filter(|words| words[0] == "process");
        pids.map(|words| words[1].parse().expect("a pid"))
            .collect::<Vec<i32>>()
    };
    let pids = pids(&mut editor);
    assert_eq!(pids.len(), 2);
    editor.ask("disconnect", &json!({"terminateDebuggee": false}));
    for pid in pids {
        let pid = nix::unistd::Pid::from_raw(pid);
        // The process runs on after the disconnect, so it can be signalled.
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it runs on");
    }
    editor.finish();
}
