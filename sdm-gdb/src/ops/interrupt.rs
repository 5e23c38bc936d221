//! Stops a running program, even one that resists.
//!
//! Only `*stopped` counts as a stop. gdb's own interrupt is a SIGINT to the process. A process that blocks SIGINT would
//! not stop, and receive the signal later; so it gets SIGSTOP at once. A signal that did not stop the program (a
//! breakpoint came first) is remembered, and discarded when it arrives.

use std::time::Duration;

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::{Failure, FailureCode, Reply, TaskState};

use super::run::begin;
use crate::action::Action;
use crate::gdb::Gdb;
use crate::guards::InterruptGuard;
use crate::state::State;
use crate::state::activity::RunKind;
use crate::state::signals::Sigint;

/// Time that a program has to stop on a signal, if it does not lack a processor.
const STOP_WAIT: Duration = Duration::from_secs(3);
/// Time that a program has to stop if some of its threads have stopped and another waits uninterruptibly.
const INCOMPLETE_WAIT: Duration = Duration::from_secs(30);
/// Number of times that Valgrind is asked to stop a program.
const ASK_TIMES: u32 = 5;
/// Time that gdb has to start running a program that is to be stopped.
const BEGIN_WAIT: Duration = Duration::from_secs(60);

pub(crate) async fn interrupt(gdb: Gdb, id: CommandId) {
    let refused = gdb.get().why_not_live();
    let result = match refused {
        Some(failure) => Err(failure),
        None => {
            let asked = InterruptGuard::new(&gdb);
            let result = stop_program(&gdb).await;
            drop(asked);
            result.map(|()| Reply::Done)
        }
    };
    gdb.answer(id, result);
}

fn has_stopped(state: &State) -> Option<()> {
    let running = state.activity.is_running() || state.activity.is_starting();
    (!running).then_some(())
}

async fn stop_program(gdb: &Gdb) -> Result<(), Failure> {
    if has_stopped(&gdb.get()).is_some() {
        return Ok(());
    }
    // Between two steps of a start no process runs that could be stopped.
    let can_stop = |state: &State| {
        (state.activity.is_executing() && state.pid().is_some())
            .then_some(())
            .or_else(|| has_stopped(state))
    };
    gdb.until_within(BEGIN_WAIT, can_stop).await;
    let Some(pid) = gdb.get().pid() else {
        return Ok(());
    };
    if has_stopped(&gdb.get()).is_some() {
        return Ok(());
    }
    if gdb.get().origin.valgrind().is_some() {
        return ask_until_stopped(gdb, pid).await;
    }
    let passes = gdb.get().handling.sigint == Sigint::Passes;
    if passes || gdb.blocks_signal(pid, Signal::SIGINT) {
        send_stop(gdb, pid);
    } else if !gdb.get().interrupts.int_sent {
        send_interrupt(gdb).await;
    }
    let wait = gdb.get().config.interrupt_wait;
    if gdb.until_within(wait, has_stopped).await.is_some() {
        return Ok(());
    }
    send_stop(gdb, pid);
    let told = gdb
        .until_told(STOP_WAIT, INCOMPLETE_WAIT, has_stopped)
        .await;
    told.ok_or_else(|| not_stoppable(gdb, pid))
}

/// Has gdb interrupt a program through Valgrind's gdbserver, until it stops. A signal is not sent: gdbserver does not
/// answer while a signal stops its process. Valgrind misses a request that arrives just as the program resumes, so it
/// is repeated.
async fn ask_until_stopped(gdb: &Gdb, pid: i32) -> Result<(), Failure> {
    for _ in 0..ASK_TIMES {
        send_interrupt(gdb).await;
        if gdb.until_within(STOP_WAIT, has_stopped).await.is_some() {
            return Ok(());
        }
    }
    Err(not_stoppable(gdb, pid))
}

/// Has gdb send the program a SIGINT. The driver takes the signal for pending, unless gdb refuses to send it.
async fn send_interrupt(gdb: &Gdb) {
    let sender = gdb.clone();
    {
        let mut state = gdb.edit();
        state.interrupts.int_sent = true;
        state.interrupts.int_asked = true;
    }
    gdb.finish(async move {
        let sent = sender.mi("-exec-interrupt").await;
        sender.edit().interrupts.int_asked = false;
        if sent.is_err_and(|failure| failure.code == FailureCode::Gdb) {
            sender.edit().interrupts.int_sent = false;
        }
    })
    .await;
}

fn send_stop(gdb: &Gdb, pid: i32) {
    let mut state = gdb.edit();
    if !state.interrupts.stop_sent {
        state.interrupts.stop_sent = true;
        let signal = Signal::SIGSTOP;
        state
            .actions
            .push_back(Action::SignalProgram { pid, signal });
    }
}

fn not_stoppable(gdb: &Gdb, pid: i32) -> Failure {
    let state = kernel_state(gdb, pid);
    let text = format!("the process could not be stopped ({state})");
    Failure::new(FailureCode::NotStoppable, text)
}

fn kernel_state(gdb: &Gdb, pid: i32) -> String {
    match gdb.host().process_state(pid) {
        Some((letter, wchan)) if wchan.is_empty() => format!("state {letter}"),
        Some((letter, wchan)) => format!("state {letter}, {wchan}"),
        None => "the process no longer exists".to_owned(),
    }
}

/// Runs the program into a pending signal of the driver before a detach: later the signal would reach the detached
/// program. Fails if a SIGINT stays pending, as it would end the detached program.
pub(crate) async fn settle_before_detach(gdb: &Gdb) -> Result<(), Failure> {
    // A signal of the driver may still be on its way to the running program, as after an abandoned interrupt.
    let arrived = |state: &State| {
        let sent = state.interrupts.int_sent || state.interrupts.stop_sent;
        (!sent).then_some(()).or_else(|| has_stopped(state))
    };
    loop {
        gdb.until_told(STOP_WAIT, INCOMPLETE_WAIT, arrived).await;
        let (pid, task, interrupts) = {
            let state = gdb.get();
            (state.pid(), state.activity.task(), state.interrupts)
        };
        let Some(pid) = pid else { return Ok(()) };
        let int_waits =
            (interrupts.int_sent || interrupts.broke_off) && gdb.has_pending(pid, Signal::SIGINT);
        gdb.edit().interrupts.int_sent |= int_waits;
        let stop_waits = interrupts.stop_sent && gdb.has_pending(pid, Signal::SIGSTOP);
        let can_take = task == TaskState::Stopped && !gdb.blocks_signal(pid, Signal::SIGINT);
        if int_waits && !can_take {
            return Err(would_end(gdb, pid));
        }
        if task != TaskState::Stopped || !(int_waits || stop_waits) {
            return Ok(());
        }
        let asked = InterruptGuard::new(gdb);
        match begin(gdb, None, RunKind::Continue, "-exec-continue").await {
            Ok(()) => {}
            Err(failure) if int_waits => return Err(failure),
            Err(_) => return Ok(()),
        }
        gdb.until_told(STOP_WAIT, INCOMPLETE_WAIT, has_stopped)
            .await;
        drop(asked);
    }
}

fn would_end(gdb: &Gdb, pid: i32) -> Failure {
    let state = kernel_state(gdb, pid);
    let text = format!(
        "the process cannot be detached yet: a SIGINT of the debugger is pending and would end the process ({state})"
    );
    Failure::new(FailureCode::NotStoppable, text)
}
