//! Letting the program run: continue, step, finish.

use sdm_core::CommandId;
use sdm_debug::command::StepKind;
use sdm_debug::{Failure, TaskState};

use super::core::Gdb;

/// A run that was begun and has not ended. A task has at most one.
#[derive(Clone, Debug)]
pub(super) struct OpenRun {
    /// Who waits for its end; `None` where nobody does any more.
    pub(super) id: Option<CommandId>,
    pub(super) kind: RunKind,
    /// The number of the MI command that began it: gdb can say `^running` and then `^error`.
    pub(super) token: u64,
}

/// What began a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunKind {
    /// A start that is to be held at `main`.
    StartToMain,
    /// A start that is to be held at the entry point, and has not yet reached even the first
    /// instruction of the dynamic linker.
    StartToFirst,
    /// The same, on its way from there to the entry point.
    StartToEntry,
    /// A start that is held nowhere.
    StartFreely,
    Continue,
    Step(StepKind, u32),
    /// A step of source lines from inside a runtime: first out of it, to the line that the person
    /// was shown.
    StepOut(StepKind, u32),
    Finish,
}

/// What was done to stop the program, and has not been seen to stop it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interrupts {
    /// How many commands wait for the program to stop.
    pub(super) asked: u32,
    /// A SIGINT is on its way to the program.
    pub(super) int_sent: bool,
    /// A SIGSTOP is on its way to the program.
    pub(super) stop_sent: bool,
}

impl RunKind {
    /// The MI command that lets the program run so; again where it was stopped for nothing.
    pub(super) fn line(self) -> String {
        let (name, count) = match self {
            Self::StartToMain
            | Self::StartToFirst
            | Self::StartToEntry
            | Self::StartFreely
            | Self::Continue => return "-exec-continue".to_owned(),
            Self::Finish | Self::StepOut(..) => return "-exec-finish".to_owned(),
            Self::Step(kind, count) => {
                let name = match kind {
                    StepKind::Into => "-exec-step",
                    StepKind::Over => "-exec-next",
                    StepKind::Instruction => "-exec-step-instruction",
                    StepKind::InstructionOver => "-exec-next-instruction",
                };
                (name, count)
            }
        };
        if count > 1 {
            format!("{name} {count}")
        } else {
            name.to_owned()
        }
    }
}

/// Begins a run; what ends it answers the command.
pub(super) async fn resume(gdb: Gdb, id: CommandId, kind: RunKind) {
    let result = match kind {
        RunKind::Step(step, count) => begin_step(&gdb, id, step, count).await,
        kind => begin(&gdb, Some(id), kind, &kind.line()).await,
    };
    if let Err(failure) = result {
        gdb.answer(id, Err(failure));
    }
}

/// gdb steps in the innermost frame; where that is a runtime's, the person was shown the line that
/// called it and means that one.
async fn begin_step(gdb: &Gdb, id: CommandId, step: StepKind, count: u32) -> Result<(), Failure> {
    let shown = gdb.get().shown_level;
    let mut kind = RunKind::Step(step, count);
    if shown > 0 && matches!(step, StepKind::Into | StepKind::Over) {
        gdb.mi(format!("-stack-select-frame {}", shown - 1)).await?;
        kind = RunKind::StepOut(step, count);
    }
    begin(gdb, Some(id), kind, &kind.line()).await
}

/// Sends the MI command that begins a run, and opens the run when gdb says that it runs.
///
/// The run is opened before gdb has answered: a cancel meanwhile must find it.
pub(super) async fn begin(
    gdb: &Gdb,
    id: Option<CommandId>,
    kind: RunKind,
    line: &str,
) -> Result<(), Failure> {
    // The task may have ended while the caller waited for something else.
    let gone = gdb.get().why_not_live();
    if let Some(failure) = gone {
        return Err(failure);
    }
    // A step deep into a recursion or a big library's start can take gdb itself long.
    let wait = gdb.get().config.symbols_wait;
    let answer = gdb.send_within(line, wait);
    let token = answer.token();
    let before = gdb.get().task.clone();
    {
        let mut state = gdb.edit();
        state.run = Some(OpenRun { id, kind, token });
        state.shown_level = 0;
        if state.task == TaskState::Stopped {
            state.set_task(TaskState::Running);
        }
    }
    let result = answer.await;
    if let Err(failure) = result {
        let begun = gdb.get().executing && !gdb.is_held();
        let mut state = gdb.edit();
        let open = state.run.as_ref().is_some_and(|run| run.token == token);
        if open && !begun {
            state.run = None;
            if state.task == TaskState::Running && before == TaskState::Stopped {
                state.set_task(TaskState::Stopped);
            }
            return Err(failure);
        }
    }
    Ok(())
}
