//! The stack of a thread, with the names of its functions.

use std::path::Path;

use super::frame::{StackFrame, ThreadStack};
use super::{tail_callee, tail_calls};
use crate::address_space::Space;
use crate::files::base_name;
use crate::snapshot::Thread;
use crate::unwind::{End, FRAMES_MAX, Frame, unwind};

/// The name by which gdb shows the frame of a signal.
const SIGNAL_FRAME: &str = "<signal handler called>";

/// The stack of a thread, with further data of its frames.
pub(super) struct ThreadInspection {
    pub(super) stack: ThreadStack,
    /// Details of each frame, in the same order.
    pub(super) details: Vec<Detail>,
    pub(super) end: End,
}

/// Data of a frame that is not part of its shown form.
pub(super) struct Detail {
    pub(super) frame: Frame,
    /// Path of the source file; `None` if unknown.
    pub(super) path: Option<String>,
    /// Number of inlined functions at the frame's address that are further inside.
    pub(super) inlined: usize,
}

/// Unwinds a thread's stack and names its functions.
pub(super) fn read_thread(thread: &Thread, space: &Space) -> ThreadInspection {
    let (frames, end) = unwind(thread, space);
    let mut named = Vec::new();
    for frame in tail_calls::insert(space, &frames) {
        name_all(frame, space, &mut named);
    }
    let is_whole = end == End::Whole && named.len() <= FRAMES_MAX;
    let outermost = frames.last().filter(|_| end == End::Cut);
    let removed_file = outermost.and_then(|it| space.removed_file(it.lookup));
    named.truncate(FRAMES_MAX);
    let (mut frames, details): (Vec<StackFrame>, Vec<Detail>) = named.into_iter().unzip();
    tail_callee::name(space, &mut frames);
    let stack = ThreadStack {
        thread: thread.id,
        frames,
        is_whole,
        removed_file,
    };
    ThreadInspection {
        stack,
        details,
        end,
    }
}

/// Appends the functions at a frame's address, innermost first.
fn name_all(frame: Frame, space: &Space, named: &mut Vec<(StackFrame, Detail)>) {
    let address = frame.pc;
    let before = named.len();
    let mut add = |named_frame: StackFrame, path: Option<&String>| {
        let path = path.cloned();
        let detail = Detail {
            frame,
            path,
            inlined: named.len() - before,
        };
        let frame = StackFrame {
            address,
            ..named_frame
        };
        named.push((frame, detail));
    };
    if frame.is_signal {
        let function = Some(SIGNAL_FRAME.to_owned());
        let signal = StackFrame {
            function,
            ..StackFrame::default()
        };
        return add(signal, None);
    }
    let Some(place) = space.place(frame.lookup) else {
        return add(unnamed(space, address), None);
    };
    let lines = place.module.lines(place.address);
    // For a restored tail call gdb shows only the innermost function.
    let shown = if frame.is_tail { 1 } else { lines.len() };
    for line in &lines[..shown] {
        let mut named = StackFrame {
            function: line.function.clone(),
            file: line.path.as_deref().map(|path| base_name(Path::new(path))),
            line: line.line,
            is_inlined: line.is_inlined,
            ..StackFrame::default()
        };
        if named.function.is_none() || named.file.is_none() {
            named.module = space.module_name(place.module);
        }
        if named.function.is_none() {
            named.offset = unnamed(space, address).offset;
        }
        add(named, line.path.as_ref());
    }
}

/// A frame of which only the address is known.
fn unnamed(space: &Space, address: u64) -> StackFrame {
    let (name, offset) = space.offset(address).unzip();
    let name = name.map(base_name);
    StackFrame {
        module: name.unwrap_or_default(),
        offset,
        ..StackFrame::default()
    }
}
