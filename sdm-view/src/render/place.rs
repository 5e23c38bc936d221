//! Places in the program, in gdb's words: `exchange (step=3) at halo.c:44`.

use sdm_debug::fold::{HALTED, STOPPED};
use sdm_debug::reply::{Frame, PRINTED_PART, StackFrame, Value};
use sdm_text::printable;

use crate::readable;

/// The text of a frame: `main (argc=1) at halo.c:40`.
#[must_use]
pub fn frame(frame: &Frame) -> String {
    let args: Vec<_> = frame
        .args
        .iter()
        .map(|arg| format!("{}={}", arg.name, value(&arg.value)))
        .collect();
    let at = at(&frame.file, frame.line, &frame.module);
    printable(format!("{}{at}", call(&frame.function, &args.join(", "))).as_bytes())
}

/// The place of a node of merged stacks, which has no arguments.
pub(crate) fn stack_frame(frame: &StackFrame) -> String {
    let at = at(&frame.file, frame.line, &frame.module);
    let repeat = match frame.repeat {
        0 | 1 => String::new(),
        times => format!(" (rec x{times})"),
    };
    printable(format!("{}{at}{repeat}", call(&frame.function, "")).as_bytes())
}

/// The text of a value, with a note if it was truncated.
#[must_use]
pub fn value(value: &Value) -> String {
    match value.cut {
        None => value.text.clone(),
        Some((PRINTED_PART, _)) => {
            format!("{}... (only the printed part was compared)", value.text)
        }
        Some((0, _)) => format!("{}... (gdb printed no more)", value.text),
        // The number of bytes is that of the memory or of gdb's text.
        Some((_, hash)) => format!("{}... (compared by its hash {hash:016x})", value.text),
    }
}

fn call(name: &str, args: &str) -> String {
    match name {
        "" => format!("?? ({args})"),
        // The reason of a stop is not a frame.
        reason if reason == HALTED || reason.starts_with(STOPPED) => reason.to_owned(),
        name => format!("{} ({args})", readable::function(name)),
    }
}

fn at(file: &str, line: u32, module: &str) -> String {
    match (file, line, module) {
        ("", _, "") => String::new(),
        ("", _, module) => format!(" from {module}"),
        (file, 0, _) => format!(" at {file}"),
        (file, line, _) => format!(" at {file}:{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_value_says_how_far_it_is_known() {
        for (cut, note) in [
            (
                Some((400, 0xabc)),
                "{1...}... (compared by its hash 0000000000000abc)",
            ),
            (Some((0, 77)), "{1...}... (gdb printed no more)"),
            (
                Some((PRINTED_PART, 0xabc)),
                "{1...}... (only the printed part was compared)",
            ),
            (None, "{1...}"),
        ] {
            let text = "{1...}".to_owned();
            assert_eq!(value(&Value { text, cut }), note);
        }
    }
}
