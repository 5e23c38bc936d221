//! A program that is stopped before its end, and has no gdb: nothing has needed one yet, or none can attach.
//!
//! Its parent keeps it stopped, so that its stack can be read without gdb. The kernel ends it with its parent. SIGSTOP
//! would keep it stopped for ever if all processes of SDM were killed.
//!
//! If a command needs a gdb, the stop recurs under it ([`super::take_over`]). The front-end is not told of it again.

use std::collections::BTreeSet;
use std::rc::Rc;

use nix::sys::signal::Signal;
use sdm_child::{Cause, EndingCall};
use sdm_core::CommandId;
use sdm_debug::fold::innermost_user_frame;
use sdm_debug::reply::{Frame, Stop, StopReason};
use sdm_debug::{Command, Event, Failure, FailureCode, Reply, TaskState};
use sdm_inspect::python::is_evaluation;
use sdm_inspect::stack::{StackFrame, StoppedThread};
use sdm_mpi::symbols::ABORT;
use sdm_system::signal_name;

use super::mpi_error::{EXIT_BEFORE_FINALIZE, with_code};
use super::native_stop::{NativeStop, is_native, shows_all, stopped_reply};
use super::stop;
use crate::action::{Action, SeizedAction};
use crate::gdb::Gdb;
use crate::state::activity::{OpenRun, RunKind};

/// A program whose gdb has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GdbEndOutcome {
    /// Its parent keeps it stopped, or traces it while it runs.
    ToParent,
    /// It runs, and nobody traces it. This signal ends it; `None` if its end is not known yet.
    Running(Option<String>),
    /// It was not stopped by its parent, or ends with its gdb.
    ToEnd,
}

/// Leaves a program without a gdb, for the reason in `why`, if its parent has stopped it.
pub(crate) fn begin(gdb: &Gdb, why: &str) -> GdbEndOutcome {
    let mut state = gdb.edit();
    if state.origin.why_alone().is_some() {
        return GdbEndOutcome::ToParent;
    }
    if !state.activity.is_live() || !state.origin.leave_alone(why) {
        return GdbEndOutcome::ToEnd;
    }
    let is_released = state.origin.freed().is_some();
    let is_reported = state.origin.seen().is_some();
    if is_reported && !is_released {
        state.activity.end_executing();
        state.set_task(TaskState::Stopped);
    }
    drop(state);
    if is_released {
        // gdb has ended while it attached. Nothing but SIGSTOP holds the program now.
        tell_reason(gdb);
        let stood = gdb.get().origin.stood();
        leave(gdb);
        return GdbEndOutcome::Running(match stood {
            // Its instruction raises the signal again, or the signal is sent again.
            Some((_, Cause::Signal { number, .. })) => Some(signal_name(number)),
            _ => None,
        });
    }
    match is_reported {
        true => tell_reason(gdb),
        false => {
            stand(gdb);
        }
    }
    GdbEndOutcome::ToParent
}

/// Has the stop of a program examined without gdb. False if gdb is needed. Where none can attach, the program goes on at
/// an error in MPI: it may handle the error.
pub(crate) fn stand(gdb: &Gdb) -> bool {
    let mut state = gdb.edit();
    let Some((_, cause)) = state.origin.stood() else {
        return false;
    };
    let may_be_handled = matches!(
        cause,
        Cause::Function(EndingCall::MpiError | EndingCall::Check)
    );
    match state.origin.why_alone() {
        None if may_be_handled || is_kept_back(cause) || state.origin.has_gdb() => return false,
        Some(why) if may_be_handled => {
            let text = format!("{} is not examined, as there is no gdb: {why}", what(cause));
            state.origin.forget_stood();
            state.activity.begin_executing();
            let notice = Action::Event(Event::Notice { text });
            state
                .actions
                .extend([notice, Action::Seized(SeizedAction::GoOnAlone)]);
            return true;
        }
        _ => {}
    }
    state.activity.end_executing();
    drop(state);
    tell_reason(gdb);
    gdb.edit()
        .actions
        .push_back(Action::Seized(SeizedAction::LookAtStop));
    true
}

