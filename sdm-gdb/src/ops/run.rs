//! Commands that let the program run, such as continue, step, `finish`, `until` and jump.

use std::rc::Rc;

use sdm_core::CommandId;
use sdm_debug::command::StepKind;
use sdm_debug::{Command, Failure, FailureCode, TaskState};

use super::{return_values, step_frame};
use crate::action::Action;
use crate::gdb::Gdb;
use crate::state::activity::{FINISH, OpenRun, RunKind};
use crate::text::console_line;
use crate::wording::{Wording, wording};

/// Advice on a `finish` where the driver has selected the outermost frame, because that frame has called a runtime.
const INSIDE_A_CALL: &str = "the selected frame is the caller of the function in which the rank has stopped: `next` \
                             leaves that function; `frame 0` selects the innermost one for `finish`";

/// Begins a run, whose end answers the command.
pub(crate) async fn resume(gdb: Gdb, id: CommandId, command: Rc<Command>) {
    let asked = gdb.clone();
    // A run that has begun continues, even if its command is cancelled meanwhile.
    let result = gdb
        .finish(async move { resume_as(&asked, id, &command).await })
        .await;
    if let Err(failure) = result {
        gdb.answer(id, Err(failure));
    }
}

async fn resume_as(gdb: &Gdb, id: CommandId, command: &Command) -> Result<(), Failure> {
    let run = |kind| begin_kind(gdb, id, kind);
    match command {
        Command::Step { kind, count } => begin_step(gdb, id, *kind, *count).await,
        Command::Finish => finish(gdb, id).await,
        Command::ReverseContinue => run(RunKind::Reverse).await,
        Command::ReverseStep { kind, count } => run(RunKind::ReverseStep(*kind, *count)).await,
        Command::ContinuePast { count } => {
            super::breakpoints::pass_by(gdb, count.saturating_sub(1)).await?;
            run(RunKind::Continue).await
        }
        Command::Until { location } => {
            step_frame::note_until(gdb, location.is_none()).await;
            let line = format!("until {}", location.as_deref().unwrap_or_default());
            begin_to(gdb, id, RunKind::To, line.trim_end()).await
        }
        Command::Advance { location } => {
            step_frame::note_until(gdb, false).await;
            begin_to(gdb, id, RunKind::To, &format!("advance {location}")).await
        }
        Command::Jump { location } => {
            begin_to(gdb, id, RunKind::Continue, &format!("jump {location}")).await
        }
        Command::ContinueSignal { signal } => {
            begin_to(gdb, id, RunKind::Continue, &format!("signal {signal}")).await
        }
        _ => run(RunKind::Continue).await,
    }
}

/// Begins a `finish` of the selected frame. After a stop inside a runtime that is the frame that has called it.
async fn finish(gdb: &Gdb, id: CommandId) -> Result<(), Failure> {
    let level = step_frame::selected(gdb).await;
    step_frame::note(gdb, level, 1).await;
    let shown = gdb.get().shown_level;
    let Err(failure) = begin_kind(gdb, id, RunKind::Finish).await else {
        return Ok(());
    };
    let is_outermost = wording(&failure.text) == Some(Wording::Outermost);
    if shown > 0 && is_outermost && step_frame::level(gdb).await == shown {
        return Err(failure.with_hint(INSIDE_A_CALL));
    }
    Err(failure)
}

async fn begin_kind(gdb: &Gdb, id: CommandId, kind: RunKind) -> Result<(), Failure> {
    begin(gdb, Some(id), kind, &kind.line()).await
}

/// Begins a run by gdb's command line, in the background as with MI.
async fn begin_to(gdb: &Gdb, id: CommandId, kind: RunKind, line: &str) -> Result<(), Failure> {
    // Without the ampersand gdb reads no input until the program stops, and could not be interrupted.
    begin(gdb, Some(id), kind, &background(line)).await
}

fn background(line: &str) -> String {
    console_line(&format!("{line} &"))
}

/// Begins a step. gdb steps in the innermost frame. If that is a runtime's, the user has seen the line that called the
/// runtime, and wants to step from that line.
async fn begin_step(gdb: &Gdb, id: CommandId, step: StepKind, count: u32) -> Result<(), Failure> {
    let shown = gdb.get().shown_level;
    let count = step_frame::note(gdb, shown, count).await;
    let mut kind = RunKind::Step(step, count);
    if shown > 0 && matches!(step, StepKind::Into | StepKind::Over) {
        gdb.mi(format!("-stack-select-frame {}", shown - 1)).await?;
        kind = RunKind::StepOut(step, count);
    }
    begin(gdb, Some(id), kind, &kind.line()).await
}

