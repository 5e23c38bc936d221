//! Frames and their sources in the form of the protocol.

use sdm_debug::reply::Frame;
use sdm_view::readable;
use serde_json::{Value, json};

/// The DAP `Source` of a frame; `None` if its file is not known.
pub(crate) fn source(frame: &Frame) -> Option<Value> {
    if frame.path.is_empty() {
        return None;
    }
    Some(json!({"name": frame.file, "path": frame.path}))
}

/// The DAP `StackFrame` of a frame. `line_base` is the client's number of a file's first line.
pub(crate) fn stack_frame(id: i64, frame: &Frame, line_base: i64) -> Value {
    let known = !frame.path.is_empty() && frame.line > 0;
    let mut shown = json!({
        "id": id,
        "name": readable::function(&frame.function),
        "line": if known { i64::from(frame.line) - 1 + line_base } else { 0 },
        "column": if known { line_base } else { 0 },
    });
    if let Some(source) = source(frame).filter(|_| known) {
        shown["source"] = source;
    } else {
        shown["presentationHint"] = json!("subtle");
    }
    if !frame.module.is_empty() {
        shown["moduleId"] = json!(frame.module);
    }
    shown
}

/// Location of a frame, as `solve halo.c:44`; the function alone if its line is unknown.
pub(crate) fn place(frame: &Frame) -> String {
    match (frame.file.as_str(), frame.line) {
        ("", _) | (_, 0) => readable::function(&frame.function).into_owned(),
        (file, line) => format!("{} {file}:{line}", readable::function(&frame.function)),
    }
}