/// True for signals that a `continue` of gdb does not pass on.
fn is_kept_back(cause: Cause) -> bool {
    let Cause::Signal { number, .. } = cause else {
        return false;
    };
    [Signal::SIGINT as i32, Signal::SIGTRAP as i32].contains(&number)
}

/// Reports the stop with what was read of the stopped thread; `None` if it could not be read. False if gdb is needed to
/// read more of it.
pub(crate) fn report(gdb: &Gdb, thread: Option<StoppedThread>) -> bool {
    let Some((_, cause)) = gdb.get().origin.stood() else {
        return true;
    };
    let can_have_gdb = gdb.get().origin.why_alone().is_none();
    if can_have_gdb && !thread.as_ref().is_some_and(is_read_whole) {
        return false;
    }
    let config = gdb.get().config.clone();
    let seen = thread
        .as_ref()
        .map(|thread| NativeStop::new(thread, &config.fold));
    let user = seen
        .as_ref()
        .and_then(|it| innermost_user_frame(&it.raw, &config.fold));
    let frame = seen.and_then(|it| it.frame(it.shown.0, false));
    let source = frame
        .as_ref()
        .filter(|it| !it.path.is_empty() && it.line > 0)
        .and_then(|it| gdb.host().source_line(&it.path, it.line));
    let reason = match cause {
        Cause::Signal { number, .. } => StopReason::Signal {
            name: signal_name(number),
            meaning: meaning(number).to_owned(),
        },
        Cause::Function(_) => StopReason::Internal { what: what(cause) },
    };
    let stop = Stop {
        reason,
        frame: frame.map(|frame| Frame { level: 0, ..frame }),
        inside: user.and_then(|it| it.inside),
        source,
    };
    stop::report(gdb, stop);
    if let Some(thread) = thread {
        gdb.edit().origin.set_seen(thread);
    }
    true
}

/// False where gdb may show more of a stack, or Python's functions in place of the interpreter's.
fn is_read_whole(thread: &StoppedThread) -> bool {
    let stack = &thread.stack;
    let names = |frame: &StackFrame| frame.function.as_deref().is_some_and(is_evaluation);
    stack.is_whole && stack.removed_file.is_none() && !stack.frames.iter().any(names)
}

fn tell_reason(gdb: &Gdb) {
    let mut state = gdb.edit();
    if let (Some(why), Some((_, cause))) = (state.origin.why_alone(), state.origin.stood()) {
        let text = format!("no gdb for {}: {why}", what(cause));
        state
            .actions
            .push_back(Action::Event(Event::Notice { text }));
    }
}

fn what(cause: Cause) -> String {
    match cause {
        Cause::Signal {
            number,
            address: Some(address),
            ..
        } => format!("{} at address {address:#x}", signal_name(number)),
        Cause::Signal { number, .. } => signal_name(number),
        Cause::Function(call) => held(call),
    }
}

/// Fails all open commands. Of a program without a gdb those remain that its stop will answer, and those in `queued`.
pub(crate) fn fail_open(gdb: &Gdb, failure: &Failure, queued: &BTreeSet<CommandId>) {
    let mut state = gdb.edit();
    let is_alone = state.origin.why_alone().is_some();
    let waits = state.activity.run_id().filter(|_| is_alone);
    if waits.is_none() {
        state.activity.take_run();
    }
    for id in state.open.clone() {
        if Some(id) != waits && !(is_alone && queued.contains(&id)) {
            state.answer(id, Err(failure.clone()));
        }
    }
}

fn held(call: EndingCall) -> String {
    match call {
        EndingCall::Abort => "abort".to_owned(),
        EndingCall::MpiAbort(code) => with_code(ABORT, code),
        EndingCall::Exit(code) => with_code(EXIT_BEFORE_FINALIZE, code),
        EndingCall::MpiError => "an error in MPI".to_owned(),
        EndingCall::Check => "an error in the use of MPI".to_owned(),
    }
}

