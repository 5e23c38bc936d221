//! Answers and events as JSON. The names here are the schema, and not the names of Rust types.

use sdm_debug::event::Phase;
use sdm_debug::reply::{
    Frame, Reply, StackFrame, Stop, StopReason, ThreadView, Value as Shown, Variable,
};
use sdm_text::without_numbers;
use serde_json::{Value, json};

use crate::item::{Happening, MergedStacks};

/// An answer: its `type` and fields.
pub(super) fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::Done => json!({ "type": "done" }),
        Reply::Stopped(stop) => typed("stopped", self::stop(stop)),
        Reply::Exited {
            code,
            before_finalize,
        } => json!({ "type": "exited", "code": code, "before_finalize": before_finalize }),
        Reply::Signalled { signal } => json!({ "type": "signalled", "signal": signal }),
        Reply::Detached => json!({ "type": "detached" }),
        Reply::Breakpoint(at) => json!({
            "type": "breakpoint",
            "number": at.number,
            "pending": at.pending,
            "places": places(&at.places),
        }),
        Reply::Backtrace(trace) => json!({
            "type": "backtrace",
            "frames": trace.frames.iter().map(frame).collect::<Vec<_>>(),
            "more": trace.more,
            "folded": trace.folded,
        }),
        Reply::Frame(view) => json!({
            "type": "frame",
            "frame": frame(&view.frame),
            "source": view.source,
        }),
        Reply::Variables(variables) => json!({
            "type": "variables",
            "variables": variables.iter().map(variable).collect::<Vec<_>>(),
        }),
        Reply::Threads(threads) => json!({
            "type": "threads",
            "threads": threads.iter().map(thread).collect::<Vec<_>>(),
        }),
        Reply::Value(shown) => typed("value", value(shown)),
        // All stacks of an answer are one tree: see `stacks`.
        Reply::Stacks(_) => Value::Null,
        Reply::Status(state) => json!({ "type": "status", "state": state.name() }),
        Reply::Text(text) => json!({ "type": "text", "text": text }),
        other => super::data::reply(other),
    }
}

/// An event of tasks: the kind of its record, and the fields.
pub(super) fn happening(what: &Happening) -> (&'static str, Value) {
    match what {
        Happening::Stopped(stop) => ("stop", self::stop(stop)),
        Happening::Exited {
            code,
            before_finalize,
        } => (
            "exit",
            json!({ "code": code, "signal": null, "before_finalize": before_finalize }),
        ),
        Happening::Signalled(signal) => (
            "exit",
            json!({ "code": null, "signal": signal, "before_finalize": false }),
        ),
        Happening::Detached => ("detached", json!({})),
        Happening::SignalPassed(signal) => ("signal_passed", json!({ "signal": signal })),
        Happening::GdbDied(text) => ("gdb_died", json!({ "text": without_numbers(text) })),
        Happening::BreakpointPlaced(at) => (
            "breakpoint_placed",
            json!({ "number": at.number, "places": places(&at.places) }),
        ),
        Happening::Progress(phase) => ("progress", json!({ "phase": phase_name(*phase) })),
        Happening::Notice(text) => ("notice", json!({ "text": without_numbers(text) })),
        Happening::Printed { number, text } => {
            ("printed", json!({ "number": number, "text": text }))
        }
    }
}

/// Places of a breakpoint.
pub(super) fn places(places: &[(String, String, u32)]) -> Value {
    let place = |(function, file, line): &(String, String, u32)| json!({ "function": function, "file": file, "line": line });
    places.iter().map(place).collect()
}

fn typed(name: &'static str, mut fields: Value) -> Value {
    fields["type"] = name.into();
    fields
}

fn stop(stop: &Stop) -> Value {
    let mut fields = reason(&stop.reason);
    fields["frame"] = stop.frame.as_ref().map_or(Value::Null, frame);
    fields["inside"] = json!(stop.inside);
    fields["source"] = json!(stop.source);
    fields
}