/// Sends the MI command that begins a run, and opens the run; see [`begin_now`].
pub(crate) async fn begin(
    gdb: &Gdb,
    id: Option<CommandId>,
    kind: RunKind,
    line: &str,
) -> Result<(), Failure> {
    let (asked, line) = (gdb.clone(), line.to_owned());
    gdb.finish(async move {
        let safe = match line == FINISH {
            true => return_values::leaving(&asked).await,
            false => None,
        };
        begin_now(&asked, id, kind, safe.as_deref().unwrap_or(&line)).await
    })
    .await
}

/// Fails if the task has ended or been detached while the caller waited.
fn refuse_gone(gdb: &Gdb) -> Result<(), Failure> {
    let state = gdb.get();
    match state.is_leaving {
        true => Err(Failure::new(
            FailureCode::NotRunning,
            "the process is being detached",
        )),
        false => state.why_not_live().map_or(Ok(()), Err),
    }
}

/// Begins a run. The run is opened before gdb's answer, so that a cancel finds it.
async fn begin_now(
    gdb: &Gdb,
    id: Option<CommandId>,
    kind: RunKind,
    line: &str,
) -> Result<(), Failure> {
    let ends_by_itself = matches!(
        kind,
        RunKind::Step(..) | RunKind::StepOut(..) | RunKind::Finish | RunKind::To
    );
    if ends_by_itself {
        super::world_rank::forget(gdb);
    }
    refuse_gone(gdb)?;
    let alone = !line.starts_with("-exec-continue");
    let others = match gdb.edit().origin.scope_mut() {
        Some(scope) if alone => scope.let_others_run(),
        _ => Vec::new(),
    };
    for other in others {
        // The result is reported by the threads' stops, not by these answers.
        gdb.post(other);
    }
    {
        let mut state = gdb.edit();
        if state.origin.is_attached() && !state.origin.is_read_only_process() {
            state.actions.push_back(Action::TieProcess);
        }
    }
    // gdb itself can need long for a step deep in a recursion, or for the start of a large library.
    let wait = gdb.get().config.symbols_wait;
    let answer = gdb.send_within(line, wait);
    let token = answer.token();
    let was_stopped = gdb.get().activity.is_stopped();
    let again = match kind {
        RunKind::To => Rc::from(line),
        kind => Rc::from(kind.line()),
    };
    let shown = open(
        gdb,
        OpenRun {
            id,
            kind,
            token,
            again,
        },
    );
    if let Err(failure) = answer.await {
        let stop_others = match gdb.edit().origin.scope_mut() {
            Some(scope) if alone => Some(scope.did_not_step()),
            _ => None,
        };
        if stop_others == Some(true) {
            gdb.post("-exec-interrupt");
        }
        let begun = stop_others.is_none() && gdb.get().activity.is_executing() && !gdb.is_held();
        let mut state = gdb.edit();
        let open = state.activity.run().is_some_and(|run| run.token == token);
        if open && !begun {
            state.activity.take_run();
            if was_stopped {
                state.shown_level = shown;
            }
            if was_stopped && state.activity.is_running() {
                state.set_task(TaskState::Stopped);
            }
            return Err(failure);
        }
    }
    super::uninserted_breakpoints::when_done(gdb);
    Ok(())
}

/// Opens a run, and returns the level of the frame that the stop before it has shown.
fn open(gdb: &Gdb, run: OpenRun) -> u32 {
    let mut state = gdb.edit();
    state.activity.open_run(run);
    std::mem::take(&mut state.shown_level)
}

/// Resumes the program as before, as if it had not stopped.
pub(crate) async fn go_on(gdb: &Gdb) -> Result<(), Failure> {
    let run = gdb.get().activity.run().cloned();
    let kind = run.as_ref().map_or(RunKind::Continue, |run| run.kind);
    let again = run
        .as_ref()
        .map_or_else(|| Rc::from(kind.line()), |run| run.again.clone());
    let id = run.and_then(|run| run.id);
    resume_by(gdb, id, kind, &again).await
}

/// Continues an `until`, after the program has left a call.
pub(super) async fn until_again(gdb: &Gdb, id: Option<CommandId>) -> Result<(), Failure> {
    resume_by(gdb, id, RunKind::To, &background("until")).await
}

pub(crate) async fn resume_silently(
    gdb: &Gdb,
    id: Option<CommandId>,
    kind: RunKind,
) -> Result<(), Failure> {
    resume_by(gdb, id, kind, &kind.line()).await
}

async fn resume_by(
    gdb: &Gdb,
    id: Option<CommandId>,
    kind: RunKind,
    line: &str,
) -> Result<(), Failure> {
    match begin(gdb, id, kind, line).await {
        Ok(()) => Ok(()),
        Err(failure) => {
            // The run stays open, so that the stop which is now reported answers it.
            let token = 0;
            let again = Rc::from(line);
            gdb.edit().activity.open_run(OpenRun {
                id,
                kind,
                token,
                again,
            });
            Err(failure)
        }
    }
}
