//! Programs that a site's own command starts: `numactl`, a script that binds GPUs.
//!
//! gdb counts the `exec`s until its program begins and cannot be told of more. So the wrapper is
//! what it starts, and every `exec` is caught until the process is the program.

use std::path::PathBuf;

use sdm_core::CommandId;
use sdm_debug::Failure;
use sdm_debug::command::StopAt;
use sdm_debug::reply::StopReason;

use super::breakpoints::{Kept, made_by};
use super::core::Gdb;
use super::internal::insert_internal;
use super::run::{RunKind, begin};
use super::start::insert_kept;
use super::stop::resume_silently;
use super::values::console_line;

/// A start that has not come to its program yet.
pub(super) struct Wrapped {
    pub(super) program: PathBuf,
    pub(super) stop: StopAt,
    pub(super) kept: Vec<Kept>,
    /// gdb's number of what catches the `exec`s.
    pub(super) catch: Option<u32>,
}

/// Begins such a start.
pub(super) async fn launch(gdb: &Gdb, id: CommandId, wrapped: Wrapped) -> Result<(), Failure> {
    gdb.edit().wrapped = Some(wrapped);
    begin(
        gdb,
        Some(id),
        RunKind::StartToFirst,
        &console_line("starti"),
    )
    .await
}

/// The process stands at its first instruction, or at that of another program. Gives why it is to
/// be held there.
pub(super) async fn go_on(gdb: &Gdb) -> Option<StopReason> {
    match advance(gdb).await {
        Ok(()) => None,
        Err(text) => Some(StopReason::Other(text)),
    }
}

async fn advance(gdb: &Gdb) -> Result<(), String> {
    let (pid, catch, program) = {
        let state = gdb.get();
        let Some(wrapped) = &state.wrapped else {
            return Err("no start is under way".to_owned());
        };
        (state.pid, wrapped.catch, wrapped.program.clone())
    };
    let id = gdb.get().run.as_ref().and_then(|run| run.id);
    let Some(catch) = catch else {
        let made = made_by(gdb, "catch exec").await.map_err(|f| f.text)?;
        if let Some(wrapped) = &mut gdb.edit().wrapped {
            wrapped.catch = made.first().copied();
        }
        return resume_silently(gdb, id, RunKind::StartToProgram).await;
    };
    if !pid.is_some_and(|pid| gdb.host().runs(pid, &program)) {
        return resume_silently(gdb, id, RunKind::StartToProgram).await;
    }
    let text = |failure: Failure| failure.text;
    gdb.mi(format!("-break-delete {catch}"))
        .await
        .map_err(text)?;
    let Some(wrapped) = gdb.edit().wrapped.take() else {
        return Err("the start was given up".to_owned());
    };
    insert_kept(gdb, wrapped.kept).await;
    if wrapped.stop == StopAt::Nowhere {
        insert_internal(gdb).await;
        return resume_silently(gdb, id, RunKind::StartFreely).await;
    }
    // Without a main it is held where it is.
    gdb.mi("-break-insert -t main")
        .await
        .map_err(|_| "held at its first instruction: no main that gdb can see".to_owned())?;
    resume_silently(gdb, id, RunKind::StartToMain).await
}
