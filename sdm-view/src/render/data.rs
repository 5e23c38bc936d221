//! Memory, instructions, source lines, breakpoints, libraries, signals and variable objects of tasks, in gdb's words.

use std::fmt::Write;

use sdm_debug::Reply;
use sdm_debug::reply::{BreakpointView, Instruction, MemoryBlock, SignalView, VarObject};

use super::{event, place};

/// Bytes of memory per line.
const ROW_BYTES: usize = 16;

/// The text of an answer, of one or more lines. Empty for answers that the caller formats.
pub(super) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Mi { result, printed } => format!("{printed}{result}"),
        Reply::Breakpoints(list) => rows(list, breakpoint),
        Reply::Memory(blocks) => rows(blocks, memory),
        Reply::Instructions(list) => rows(list, instruction),
        Reply::Source(source) => {
            let numbered = source.lines.iter().zip(source.first..);
            let lines = numbered.map(|(line, number)| format!("{number}\t{line}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        Reply::Libraries(list) => rows(list, |library| match library.symbols {
            true => library.path.clone(),
            false => format!("{} (no symbols)", library.path),
        }),
        Reply::Signals(list) => rows(list, signal),
        Reply::VarObject(object) => var_object(object),
        Reply::VarChildren { children, more } => {
            let mut text = rows(children, var_object);
            if *more {
                text.push_str("\n(more children follow)");
            }
            text
        }
        _ => String::new(),
    }
}

fn rows<T>(list: &[T], row: impl Fn(&T) -> String) -> String {
    list.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn breakpoint(view: &BreakpointView) -> String {
    let mut text = format!("{} {} {}", view.place.number, view.kind, view.what);
    if view.place.pending {
        text.push_str(", pending until its location is loaded");
    } else if !view.place.places.is_empty() {
        text.push(' ');
        text.push_str(&event::places(&view.place.places));
    }
    if let Some(condition) = &view.condition {
        let _ = write!(text, " if {condition}");
    }
    if !view.enabled {
        text.push_str(", disabled");
    }
    if view.ignore > 0 {
        let _ = write!(text, ", passes {} more", view.ignore);
    }
    let _ = match view.hits {
        1 => write!(text, ", 1 hit"),
        hits => write!(text, ", {hits} hits"),
    };
    text
}

fn memory(block: &MemoryBlock) -> String {
    let row = |(bytes, at): (&[u8], usize)| {
        let mut text = format!("{:#x}:", block.start.wrapping_add(at as u64));
        for byte in bytes {
            let _ = write!(text, " {byte:02x}");
        }
        let shown = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let pad = 3 * (ROW_BYTES - bytes.len());
        let text_bytes: String = bytes.iter().map(shown).collect();
        let _ = write!(text, "{:pad$}  {text_bytes}", "");
        text
    };
    let chunks = block.bytes.chunks(ROW_BYTES);
    let lines: Vec<String> = chunks.zip((0..).step_by(ROW_BYTES)).map(row).collect();
    lines.join("\n")
}

fn instruction(one: &Instruction) -> String {
    let mark = if one.current { "=>" } else { "  " };
    format!(
        "{mark} {:#x} <{}+{}>: {}",
        one.address, one.function, one.offset, one.text
    )
}

fn signal(view: &SignalView) -> String {
    let word = |yes: bool| if yes { "yes" } else { "no" };
    format!(
        "{:<10} stop {:<3} print {:<3} pass {:<3} {}",
        view.name,
        word(view.stop),
        word(view.print),
        word(view.pass),
        view.meaning
    )
}

fn var_object(object: &VarObject) -> String {
    let mut text = format!("{}: {}", object.name, object.expression);
    if !object.type_name.is_empty() {
        let _ = write!(text, " ({})", object.type_name);
    }
    let _ = write!(text, " = {}", place::value(&object.value));
    if object.children > 0 || object.more {
        let plus = if object.more { "+" } else { "" };
        let _ = write!(text, " [{}{plus} children]", object.children);
    }
    text
}
