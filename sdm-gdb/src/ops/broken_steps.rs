//! Resumes a step, `until` or `finish` that a breakpoint has interrupted although the task does not stop there.
//!
//! After such an interruption gdb does not know the frame in which the command began. It would step in the function
//! that has the breakpoint instead.

use sdm_debug::Failure;
use sdm_debug::command::StepKind;
use sdm_debug::reply::StopReason;

use super::run::{go_on, resume_silently, until_again};
use super::stack::thread_select;
use super::step_frame::{self, frame, thread};
use crate::gdb::Gdb;
use crate::state::activity::{Began, RunKind, StackFrame};

/// Maximum number of frames between a breakpoint and the frame of the step.
const FRAMES_MAX: u32 = 64;

/// Resumes the program as before. Returns the reason of the stop if the step has ended here or the program cannot be
/// resumed; `None` if the program runs on.
pub(super) async fn go_on_or_end(gdb: &Gdb) -> Option<StopReason> {
    let kind = gdb.get().activity.run_kind();
    let began = gdb.get().breakpoints.began.clone();
    let way = match (kind, began) {
        (Some(RunKind::Step(step, _) | RunKind::StepOut(step, _)), Some(began)) => {
            way(gdb, &began, Some(step)).await
        }
        (Some(RunKind::To), Some(began)) => way(gdb, &began, Some(StepKind::Over)).await,
        (Some(RunKind::Finish), Some(began)) => way(gdb, &began, None).await,
        _ => StepAction::Again,
    };
    let resumed = match (way, kind) {
        (StepAction::Ended, Some(RunKind::To)) => return Some(StopReason::LocationReached),
        (StepAction::Ended, _) => return stepped(gdb).await,
        (StepAction::Out(level), Some(kind)) => out(gdb, level, kind).await,
        _ => go_on(gdb).await,
    };
    resumed.err().map(|failure| StopReason::Other(failure.text))
}

/// Makes the next step of a command with several steps. Returns the reason of the stop if no step is left, or if the
/// task cannot be resumed; `None` if it runs on.
pub(super) async fn stepped(gdb: &Gdb) -> Option<StopReason> {
    let kind = gdb.get().activity.run_kind();
    let left = gdb.get().breakpoints.began.as_ref().map_or(0, |it| it.left);
    match kind {
        Some(RunKind::Step(step, _) | RunKind::StepOut(step, _)) if left > 0 => {
            let count = step_frame::note(gdb, 0, left).await;
            let id = gdb.get().activity.run_id();
            let further = resume_silently(gdb, id, RunKind::Step(step, count)).await;
            further.err().map(|_| StopReason::StepEnd)
        }
        _ => Some(StopReason::StepEnd),
    }
}

/// Makes steps in the frame to which the task has returned. Returns the reason of the stop if the steps are complete,
/// or if the task cannot be resumed; `None` if it runs on.
pub(super) async fn stepped_out(gdb: &Gdb, step: StepKind, count: u32) -> Option<StopReason> {
    let id = gdb.get().activity.run_id();
    let began = gdb.get().breakpoints.began.clone();
    let here = match began.is_some() {
        true => frame(gdb, 0).await,
        false => None,
    };
    let is_until = began.as_ref().is_some_and(|it| it.is_until);
    let resumed = match began.zip(here) {
        // The call was the last of its line.
        Some((began, here)) if is_end(&began.frame, &here) => {
            return match is_until {
                true => Some(StopReason::LocationReached),
                false => stepped(gdb).await,
            };
        }
        _ if is_until => until_again(gdb, id).await,
        _ => resume_silently(gdb, id, RunKind::Step(step, count)).await,
    };
    // The program is at the line that was shown to the user, and cannot step further.
    resumed.err().map(|_| StopReason::StepEnd)
}

/// The action that completes a step that a breakpoint has interrupted.
enum StepAction {
    Again,
    /// The step has reached its end.
    Ended,
    /// This number of frames must be left first.
    Out(u32),
}

async fn way(gdb: &Gdb, began: &Began, step: Option<StepKind>) -> StepAction {
    let here = thread(gdb).await;
    if here.as_ref() != Some(&began.thread) {
        if let Ok(number) = began.thread.parse() {
            // If this fails, the step goes on in the thread that has met the breakpoint.
            let _ = gdb.mi(thread_select(gdb, number)).await;
        }
        return StepAction::Again;
    }
    let by_instruction = matches!(
        step,
        Some(StepKind::Instruction | StepKind::InstructionOver)
    );
    for level in 0..FRAMES_MAX {
        let Some(frame) = frame(gdb, level).await else {
            return StepAction::Again;
        };
        let is_same = frame.address == began.frame.address;
        let is_within = is_same && frame.is_inline && !began.frame.is_inline;
        if frame.address < began.frame.address || is_within {
            continue;
        }
        return match (level, step) {
            (0, None) => StepAction::Again,
            (0, Some(_)) if is_same && frame.line == began.frame.line && !by_instruction => {
                StepAction::Again
            }
            (0, Some(_)) => StepAction::Ended,
            (_, Some(StepKind::Instruction)) => StepAction::Ended,
            (1, Some(StepKind::Into)) => StepAction::Ended,
            _ if is_same => StepAction::Out(level),
            _ => StepAction::Again,
        };
    }
    StepAction::Again
}

fn is_end(began: &StackFrame, here: &StackFrame) -> bool {
    here.address == began.address && here.line != began.line
}

/// Leaves the frames that the step's frame has called, and then continues the step.
async fn out(gdb: &Gdb, level: u32, kind: RunKind) -> Result<(), Failure> {
    let (level, kind) = match kind {
        RunKind::Step(step, count) | RunKind::StepOut(step, count) => {
            (level - 1, RunKind::StepOut(step, count))
        }
        RunKind::To => (level - 1, RunKind::StepOut(StepKind::Over, 1)),
        kind => (level, kind),
    };
    gdb.mi(format!("-stack-select-frame {level}")).await?;
    let id = gdb.get().activity.run_id();
    resume_silently(gdb, id, kind).await
}
