//! Stops a running program, even one that resists.
//!
//! Only `*stopped` counts as a stop. gdb's own interrupt is a SIGINT to the process. A process that blocks SIGINT
//! would not stop but find the signal later, so it gets SIGSTOP at once. A signal that did not stop the program (a
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

/// Time that a program has to stop on SIGSTOP.
const STOP_WAIT: Duration = Duration::from_secs(3);
/// Time that gdb has to report a program as stopped that the kernel has already stopped.
const HELD_WAIT: Duration = Duration::from_secs(30);
/// Number of times that Valgrind is asked to stop a program.
const ASK_TIMES: u32 = 5;
/// Time that gdb has to start running a program that is to be stopped.
const BEGIN_WAIT: Duration = Duration::from_secs(60);
/// Time that a pending signal has to stop a program resumed for it.
const SETTLE_WAIT: Duration = Duration::from_millis(500);

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
    if passes || gdb.host().blocks_signal(pid, nix::libc::SIGINT) {
        send_stop(gdb, pid);
    } else if !gdb.get().interrupts.int_sent {
        send_interrupt(gdb).await;
    }
    let wait = gdb.get().config.interrupt_wait;
    if gdb.until_within(wait, has_stopped).await.is_some() {
        return Ok(());
    }
    send_stop(gdb, pid);
    let told = gdb.until_told(STOP_WAIT, HELD_WAIT, has_stopped).await;
    told.ok_or_else(|| not_stoppable(gdb, pid))
}

/// Stops a program by Valgrind's own server, whatever the signal settings are: stopped by a signal, it could not
/// answer. A request that comes just as the program resumes is missed.
async fn ask_until_stopped(gdb: &Gdb, pid: i32) -> Result<(), Failure> {
    for _ in 0..ASK_TIMES {
        send_interrupt(gdb).await;
        if gdb.until_within(STOP_WAIT, has_stopped).await.is_some() {
            return Ok(());
        }
    }
    Err(not_stoppable(gdb, pid))
}

/// Has gdb send the program a SIGINT, which is then pending, unless gdb refuses.
async fn send_interrupt(gdb: &Gdb) {
    let sender = gdb.clone();
    gdb.edit().interrupts.int_sent = true;
    gdb.finish(async move {
        let sent = sender.mi("-exec-interrupt").await;
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
    let text = match gdb.host().process_state(pid) {
        Some((letter, wchan)) if wchan.is_empty() => {
            format!("could not be stopped (state {letter})")
        }
        Some((letter, wchan)) => format!("could not be stopped (state {letter}, {wchan})"),
        None => "could not be stopped (the process is gone)".to_owned(),
    };
    Failure::new(FailureCode::NotStoppable, text)
}

/// Runs the program into a pending signal of the driver before a detach: later the signal would reach the detached
/// program.
pub(crate) async fn settle_before_detach(gdb: &Gdb) {
    // A signal of the driver may still be on its way to the running program, as after an abandoned interrupt. Wait
    // until it stops the program.
    let arrived = |state: &State| {
        let sent = state.interrupts.int_sent || state.interrupts.stop_sent;
        (!sent).then_some(()).or_else(|| has_stopped(state))
    };
    gdb.until_within(STOP_WAIT, arrived).await;
    for _ in 0..2 {
        let (pid, task, interrupts) = {
            let state = gdb.get();
            (state.pid(), state.activity.task(), state.interrupts)
        };
        let Some(pid) = pid else { return };
        let waits = |sent: bool, signal: i32| sent && gdb.host().signal_pending(pid, signal);
        let int_waits = waits(
            interrupts.int_sent || interrupts.broke_off,
            nix::libc::SIGINT,
        );
        gdb.edit().interrupts.int_sent |= int_waits;
        let waiting = int_waits || waits(interrupts.stop_sent, nix::libc::SIGSTOP);
        if !waiting || task != TaskState::Stopped {
            return;
        }
        let asked = InterruptGuard::new(gdb);
        let begun = begin(gdb, None, RunKind::Continue, "-exec-continue").await;
        if begun.is_ok() {
            gdb.until_within(SETTLE_WAIT, has_stopped).await;
        }
        drop(asked);
    }
}
