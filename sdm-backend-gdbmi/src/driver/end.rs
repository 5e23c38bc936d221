//! The ends of a task: exit, signal, kill, detach, and the end of its gdb.

use std::time::Duration;

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::{Event, Failure, FailureCode, Reply, TaskState};

use super::Action;
use super::core::Gdb;
use super::run::OpenRun;
use super::values::console_line;

/// How long gdb may take to kill or to leave a program.
const END_WAIT: Duration = Duration::from_secs(3);

/// How a program ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(i32),
    Signalled(String),
    Detached,
}

/// The program is no longer ours: answers the open run, and lets gdb go.
pub(super) fn program_ended(gdb: &Gdb, end: End) {
    let mut state = gdb.edit();
    if !state.task.is_live() {
        return;
    }
    let before_finalize = state.breakpoints.mpi.is_open();
    tracing::info!(pid = state.pid, "program no longer held: {end:?}");
    let (task, reply, event) = match end {
        End::Exited(code) => (
            TaskState::Exited(code),
            Reply::Exited {
                code,
                before_finalize,
            },
            Some(Event::Exited { code }),
        ),
        End::Signalled(signal) => (
            TaskState::Signalled(signal.clone()),
            Reply::Signalled {
                signal: signal.clone(),
            },
            Some(Event::Signalled { signal }),
        ),
        End::Detached => (TaskState::Detached, Reply::Detached, None),
    };
    state.set_task(task);
    state.pid = None;
    state.executing = false;
    state.stops.clear();
    state.closing = true;
    let run = state.run.take();
    if let Some(OpenRun { id: Some(id), .. }) = run {
        state.answer(id, Ok(reply));
    } else if let Some(event) = event {
        state.actions.push_back(Action::Event(event));
    }
    if state.task != TaskState::Detached {
        state.actions.push_back(Action::ProgramEnded);
    }
    state.actions.push_back(Action::CloseGdb);
}

/// Somebody else has killed the program.
pub(super) fn killed(gdb: &Gdb) {
    program_ended(gdb, End::Signalled(Signal::SIGKILL.as_str().to_owned()));
}

/// A start or an attach came to nothing: the task is what it was before.
pub(super) fn not_begun(gdb: &Gdb) {
    let mut state = gdb.edit();
    if state.task.is_live() {
        state.set_task(TaskState::Absent);
    }
    state.run = None;
    state.closing = true;
    state.actions.push_back(Action::ProgramEnded);
    state.actions.push_back(Action::CloseGdb);
}

/// gdb has ended as it was asked to: it kills what it started and leaves what it attached to.
pub(super) fn gdb_closed(gdb: &Gdb) {
    let attached = gdb.get().attached;
    let end = if attached {
        End::Detached
    } else {
        End::Signalled(Signal::SIGKILL.as_str().to_owned())
    };
    program_ended(gdb, end);
}

/// The task's gdb is gone without being asked to.
pub(super) fn gdb_died(gdb: &Gdb, text: &str) {
    let mut state = gdb.edit();
    if !state.task.is_live() {
        return;
    }
    state.set_task(TaskState::GdbDead);
    state.executing = false;
    state.closing = true;
    state.stops.clear();
    if let Some(OpenRun { id: Some(id), .. }) = state.run.take() {
        state.answer(id, Err(Failure::new(FailureCode::GdbDead, text)));
    }
    let text = text.to_owned();
    state
        .actions
        .push_back(Action::Event(Event::GdbDied { text }));
    state.actions.push_back(Action::ProgramEnded);
}

/// Kills the program, whatever gdb is doing.
pub(super) async fn kill(gdb: Gdb, id: CommandId) {
    let result = match gdb.get().why_not_live() {
        Some(failure) => Err(failure),
        None => Ok(()),
    };
    let result = match result {
        Ok(()) => kill_program(&gdb).await.map(|()| Reply::Done),
        Err(failure) => Err(failure),
    };
    gdb.answer(id, result);
}

async fn kill_program(gdb: &Gdb) -> Result<(), Failure> {
    let killed = || End::Signalled(Signal::SIGKILL.as_str().to_owned());
    interrupt_query(gdb);
    let Some(pid) = gdb.get().pid else {
        // gdb has not begun to run it.
        program_ended(gdb, killed());
        return Ok(());
    };
    let answer = gdb.send(console_line("kill"));
    let gone = |state: &super::core::State| {
        (state.pid != Some(pid) || !state.task.is_live()).then_some(())
    };
    if gdb.until_within(END_WAIT, gone).await.is_none() {
        let signal = Signal::SIGKILL;
        gdb.edit()
            .actions
            .push_back(Action::SignalProgram { pid, signal });
        if gdb.until_within(END_WAIT, gone).await.is_none() {
            let text = format!("process {pid} was sent SIGKILL and is still there");
            return Err(Failure::new(FailureCode::System, text));
        }
    }
    program_ended(gdb, killed());
    drop(answer);
    Ok(())
}

/// Leaves the program running as it was.
pub(super) async fn detach(gdb: Gdb, id: CommandId) {
    let refused = gdb.get().why_not_live();
    let result = match refused {
        Some(failure) => Err(failure),
        None => detach_program(&gdb).await.map(|()| Reply::Done),
    };
    gdb.answer(id, result);
}

async fn detach_program(gdb: &Gdb) -> Result<(), Failure> {
    interrupt_query(gdb);
    // What gdb is told must not come between the steps of a start.
    let begun = |state: &super::core::State| {
        let stands = state.pid.is_some() || state.core_file || !state.task.is_live();
        stands.then_some(())
    };
    gdb.until_within(END_WAIT, begun).await;
    super::interrupt::settle_before_detach(gdb).await;
    gdb.mi("-target-detach").await?;
    program_ended(gdb, End::Detached);
    Ok(())
}

/// A query that gdb is at must not hold up what is urgent.
fn interrupt_query(gdb: &Gdb) {
    let busy = {
        let state = gdb.get();
        state.task == TaskState::Stopped && !state.pending.is_empty()
    };
    if busy {
        gdb.break_off(|_| true);
    }
}

/// Ends the task for good.
pub(super) async fn shut_down(gdb: Gdb, kill_started: bool) {
    let let_go = |state: &super::core::State| (state.letting_go == 0).then_some(());
    gdb.until_within(END_WAIT, let_go).await;
    let (live, started) = {
        let state = gdb.get();
        (state.task.is_live(), !state.attached)
    };
    if live && started && kill_started {
        // What is left alive is killed by its pid when gdb is gone.
        let _ = kill_program(&gdb).await;
    } else if live {
        let _ = detach_program(&gdb).await;
    }
    let mut state = gdb.edit();
    state.closing = true;
    state.actions.push_back(Action::CloseGdb);
}
