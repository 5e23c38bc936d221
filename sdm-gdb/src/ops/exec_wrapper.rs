//! Programs that a site's exec wrapper starts: `numactl`, a script that binds GPUs.
//!
//! gdb takes a fixed number of `exec`s before its program begins. So gdb starts the wrapper as its program, and each
//! `exec` is caught until the process runs the real program.

use sdm_core::CommandId;
use sdm_debug::command::StopAt;
use sdm_debug::reply::StopReason;
use sdm_debug::{Failure, FailureCode};

use super::breakpoints::{insert_kept, made_by};
use super::internal::insert_internal;
use super::run::{begin, resume_silently};
use crate::gdb::Gdb;
use crate::state::activity::RunKind;
use crate::state::origin::{Origin, Wrapped};
use crate::text::console_line;

/// Begins a start by a site's exec wrapper.
pub(crate) async fn launch(gdb: &Gdb, id: CommandId, wrapped: Wrapped) -> Result<(), Failure> {
    gdb.edit().origin = Origin::Started {
        wrapped: Some(wrapped),
        valgrind: None,
    };
    begin(
        gdb,
        Some(id),
        RunKind::StartToFirst,
        &console_line("starti"),
    )
    .await
}

/// Handles the process's stop at its first instruction, or at that of another program. Returns the reason to stop
/// there; `None` to continue.
pub(crate) async fn go_on(gdb: &Gdb) -> Option<StopReason> {
    match advance(gdb).await {
        Ok(()) => None,
        Err(why) => Some(StopReason::Other(why.text)),
    }
}

async fn advance(gdb: &Gdb) -> Result<(), Failure> {
    let (pid, catch, program, runs_it) = {
        let state = gdb.get();
        let Some(wrapped) = state.origin.wrapped() else {
            return Err(Failure::new(
                FailureCode::BadCommand,
                "stopped at an exec, but no program is being started by an exec wrapper",
            ));
        };
        let runs_it = state.origin.valgrind().is_some();
        (state.pid(), wrapped.catch, wrapped.program.clone(), runs_it)
    };
    let id = gdb.get().activity.run_id();
    if runs_it {
        super::valgrind::begin_program(gdb).await;
    } else {
        let Some(catch) = catch else {
            let made = made_by(gdb, "catch exec").await?;
            if let Some(Some(wrapped)) = gdb.edit().origin.wrapped_mut() {
                wrapped.catch = made.keep().first().copied();
            }
            return resume_silently(gdb, id, RunKind::StartToProgram).await;
        };
        if !pid.is_some_and(|pid| gdb.host().runs(pid, &program)) {
            return resume_silently(gdb, id, RunKind::StartToProgram).await;
        }
        gdb.mi(format!("-break-delete {catch}")).await?;
    }
    let wrapped = gdb.edit().origin.wrapped_mut().and_then(Option::take);
    let Some(wrapped) = wrapped else {
        return Err(Failure::new(
            FailureCode::Cancelled,
            "the start was cancelled",
        ));
    };
    insert_kept(gdb, wrapped.kept).await;
    if wrapped.stop == StopAt::Nowhere {
        insert_internal(gdb).await;
        return resume_silently(gdb, id, RunKind::StartFreely).await;
    }
    // Without a `main` the program stays at its present instruction.
    gdb.mi("-break-insert -t main").await.map_err(|failure| {
        let text = "the program stopped at its first instruction, because gdb finds no main";
        Failure::new(failure.code, text)
    })?;
    resume_silently(gdb, id, RunKind::StartToMain).await
}
