//! Programs under Valgrind: their start, and Valgrind's error reports.

mod messages;

use sdm_core::CommandId;
use sdm_debug::event::Stream;
use sdm_debug::fold::innermost_user_frame;
use sdm_debug::reply::Finding;
use sdm_debug::{Event, Failure};

use super::frames::GdbFrame;
use super::internal::insert_all;
use super::run::begin;
use super::stack::list_frames;

use messages::{leaks, plain};

use crate::gdb::Gdb;
use crate::state::activity::RunKind;
use crate::state::internal::Internal;
use crate::state::origin::{Origin, Valgrind, Wrapped};
use crate::text::{console_bytes, console_line};

/// Breakpoints on the functions that fork the program.
const FORKS: [(&str, Internal); 2] = [("fork", Internal::Fork), ("vfork", Internal::Fork)];
/// gdb's message when its remote connection has closed.
const CLOSED: &str = "Remote connection closed";
/// A number of errors that no program reaches.
const NEVER: u32 = 999_999_999;
const TOOL: &str = "Memcheck";

/// Begins the start of a program under Valgrind. The program is then stopped at its first instruction, and continues
/// like one that a site's exec wrapper starts.
pub(crate) async fn launch(
    gdb: &Gdb,
    id: CommandId,
    line: &[u8],
    waiting: Wrapped,
) -> Result<(), Failure> {
    gdb.edit().origin = Origin::Started {
        wrapped: Some(waiting),
        valgrind: Some(Valgrind::default()),
    };
    let line = console_bytes(&[b"target remote | ", line].concat());
    begin(gdb, Some(id), RunKind::StartToFirst, &line).await
}

/// Enables Valgrind's stops at errors, and sets the breakpoints on functions that fork, as the program is about to
/// begin.
pub(super) async fn begin_program(gdb: &Gdb) {
    stop_at_errors(gdb, true).await;
    insert_all(gdb, &FORKS).await;
}

/// Disables Valgrind's stops before the program forks, as the child has no debugger that would resume it. With `has`,
/// after the fork, enables them again.
pub(crate) async fn fork(gdb: &Gdb, has: bool) {
    if has {
        return stop_at_errors(gdb, true).await;
    }
    let frames = gdb.mi("-stack-list-frames 1 1").await.unwrap_or_default();
    let caller = frames.tuples("stack").next();
    let Some(back) = caller.and_then(|frame| frame.address("addr")) else {
        return;
    };
    // The child has no debugger, so an error in it would stop it for ever. Errors of the program itself before the
    // fork returns are reported only at its end.
    stop_at_errors(gdb, false).await;
    if let Ok(results) = gdb.mi(format!("-break-insert -t *{back:#x}")).await {
        gdb.edit()
            .breakpoints
            .add_internal(Internal::Forked, &results);
    }
}

async fn stop_at_errors(gdb: &Gdb, stop: bool) {
    let after = if stop { 0 } else { NEVER };
    monitor(gdb, &format!("v.set vgdb-error {after}")).await;
}

/// True for a frame of Valgrind's own code in the program.
pub(super) fn is_its_own(frame: &GdbFrame) -> bool {
    frame.module().starts_with("vgpreload_")
}

/// The finding at a trap: a new error, or lost memory at the program's end.
///
/// Lost memory is looked for only if the trap was not `sent` by SDM. `None` without a finding, or if only a library
/// is at fault, which is reported without a stop.
pub(crate) async fn read(gdb: &Gdb, sent: bool) -> Option<Finding> {
    let told = gdb.get().origin.valgrind()?.errors;
    let count = monitor(gdb, "v.info n_errs_found").await;
    let count: Option<u64> = count.split_ascii_whitespace().nth(1)?.parse().ok();
    let count = count.unwrap_or(told);
    if let Some(valgrind) = gdb.edit().origin.valgrind_mut() {
        valgrind.errors = count;
    }
    let is_error = count > told;
    let (text, kind) = if is_error {
        let text = plain(&monitor(gdb, "v.info last_error").await);
        let is_kind = |line: &&str| !line.is_empty() && !line.starts_with("Thread ");
        let kind = text.lines().find(is_kind).unwrap_or("an error").to_owned();
        (text, kind)
    } else if sent || !is_at_end(gdb).await {
        return None;
    } else {
        let text = plain(&monitor(gdb, "leak_check full definiteleak any").await);
        let config = gdb.get().config.clone();
        leaks(&text, &config.fold)?
    };
    gdb.tell(Event::Output {
        stream: Stream::Stderr,
        bytes: text.into_bytes(),
    });
    if is_error && !is_users(gdb).await {
        return None;
    }
    let tool = TOOL.to_owned();
    Some(Finding {
        tool,
        kind,
        access: None,
    })
}

/// True if Valgrind has stopped the program just before its end: it is in the function of Valgrind that frees libc's
/// memory.
async fn is_at_end(gdb: &Gdb) -> bool {
    let results = gdb.mi("-stack-info-frame").await.unwrap_or_default();
    let frame = results.tuple("frame");
    frame.is_some_and(|frame| is_its_own(&GdbFrame::read(gdb, frame)))
}

/// True if a frame of the thread is in the user's code, or if the frames cannot be read.
async fn is_users(gdb: &Gdb) -> bool {
    let Ok(frames) = list_frames(gdb, None).await else {
        return true;
    };
    let raw: Vec<_> = frames.iter().map(GdbFrame::raw).collect();
    let config = gdb.get().config.clone();
    innermost_user_frame(&raw, &config.fold).is_some()
}

/// True if gdb's message says that Valgrind is gone. gdb reports nothing else about the program's end.
pub(super) fn is_gone(gdb: &Gdb, text: &str) -> bool {
    let state = gdb.get();
    let runs = state.origin.valgrind().is_some() && state.activity.is_executing();
    // While a command is open, such a message belongs to its answer.
    runs && state.commands.pending.is_empty() && text.starts_with(CLOSED)
}

/// Executes a monitor command of Valgrind, and returns its output.
async fn monitor(gdb: &Gdb, command: &str) -> String {
    let line = console_line(&format!("monitor {command}"));
    let (_, printed) = gdb.send(line).capture().printed().await;
    printed.into_text()
}
