//! The ends of a task: exit, signal, kill, detach, and the end of its gdb.

use std::time::Duration;

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::{Event, Failure, FailureCode, Reply, TaskState};

use super::alone::GdbEndOutcome;
use crate::action::Action;
use crate::gdb::Gdb;
use crate::state::State;
use crate::state::activity::OpenRun;
use crate::text::console_line;

/// Time that gdb has to kill a program or to detach from it.
const END_WAIT: Duration = Duration::from_secs(3);

/// The way in which a program ended.
#[derive(Debug)]
pub(crate) enum End {
    Exited(i32),
    Signalled(String),
    Detached,
}

/// Ends the task of a program that is no longer debugged: answers the open run, and ends gdb.
pub(crate) fn program_ended(gdb: &Gdb, end: End) {
    let mut state = gdb.edit();
    if !state.activity.is_live() {
        return;
    }
    let before_finalize = state.breakpoints.mpi.is_open();
    tracing::info!(
        pid = state.pid(),
        "the program is no longer debugged: {end:?}"
    );
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
    let is_unchecked = state.breakpoints.check.is_some() && !state.breakpoints.mpi.initialized;
    if is_unchecked && matches!(task, TaskState::Exited(_)) {
        state.actions.push_back(Action::Event(Event::Unchecked));
    }
    let run = state.activity.take_run();
    let left = task == TaskState::Detached;
    state.set_task(task);
    state.processes.forget_own();
    state.stops.clear();
    state.life.close();
    if let Some(OpenRun { id: Some(id), .. }) = run {
        state.answer(id, Ok(reply));
    } else if let Some(event) = event {
        state.actions.push_back(Action::Event(event));
    }
    if !left {
        state.actions.push_back(Action::ProgramEnded);
    }
    state.actions.push_back(Action::CloseGdb);
}

/// Ends the task of a dead program whose end gdb has not reported. The program was stopped and killed by SIGKILL, or
/// gdb has lost track of it as a passed signal ended it.
pub(crate) fn found_dead(gdb: &Gdb) {
    let mut state = gdb.edit();
    let by = if state.activity.is_stopped() {
        None
    } else if state.processes.is_found_dead_again() {
        state.processes.last_signal().map(ToOwned::to_owned)
    } else {
        return;
    };
    drop(state);
    let signal = by.unwrap_or_else(|| Signal::SIGKILL.as_str().to_owned());
    program_ended(gdb, End::Signalled(signal));
}

/// Resets the task after a failed start or attach.
pub(crate) fn not_begun(gdb: &Gdb) {
    let mut state = gdb.edit();
    state.activity.take_run();
    if state.activity.is_live() {
        state.set_task(TaskState::Absent);
    }
    state.life.close();
    state.actions.push_back(Action::ProgramEnded);
    state.actions.push_back(Action::CloseGdb);
}

/// Handles gdb's requested end: it kills programs that SDM has started, and detaches from others.
pub(crate) fn gdb_closed(gdb: &Gdb) {
    let attached = gdb.get().origin.is_attached();
    let end = if attached {
        End::Detached
    } else {
        End::Signalled(Signal::SIGKILL.as_str().to_owned())
    };
    program_ended(gdb, end);
}

/// Handles an unexpected end of gdb.
pub(crate) fn gdb_died(gdb: &Gdb, text: &str) {
    match super::alone::begin(gdb, text) {
        GdbEndOutcome::ToParent => return,
        GdbEndOutcome::Running(signal) => {
            return program_ended(gdb, signal.map_or(End::Detached, End::Signalled));
        }
        GdbEndOutcome::ToEnd => {}
    }
    let mut state = gdb.edit();
    if !state.activity.is_live() {
        return;
    }
    let run = state.activity.take_run();
    state.set_task(TaskState::GdbDead);
    state.life.close();
    state.stops.clear();
    if let Some(OpenRun { id: Some(id), .. }) = run {
        state.answer(id, Err(Failure::new(FailureCode::GdbDead, text)));
    }
    let text = text.to_owned();
    state
        .actions
        .push_back(Action::Event(Event::GdbDied { text }));
    state.actions.push_back(Action::ProgramEnded);
}

