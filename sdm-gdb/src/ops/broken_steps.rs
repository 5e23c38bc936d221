//! Resumes a step or a `finish` that a breakpoint has broken off at which the task does not stop.
//!
//! gdb forgets the frame in which it has begun: in the function with the breakpoint it would make another step.

use sdm_debug::Failure;
use sdm_debug::command::StepKind;
use sdm_debug::reply::StopReason;

use super::run::{go_on, resume_silently};
use super::stack::thread_select;
use super::step_frame::{frame, thread};
use crate::gdb::Gdb;
use crate::state::activity::{Began, RunKind};

/// Most frames between a breakpoint and the frame of the step.
const FRAMES_MAX: u32 = 64;

/// Resumes the program as before; returns the reason of the stop if the step has ended here.
pub(super) async fn go_on_or_end(gdb: &Gdb) -> Option<StopReason> {
    let kind = gdb.get().activity.run_kind();
    let began = gdb.get().breakpoints.began.clone();
    let way = match (kind, began) {
        (Some(RunKind::Step(step, _) | RunKind::StepOut(step, _)), Some(began)) => {
            way(gdb, &began, Some(step)).await
        }
        (Some(RunKind::Finish), Some(began)) => way(gdb, &began, None).await,
        _ => Way::Again,
    };
    let resumed = match (way, kind) {
        (Way::Ended, _) => return Some(StopReason::StepEnd),
        (Way::Out(level), Some(kind)) => out(gdb, level, kind).await,
        _ => go_on(gdb).await,
    };
    resumed.err().map(|failure| StopReason::Other(failure.text))
}

/// The way on of a run that was broken off.
enum Way {
    Again,
    /// It has come to where it ends.
    Ended,
    /// First out of this number of frames.
    Out(u32),
}

async fn way(gdb: &Gdb, began: &Began, step: Option<StepKind>) -> Way {
    let here = thread(gdb).await;
    if here.as_ref() != Some(&began.thread) {
        if let Ok(number) = began.thread.parse() {
            // If this fails, the step goes on in the thread that has met the breakpoint.
            let _ = gdb.mi(thread_select(gdb, number)).await;
        }
        return Way::Again;
    }
    let by_instruction = matches!(
        step,
        Some(StepKind::Instruction | StepKind::InstructionOver)
    );
    for level in 0..FRAMES_MAX {
        let Some(frame) = frame(gdb, level).await else {
            return Way::Again;
        };
        if frame.address < began.frame.address {
            continue;
        }
        let is_same = frame.address == began.frame.address;
        return match (level, step) {
            (0, None) => Way::Again,
            (0, Some(_)) if is_same && frame.line == began.frame.line && !by_instruction => {
                Way::Again
            }
            (0, Some(_)) => Way::Ended,
            (_, Some(StepKind::Instruction)) => Way::Ended,
            (1, Some(StepKind::Into)) => Way::Ended,
            _ if is_same => Way::Out(level),
            _ => Way::Again,
        };
    }
    Way::Again
}

/// Goes out of the frames above that of the step, and then goes on with it.
async fn out(gdb: &Gdb, level: u32, kind: RunKind) -> Result<(), Failure> {
    let (level, kind) = match kind {
        RunKind::Step(step, count) | RunKind::StepOut(step, count) => {
            (level - 1, RunKind::StepOut(step, count))
        }
        kind => (level, kind),
    };
    gdb.mi(format!("-stack-select-frame {level}")).await?;
    let id = gdb.get().activity.run_id();
    resume_silently(gdb, id, kind).await
}
