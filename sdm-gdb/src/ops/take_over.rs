//! Attaches gdb to a program that has run without one, once a command needs gdb.
//!
//! Meanwhile the front-end sees the program as running. The event that stopped the program recurs under gdb: a signal
//! is sent again, or its instruction raises it again; a reached function is entered again by a jump to its address.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sdm_child::{Cause, Freed};
use sdm_debug::event::Phase;
use sdm_debug::{Event, Failure, FailureCode};

use super::attach::{is_held_or_over, tell_lost_program, wake};
use super::end::gdb_died;
use super::run::begin;
use super::threads::kernel_id;
use crate::action::{Action, SeizedAction};
use crate::gdb::Gdb;
use crate::state::State;
use crate::state::activity::RunKind;
use crate::text::{console_line, with_path};

/// Longest time from gdb's report of the attach to the process's stop.
const STOP_WAIT: Duration = Duration::from_secs(10);

pub(crate) async fn take_over(gdb: Gdb, program: PathBuf) {
    gdb.tell(Event::Progress(Phase::Gdb));
    let Err(failure) = carry_out(&gdb, program).await else {
        return;
    };
    if gdb.get().activity.is_live() {
        gdb_died(&gdb, &failure.text);
        gdb.edit().actions.push_back(Action::CloseGdb);
    }
}

async fn carry_out(gdb: &Gdb, program: PathBuf) -> Result<(), Failure> {
    // Until gdb resumes the process, it cannot be stopped through gdb.
    gdb.edit().activity.end_executing();
    let answers = super::start::prepare(gdb);
    super::registers::look(gdb).await?;
    let wait = gdb.get().config.symbols_wait;
    // Reads the symbols before the program is stopped. If this fails, the attach reads them.
    read_symbols(gdb, &program).await;
    for answer in answers {
        answer.await?;
    }
    super::start::carry_out_handles(gdb).await;
    // The parent keeps a program stopped to which gdb cannot attach.
    if let Some(pid) = gdb.get().pid()
        && !gdb.host().may_attach(pid)
    {
        let text = "ptrace: Operation not permitted";
        return Err(Failure::new(FailureCode::AttachFailed, text));
    }
    gdb.edit()
        .actions
        .push_back(Action::Seized(SeizedAction::LetGo));
    let freed = |state: &State| match state.origin.freed() {
        _ if !state.activity.is_live() => Some(None),
        freed => freed.map(Some),
    };
    let Some(Some(freed)) = gdb.until(freed).await else {
        return Ok(());
    };
    let Some(pid) = gdb.get().pid() else {
        return Ok(());
    };
    // Meanwhile another process may have become the rank's program.
    if let Some(now) = gdb.host().program(pid).filter(|now| *now != program) {
        read_symbols(gdb, &now).await;
    }
    attach(gdb, pid, wait).await?;
    if freed.stood.is_some() {
        wake(gdb, pid);
    }
    {
        let mut state = gdb.edit();
        state.breakpoints.mpi.initialized = freed.initialized;
        state.breakpoints.mpi.finalized = freed.finalized;
    }
    super::internal::insert_internal(gdb).await;
    let id = gdb.get().activity.run_id();
    let line = way_on(gdb, pid, freed).await?;
    begin(gdb, id, RunKind::StartFreely, &line).await
}

async fn read_symbols(gdb: &Gdb, program: &Path) {
    let pid = gdb.get().pid();
    if pid.is_some_and(|pid| gdb.host().has_lost_program(pid)) {
        return tell_lost_program(gdb);
    }
    let wait = gdb.get().config.symbols_wait;
    let path = program.as_os_str().as_bytes();
    let file = with_path("-file-exec-and-symbols", "file", path);
    let _ = gdb.send_within(file, wait).await;
}

async fn attach(gdb: &Gdb, pid: i32, wait: Duration) -> Result<(), Failure> {
    gdb.send_within(format!("-target-attach {pid}"), wait)
        .await?;
    gdb.edit().origin.set_taken_over();
    gdb.until_told(STOP_WAIT, wait, is_held_or_over).await;
    // No other operation may handle this stop.
    let is_held = gdb.edit().stops.pop_front().is_some();
    let gone = gdb.get().why_not_live();
    match gone {
        Some(failure) => Err(failure),
        None if !is_held => Err(Failure::new(
            FailureCode::AttachFailed,
            "the process did not stop after gdb attached",
        )),
        None => Ok(()),
    }
}

/// The command that resumes the program such that the event that had stopped it occurs again under gdb.
async fn way_on(gdb: &Gdb, pid: i32, freed: Freed) -> Result<String, Failure> {
    let Some((thread, cause)) = freed.stood else {
        return Ok(RunKind::Continue.line());
    };
    if let Cause::Signal { number, again, .. } = cause {
        if again {
            gdb.edit().actions.push_back(Action::SignalThread {
                pid,
                thread,
                signal: number,
            });
        }
        return Ok(RunKind::Continue.line());
    }
    let known = gdb.mi("-thread-info").await?;
    let mut threads = known.tuples("threads");
    let is_it = |it: &&sdm_mi::Results| it.text("target-id").and_then(kernel_id) == Some(thread);
    if let Some(found) = threads.find(is_it)
        && let Some(number) = found.number::<u32>("id")
    {
        gdb.mi(console_line(&format!("thread {number}"))).await?;
    }
    // Unlike `continue`, this stops at a breakpoint at the target address itself.
    Ok(console_line("jump *$pc &"))
}
