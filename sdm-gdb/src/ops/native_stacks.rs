//! Converts stacks that were read without gdb to the form of gdb's.

use sdm_debug::fold::{FoldRules, RawFrame, RawThread, STOPPED, fold_task};
use sdm_debug::reply::TaskStacks;
use sdm_inspect::stack::{ProcessStacks, StackFrame};

use super::frames::{FRAMES_MAX, is_fortran};
use super::stack_end::{ENDS, UNKNOWN_CALLER, too_deep};

/// The function at which gdb ends a stack: its callers are not the program's.
const MAIN: &str = "main";

/// The folded stacks of a process; with `full` every frame of every thread.
pub fn fold_looked(stacks: ProcessStacks, rules: &FoldRules, full: bool) -> TaskStacks {
    let ProcessStacks {
        program, threads, ..
    } = stacks;
    let threads = threads.into_iter().enumerate().map(|(at, thread)| {
        let mut frames = thread.frames;
        frames.truncate(shown_count(&frames));
        RawThread {
            main: at == 0,
            name: String::new(),
            stopped: stop_reason(&thread.removed_file, thread.is_whole, &frames),
            frames: frames
                .into_iter()
                .map(|it| raw_frame(it, &program))
                .collect(),
        }
    });
    let threads: Vec<RawThread> = threads.collect();
    fold_task(&threads, rules, full)
}

/// The reason for a stack that was not read to its end; `None` for a whole stack.
pub(super) fn stop_reason(
    removed_file: &Option<String>,
    is_whole: bool,
    frames: &[StackFrame],
) -> Option<String> {
    let last = frames.last().and_then(|frame| frame.function.as_deref());
    if last.is_some_and(|name| ENDS.contains(&name)) {
        return None;
    }
    if frames.len() > FRAMES_MAX as usize {
        return Some(too_deep());
    }
    (!is_whole).then(|| unknown_caller(removed_file.as_deref()))
}

/// The reason for a stack that ends at unknown code: the code's file was removed or replaced, or else just that the
/// code is unknown.
#[must_use]
pub fn unknown_caller(removed_file: Option<&str>) -> String {
    match removed_file {
        Some(name) => format!("{STOPPED}{name} was removed or replaced after it was loaded"),
        None => format!("{STOPPED}{UNKNOWN_CALLER}"),
    }
}

/// Number of frames that gdb would show of a stack: all for Fortran, as in `list_frames`, else up to `main`.
#[must_use]
pub fn shown_count(frames: &[StackFrame]) -> usize {
    let main = frames.iter().position(is_main);
    let is_c = |at: &usize| !is_fortran(frames[*at].file.as_deref().unwrap_or_default());
    main.filter(is_c).map_or(frames.len(), |at| at + 1)
}

/// True for the function at which gdb ends a stack: `main`, or Rust's `main` inside its crate.
fn is_main(frame: &StackFrame) -> bool {
    let name = frame.function.as_deref().unwrap_or_default();
    let is_rust = frame
        .file
        .as_deref()
        .is_some_and(|file| file.ends_with(".rs"));
    let of_crate = |name: &str| name.split_once("::").is_some_and(|(_, name)| name == MAIN);
    !frame.is_inlined && (name == MAIN || is_rust && of_crate(name))
}

/// Converts a frame for the fold rules.
#[must_use]
pub fn raw_frame(frame: StackFrame, program: &str) -> RawFrame {
    let is_program = frame.module == program || frame.module.is_empty();
    let file = if is_program { program } else { &frame.module };
    let place = match frame.offset {
        Some(offset) => format!("{file}+{offset:#x}"),
        None => format!("{:#x}", frame.address),
    };
    RawFrame {
        place,
        function: frame.called.or(frame.function),
        file: frame.file,
        line: frame.line,
        module: if is_program {
            String::new()
        } else {
            frame.module
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str) -> StackFrame {
        StackFrame {
            function: Some(function.to_owned()),
            file: Some(file.to_owned()),
            ..StackFrame::default()
        }
    }

    #[test]
    fn displayed_stack_ends_at_main_except_in_fortran() {
        let check = |file: &str, expect: usize| {
            let start = ["solve", "main", "__libc_start_call_main", "_start"];
            let frames = start.map(|name| frame(name, file)).to_vec();
            assert_eq!(shown_count(&frames), expect, "{file}");
        };
        check("halo.c", 2);
        check("heat.F90", 4);
        let rust = ["cells::step", "cells::main", "std::rt::lang_start", "main"];
        let frames = rust.map(|name| frame(name, "cells.rs")).to_vec();
        assert_eq!(shown_count(&frames), 2);
    }
}
