//! Seeds of the hammer: messages of editors.

/// Requests by their names and arguments.
type Requests = &'static [(&'static str, &'static str)];

/// Requests that begin a session.
const BEGIN: Requests = &[
    (
        "initialize",
        r#"{"adapterID":"sdm","supportsInvalidatedEvent":true}"#,
    ),
    (
        "launch",
        r#"{"program":"/a","ranks":3,"stopAtEntry":true,"threads":"classes"}"#,
    ),
    (
        "setBreakpoints",
        r#"{"source":{"path":"/a.c"},"breakpoints":[{"line":3,"condition":"x>1"},{"line":7,"hitCondition":">2"},{"line":9,"logMessage":"x is {x}"}]}"#,
    ),
    (
        "setFunctionBreakpoints",
        r#"{"breakpoints":[{"name":"main"}]}"#,
    ),
    (
        "setExceptionBreakpoints",
        r#"{"filters":["throw"],"filterOptions":[{"filterId":"signals"}]}"#,
    ),
    ("configurationDone", "{}"),
];

/// Requests about stopped tasks: their stacks, values, memory, data breakpoints and places.
const LOOK: Requests = &[
    ("threads", "{}"),
    ("stackTrace", r#"{"threadId":1,"startFrame":0,"levels":20}"#),
    ("scopes", r#"{"frameId":1}"#),
    ("variables", r#"{"variablesReference":2}"#),
    (
        "evaluate",
        r#"{"expression":"[0-1] print x","context":"repl"}"#,
    ),
    (
        "setVariable",
        r#"{"variablesReference":2,"name":"x","value":"3"}"#,
    ),
    (
        "setExpression",
        r#"{"expression":"x","value":"3","frameId":1}"#,
    ),
    ("dataBreakpointInfo", r#"{"name":"x","frameId":1}"#),
    (
        "setDataBreakpoints",
        r#"{"breakpoints":[{"dataId":"1:x","accessType":"read"}]}"#,
    ),
    (
        "setInstructionBreakpoints",
        r#"{"breakpoints":[{"instructionReference":"0x1","offset":4}]}"#,
    ),
    (
        "readMemory",
        r#"{"memoryReference":"0x10","offset":-4,"count":9}"#,
    ),
    ("writeMemory", r#"{"memoryReference":"0x10","data":"AQI="}"#),
    (
        "disassemble",
        r#"{"memoryReference":"0x10","instructionOffset":-2,"instructionCount":5}"#,
    ),
    ("completions", r#"{"text":"print x","column":8}"#),
    ("modules", "{}"),
    ("exceptionInfo", r#"{"threadId":1}"#),
    ("loadedSources", "{}"),
    ("gotoTargets", r#"{"source":{"path":"/a.c"},"line":3}"#),
    ("goto", r#"{"threadId":1,"targetId":1}"#),
    ("sdm/focus", r#"{"rank":1}"#),
    ("sdm/ranks", "{}"),
    ("sdm/scope", r#"{"scope":"class"}"#),
];

/// Requests that run, pause or restart tasks, cancel a request, and end the session.
const MOVE: Requests = &[
    ("next", r#"{"threadId":1,"granularity":"instruction"}"#),
    ("continue", r#"{"threadId":1,"singleThread":true}"#),
    ("pause", r#"{"threadId":1}"#),
    ("cancel", r#"{"requestId":9}"#),
    ("restart", r#"{"arguments":{"program":"/b","ranks":2}}"#),
    ("terminate", "{}"),
    ("disconnect", r#"{"terminateDebuggee":true}"#),
];

/// Requests of an editor that attaches.
const ATTACH: Requests = &[
    ("initialize", "{}"),
    ("attach", r#"{"target":"4711","scope":"class"}"#),
    ("configurationDone", "{}"),
    ("stepOut", r#"{"threadId":1}"#),
];

/// Sessions from their beginning to their end.
pub(super) fn editor_lines() -> Vec<Vec<u8>> {
    let sessions = [
        [BEGIN, LOOK, MOVE].concat(),
        [BEGIN, MOVE].concat(),
        ATTACH.to_vec(),
    ];
    sessions.iter().map(|requests| framed(requests)).collect()
}

fn framed(requests: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (seq, (command, arguments)) in requests.iter().enumerate() {
        let body = format!(
            r#"{{"seq":{seq},"type":"request","command":"{command}","arguments":{arguments}}}"#
        );
        bytes.extend_from_slice(&sdm_dap::frame::framed(body.as_bytes()));
    }
    bytes
}