/// The meaning of a signal, in gdb's words.
fn meaning(number: i32) -> &'static str {
    match Signal::try_from(number) {
        Ok(Signal::SIGHUP) => "Hangup",
        Ok(Signal::SIGINT) => "Interrupt",
        Ok(Signal::SIGQUIT) => "Quit",
        Ok(Signal::SIGILL) => "Illegal instruction",
        Ok(Signal::SIGTRAP) => "Trace/breakpoint trap",
        Ok(Signal::SIGABRT) => "Aborted",
        Ok(Signal::SIGBUS) => "Bus error",
        Ok(Signal::SIGFPE) => "Arithmetic exception",
        Ok(Signal::SIGSEGV) => "Segmentation fault",
        Ok(Signal::SIGSYS) => "Bad system call",
        Ok(Signal::SIGXFSZ) => "File size limit exceeded",
        _ => "Unknown signal",
    }
}

/// The failure of a command for a program to which no gdb can attach; `None` for other programs.
pub(crate) fn refusal(gdb: &Gdb) -> Option<Failure> {
    let state = gdb.get();
    let why = state.origin.why_alone()?;
    let is_live = state.activity.is_live();
    is_live.then(|| Failure::new(FailureCode::Unsupported, format!("no gdb: {why}")))
}

/// Answers a command of a program without a gdb from its stopped thread, or refuses it. `None` for other programs.
pub(crate) fn answer(gdb: &Gdb, command: &Command) -> Option<Result<Reply, Failure>> {
    let refusal = refusal(gdb);
    let state = gdb.get();
    let is_alone = state.origin.stands_alone() && state.activity.is_stopped();
    let seen = state
        .origin
        .seen()
        .filter(|_| is_alone && is_native(command));
    match seen {
        Some(thread) => Some(stopped_reply(command, &thread, &state.config.fold)),
        None => refusal.map(Err),
    }
}

/// True for a command that needs no gdb, because the program's parent keeps it stopped: gdb would show no more.
pub(crate) fn needs_none(gdb: &Gdb, command: &Command) -> bool {
    let state = gdb.get();
    if !state.origin.stands_alone() || !state.activity.is_stopped() {
        return false;
    }
    match (command, state.origin.seen()) {
        (Command::Continue | Command::Detach, _) => true,
        (_, Some(thread)) => is_native(command) && shows_all(command, &thread, &state.config.fold),
        (_, None) => false,
    }
}

/// True while a program, whose stop the front-end knows, has not stopped again under its gdb. Commands wait for that.
pub(crate) fn is_awaited(gdb: &Gdb) -> bool {
    let state = gdb.get();
    state.origin.is_stop_known() && state.activity.is_running()
}

/// Resumes the program, which runs into what it was stopped for. False for other programs.
pub(crate) fn go_on(gdb: &Gdb, id: CommandId) -> bool {
    let mut state = gdb.edit();
    if !state.origin.stands_alone() || !state.activity.is_stopped() {
        return false;
    }
    state.origin.forget_stood();
    state.activity.open_run(OpenRun {
        id: Some(id),
        kind: RunKind::Continue,
        token: 0,
        again: Rc::from(RunKind::Continue.line()),
    });
    state.activity.begin_executing();
    state
        .actions
        .push_back(Action::Seized(SeizedAction::GoOnAlone));
    true
}

/// Has the parent detach from the program, which runs on. False for other programs.
pub(crate) fn leave(gdb: &Gdb) -> bool {
    let mut state = gdb.edit();
    let Some(pid) = state.pid().filter(|_| state.origin.is_alone()) else {
        return false;
    };
    if state.origin.freed().is_none() {
        state.actions.push_back(Action::Seized(SeizedAction::Leave));
        return true;
    }
    if let Some((
        thread,
        Cause::Signal {
            number,
            again: true,
            ..
        },
    )) = state.origin.stood()
    {
        state.actions.push_back(Action::SignalThread {
            pid,
            thread,
            signal: number,
        });
    }
    let signal = Signal::SIGCONT;
    let go_on = Action::SignalProgram { pid, signal };
    state.actions.push_back(go_on);
    true
}
