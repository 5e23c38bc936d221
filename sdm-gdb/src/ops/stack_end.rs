//! The reason why a stack ends early: MI lists the frames found, and does not say where unwinding failed.

use sdm_debug::fold::STOPPED;
use sdm_debug::{Failure, FailureCode};

use super::frames::{FRAMES_MAX, GdbFrame};
use crate::gdb::Gdb;
use sdm_mi::quote;

/// Functions in which a stack normally ends. For any other gdb is asked.
pub(super) const ENDS: [&str; 4] = ["main", "_start", "clone", "clone3"];

/// The reason for a stack that ends at unknown code.
pub(super) const UNKNOWN_CALLER: &str = "the caller's code is unknown";

/// The reason for a stack of which not all frames are read.
pub(super) fn too_deep() -> String {
    format!("{STOPPED}more than {FRAMES_MAX} frames")
}

/// The reason for a stack that was not read to its end, as in gdb's `bt`: `Backtrace stopped: ...`. `None` for a whole
/// stack.
///
/// `thread` is the option that names the thread, or empty.
pub(super) async fn stop_reason(
    gdb: &Gdb,
    thread: &str,
    frames: &[GdbFrame],
) -> Result<Option<String>, Failure> {
    let Some(outermost) = frames.last() else {
        return Ok(None);
    };
    if outermost
        .function()
        .is_some_and(|name| ENDS.contains(&name))
    {
        return Ok(None);
    }
    if frames.len() > FRAMES_MAX as usize {
        return Ok(Some(too_deep()));
    }
    // gdb also ends silently if the caller's address is invalid.
    if !outermost.is_known() {
        // The start function of a thread, in a C library without symbols, has no caller.
        let start = frames.iter().rev().nth(1);
        let is_library = |it: &GdbFrame| it.function().is_none() && !it.module().is_empty();
        if outermost.address() == 0 && start.is_some_and(is_library) {
            return Ok(None);
        }
        return Ok(Some(format!("{STOPPED}{UNKNOWN_CALLER}")));
    }
    let backtrace = quote(b"backtrace -frame-arguments none -1");
    let line = format!("-interpreter-exec {thread}console {backtrace}");
    let (result, printed) = gdb.send(line).capture().printed().await;
    match result {
        Ok(_) => Ok(said(&printed.into_text())),
        Err(failure) if failure.code == FailureCode::Gdb => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// gdb's reason why unwinding stopped, from the lines of a backtrace; `None` if they have none.
fn said(backtrace: &str) -> Option<String> {
    let line = backtrace.lines().rfind(|line| line.starts_with(STOPPED))?;
    Some(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwinding_error_is_found_below_the_frames() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(said(text).as_deref(), expect, "{text}");
        let frame = "#1  0x0000000000401f2b in __cp_end ()\n";
        let reason = "Backtrace stopped: previous frame inner to this frame (corrupt stack?)";
        check(&format!("{frame}{reason}\n"), Some(reason));
        check(frame, None);
        check("", None);
    }
}