/// Kills the program, even while gdb executes a command.
pub(crate) async fn kill(gdb: Gdb, id: CommandId) {
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
    if gdb.get().origin.is_alone() {
        // Its parent kills it.
        program_ended(gdb, killed());
        return Ok(());
    }
    interrupt_query(gdb);
    let Some(pid) = gdb.get().pid() else {
        // gdb has not run the program yet.
        program_ended(gdb, killed());
        return Ok(());
    };
    // Without a gdb its parent kills it. A command to a gdb that does not come would stay open for ever.
    if gdb.get().origin.may_have_gdb() {
        gdb.post(console_line("kill"));
    }
    let gone =
        |state: &State| (state.pid() != Some(pid) || !state.activity.is_live()).then_some(());
    if gdb.until_within(END_WAIT, gone).await.is_none() {
        let signal = Signal::SIGKILL;
        gdb.edit()
            .actions
            .push_back(Action::SignalProgram { pid, signal });
        if gdb.until_within(END_WAIT, gone).await.is_none() {
            let text = format!("process {pid} is still running after SIGKILL");
            return Err(Failure::new(FailureCode::System, text));
        }
    }
    program_ended(gdb, killed());
    Ok(())
}

/// Detaches from the program, which then runs on unless it was stopped before.
pub(crate) async fn detach(gdb: Gdb, id: CommandId) {
    let ends = gdb.get().origin.valgrind().is_some();
    let refused = gdb.get().why_not_live().or_else(|| {
        let text =
            "Valgrind runs the program and would end with its debugger: kill the program, or let it run to its end";
        ends.then(|| Failure::new(FailureCode::Unsupported, text))
    });
    let result = match refused {
        Some(failure) => Err(failure),
        None => detach_program(&gdb).await.map(|()| Reply::Done),
    };
    gdb.answer(id, result);
}

async fn detach_program(gdb: &Gdb) -> Result<(), Failure> {
    if super::alone::leave(gdb) {
        program_ended(gdb, End::Detached);
        return Ok(());
    }
    interrupt_query(gdb);
    // No command may come between the steps of a start.
    let begun = |state: &State| {
        let stands =
            state.pid().is_some() || state.origin.is_core_file() || !state.activity.is_live();
        stands.then_some(())
    };
    gdb.until_within(END_WAIT, begun).await;
    super::interrupt::settle_before_detach(gdb).await?;
    leave_process(gdb).await?;
    program_ended(gdb, End::Detached);
    Ok(())
}

/// Detaches gdb from the process; until the answer gdb receives nothing else about the task.
pub(crate) async fn leave_process(gdb: &Gdb) -> Result<(), Failure> {
    let asked = gdb.clone();
    gdb.finish_unbroken(async move {
        {
            let mut state = asked.edit();
            state.is_leaving = true;
            let is_process = state.origin.is_attached() && !state.origin.is_core_file();
            if is_process && state.activity.is_stopped() {
                state.actions.push_back(Action::UntieProcess);
            }
        }
        let left = asked.mi("-target-detach").await;
        asked.edit().is_leaving = false;
        left.map(drop)
    })
    .await
}

/// Interrupts gdb's present query, so that it does not delay an urgent command.
fn interrupt_query(gdb: &Gdb) {
    let busy = {
        let state = gdb.get();
        state.activity.is_stopped() && !state.commands.pending.is_empty()
    };
    if busy {
        gdb.break_off(|_, _| true);
    }
}

/// Detaches at the end of the session. A process that a pending SIGINT would end stays traced until it has received the
/// signal, unless it blocks SIGINT.
async fn detach_at_end(gdb: &Gdb, let_go: fn(&State) -> Option<()>) {
    gdb.until(let_go).await;
    while gdb.get().activity.is_live() {
        let left = detach_program(gdb).await;
        let is_kept = left.is_err_and(|failure| failure.code == FailureCode::NotStoppable);
        let pid = gdb.get().pid();
        // A blocked signal can stay pending for ever.
        if !is_kept || pid.is_none_or(|pid| gdb.blocks_signal(pid, Signal::SIGINT)) {
            return;
        }
    }
}

/// Ends the task at the end of the session: kills a program that SDM has started if `kill_started` is set, and detaches
/// from any other.
pub(crate) async fn shut_down(gdb: Gdb, kill_started: bool) {
    let let_go: fn(&State) -> Option<()> = |state| (state.letting_go == 0).then_some(());
    gdb.until_within(END_WAIT, let_go).await;
    let (live, starting, started) = {
        let state = gdb.get();
        let activity = &state.activity;
        (
            activity.is_live(),
            activity.is_starting(),
            !state.origin.is_attached(),
        )
    };
    if live && started && kill_started {
        // A process that is still alive is killed by its pid when gdb has ended.
        let _ = kill_program(&gdb).await;
    } else if starting && !started {
        // The attach is abandoned. It would wait for a process to which gdb may never be told to attach.
        super::attach::give_up(gdb.clone()).await;
    } else if live {
        detach_at_end(&gdb, let_go).await;
    }
    let mut state = gdb.edit();
    state.life.close();
    state.actions.push_back(Action::CloseGdb);
}
