//! Tests of the JSON records of a session.

use sdm_debug::reply::{Stop, StopReason, Value as Shown};
use sdm_debug::{Failure, FailureCode, Reply};

use super::*;
use crate::item::{Happening, Problem};

fn check(item: Item, expect: Value) {
    let mut bytes = Vec::new();
    JsonView::new(&mut bytes, |_| {}).show(Duration::from_millis(1500), &item);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    let record: Value = serde_json::from_str(&text).unwrap();
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(record[name], *value, "{name} in {text}");
    }
    assert_eq!(record["v"], VERSION);
    assert_eq!(record["t_ms"], 1500);
}

#[test]
fn answers_have_classes_with_sets_and_typed_values() {
    let value = |text: &str| {
        Reply::Value(Shown {
            text: text.to_owned(),
            cut: None,
        })
    };
    let gathered = Gathered {
        command: "print x".to_owned(),
        to: IdSet::all_below(4),
        ok: vec![("0-2".parse().unwrap(), value("42"))],
        failed: vec![(
            "3".parse().unwrap(),
            Failure::new(FailureCode::Running, "running"),
        )],
        ..Gathered::default()
    };
    let class = json!({ "tasks": "0-2", "count": 3, "type": "value", "text": "42", "cut": null });
    check(
        Item::Answer(gathered),
        json!({
            "kind": "answer", "command": "print x", "to": "0-3", "classes": [class],
            "failed": [{"tasks": "3", "count": 1, "code": "running", "text": "running", "hint": ""}],
            "missing": [], "lost": "", "late": false,
        }),
    );
}

#[test]
fn stop_exit_error_and_end_become_json_events() {
    let tasks = IdSet::all_below(2);
    let happened = |what| Item::Happened {
        tasks: tasks.clone(),
        what,
    };
    let stop = Stop {
        reason: StopReason::Breakpoint { number: 3 },
        frame: None,
        inside: Some("MPI_Recv".to_owned()),
        source: None,
    };
    check(
        happened(Happening::Stopped(stop)),
        json!({ "kind": "stop", "tasks": "0-1", "reason": "breakpoint", "number": 3,
                "inside": "MPI_Recv", "frame": null }),
    );
    check(
        happened(Happening::Exited {
            code: 3,
            before_finalize: true,
        }),
        json!({ "kind": "exit", "tasks": "0-1", "code": 3, "before_finalize": true }),
    );
    check(
        happened(Happening::Signalled("SIGSEGV".to_owned())),
        json!({ "kind": "exit", "code": null, "signal": "SIGSEGV" }),
    );
    check(
        Item::Error(Problem {
            message: "no".to_owned(),
            at: Some(3),
            ..Problem::default()
        }),
        json!({ "kind": "error", "message": "no", "at": 3, "line": null }),
    );
    let end = Item::End {
        code: 123,
        reason: None,
    };
    check(end, json!({ "kind": "end", "code": 123, "reason": null }));
}

#[test]
fn non_utf8_output_keeps_its_bytes() {
    let item = |line: &[u8]| Item::Output {
        tasks: IdSet::all_below(1),
        stream: Stream::Stderr,
        line: line.to_vec(),
        complete: true,
    };
    check(
        item(b"a\x1b[0m\n"),
        json!({ "kind": "output", "stream": "stderr", "text": "a\u{1b}[0m\n", "bytes_hex": null }),
    );
    check(
        item(b"\xff"),
        json!({ "text": "\u{fffd}", "bytes_hex": "ff" }),
    );
}