fn reason(reason: &StopReason) -> Value {
    match reason {
        StopReason::AtMain => json!({ "reason": "at_main" }),
        StopReason::AtEntry => json!({ "reason": "at_entry" }),
        StopReason::Breakpoint { number } => json!({ "reason": "breakpoint", "number": number }),
        StopReason::StepEnd => json!({ "reason": "step_end" }),
        StopReason::FunctionFinished { value: returned } => json!({
            "reason": "function_finished",
            "value": returned.as_ref().map(value),
        }),
        StopReason::Interrupted => json!({ "reason": "interrupted" }),
        StopReason::Signal { name, meaning } => {
            json!({ "reason": "signal", "signal": name, "meaning": meaning })
        }
        StopReason::Internal { what } => json!({ "reason": "internal", "what": what }),
        StopReason::Finding(finding) => json!({
            "reason": "finding",
            "tool": finding.tool,
            "error": finding.kind,
            "access": finding.access.map(|access| if access.is_write { "write" } else { "read" }),
            "bytes": finding.access.map(|access| access.size_bytes).filter(|bytes| *bytes > 0),
        }),
        StopReason::Attached => json!({ "reason": "attached" }),
        StopReason::Other(text) => json!({ "reason": "other", "text": text }),
        StopReason::Watchpoint(hit) => json!({
            "reason": "watchpoint",
            "number": hit.number,
            "expression": hit.expression,
            "old": hit.old.as_ref().map(value),
            "new": hit.new.as_ref().map(value),
        }),
        StopReason::WatchpointScope { number, expression } => {
            json!({ "reason": "watchpoint_scope", "number": number, "expression": expression })
        }
        StopReason::Catch { number, hit } => {
            json!({ "reason": "catch", "number": number, "caught": super::data::caught(hit) })
        }
        StopReason::LocationReached => json!({ "reason": "location_reached" }),
        StopReason::NoHistory => json!({ "reason": "no_history" }),
        StopReason::Core { signal, meaning } => {
            json!({ "reason": "core", "signal": signal, "meaning": meaning })
        }
    }
}

fn frame(frame: &Frame) -> Value {
    json!({
        "level": frame.level,
        "function": frame.function,
        "file": frame.file,
        "path": frame.path,
        "line": frame.line,
        "module": frame.module,
        "args": frame.args.iter().map(variable).collect::<Vec<_>>(),
    })
}

fn variable(variable: &Variable) -> Value {
    let mut fields = value(&variable.value);
    fields["name"] = json!(variable.name);
    fields
}

pub(super) fn value(shown: &Shown) -> Value {
    let cut = shown
        .cut
        .map(|(bytes, hash)| json!({ "bytes": bytes, "xxh3": format!("{hash:016x}") }));
    json!({ "text": shown.text, "cut": cut })
}

fn thread(thread: &ThreadView) -> Value {
    json!({
        "number": thread.number,
        "name": thread.name,
        "current": thread.current,
        "frame": thread.frame.as_ref().map(frame),
    })
}

/// A merged tree as a list of its stacks.
pub(crate) fn stacks(merged: &MergedStacks) -> Value {
    let mut stacks = Vec::new();
    let mut path: Vec<Value> = Vec::new();
    merged.tree.walk(|depth, node| {
        path.truncate(depth);
        path.push(stack_frame(&node.frame));
        if !node.here.is_empty() {
            let below: u64 = node.children.iter().map(|child| child.threads).sum();
            stacks.push(json!({
                "tasks": node.here.to_string(),
                "count": node.here.len(),
                "threads": node.threads.saturating_sub(below),
                "frames": path,
            }));
        }
    });
    let tree = &merged.tree;
    json!({
        "type": "stacks",
        "tasks": merged.tasks.to_string(),
        "count": merged.tasks.len(),
        "stacks": stacks,
        "bare": tree.bare.to_string(),
        "helpers": tree.helpers,
        "others": tree.others.to_string(),
    })
}

pub(super) fn stack_frame(frame: &StackFrame) -> Value {
    json!({
        "module": frame.module,
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "repeat": frame.repeat,
    })
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Gdb => "gdb",
        Phase::Symbols => "symbols",
        Phase::Running => "running",
    }
}
