//! Letting the program run: continue, step, finish.

use std::rc::Rc;

use sdm_core::CommandId;
use sdm_debug::command::StepKind;
use sdm_debug::{Command, Failure, TaskState};

use super::Action;
use super::core::Gdb;
use super::values::console_line;

/// A run that was begun and has not ended. A task has at most one.
#[derive(Clone, Debug)]
pub(super) struct OpenRun {
    /// Who waits for its end; `None` where nobody does any more.
    pub(super) id: Option<CommandId>,
    pub(super) kind: RunKind,
    /// The number of the MI command that began it: gdb can say `^running` and then `^error`.
    pub(super) token: u64,
    /// The MI command with which it goes on after a stop that was nobody's.
    pub(super) again: Rc<str>,
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
    /// A start by a wrapper, on its way to the program.
    StartToProgram,
    /// A start that is held nowhere.
    StartFreely,
    Continue,
    Step(StepKind, u32),
    /// A step of source lines from inside a runtime: first out of it, to the line that the person
    /// was shown.
    StepOut(StepKind, u32),
    Finish,
    /// To a location: `until`, `advance`.
    To,
    /// Backward.
    Reverse,
    ReverseStep(StepKind, u32),
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
    /// gdb may have been interrupted: where it calls a function it passes the SIGINT on to the program.
    pub(super) broke_off: bool,
}

impl RunKind {
    /// The MI command that lets the program run so; again where it was stopped for nothing.
    pub(super) fn line(self) -> String {
        let (name, count) = match self {
            Self::StartToMain
            | Self::StartToFirst
            | Self::StartToEntry
            | Self::StartToProgram
            | Self::StartFreely
            | Self::To
            | Self::Continue => return "-exec-continue".to_owned(),
            Self::Reverse => return "-exec-continue --reverse".to_owned(),
            Self::Finish | Self::StepOut(..) => return "-exec-finish".to_owned(),
            Self::Step(kind, count) | Self::ReverseStep(kind, count) => {
                let name = match kind {
                    StepKind::Into => "-exec-step",
                    StepKind::Over => "-exec-next",
                    StepKind::Instruction => "-exec-step-instruction",
                    StepKind::InstructionOver => "-exec-next-instruction",
                };
                (name, count)
            }
        };
        let mut line = name.to_owned();
        if matches!(self, Self::ReverseStep(..)) {
            line.push_str(" --reverse");
        }
        if count > 1 {
            line.push_str(&format!(" {count}"));
        }
        line
    }
}

/// Begins a run; what ends it answers the command.
pub(super) async fn resume(gdb: Gdb, id: CommandId, command: Command) {
    let result = resume_as(&gdb, id, command).await;
    if let Err(failure) = result {
        gdb.answer(id, Err(failure));
    }
}

async fn resume_as(gdb: &Gdb, id: CommandId, command: Command) -> Result<(), Failure> {
    let run = |kind| begin_kind(gdb, id, kind);
    match command {
        Command::Step { kind, count } => begin_step(gdb, id, kind, count).await,
        Command::Finish => run(RunKind::Finish).await,
        Command::ReverseContinue => run(RunKind::Reverse).await,
        Command::ReverseStep { kind, count } => run(RunKind::ReverseStep(kind, count)).await,
        Command::ContinuePast { count } => {
            super::breakpoints::pass_by(gdb, count.saturating_sub(1)).await?;
            run(RunKind::Continue).await
        }
        Command::Until { location } => {
            let line = format!("until {}", location.unwrap_or_default());
            begin_to(gdb, id, RunKind::To, line.trim_end()).await
        }
        Command::Advance { location } => {
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

async fn begin_kind(gdb: &Gdb, id: CommandId, kind: RunKind) -> Result<(), Failure> {
    begin(gdb, Some(id), kind, &kind.line()).await
}

/// Begins a run by gdb's command line, in the background as MI does.
async fn begin_to(gdb: &Gdb, id: CommandId, kind: RunKind, line: &str) -> Result<(), Failure> {
    begin(gdb, Some(id), kind, &console_line(line)).await
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
    let alone = !line.starts_with("-exec-continue");
    let others = match &mut gdb.edit().scope {
        Some(scope) if alone => scope.let_others_run(),
        _ => Vec::new(),
    };
    for other in others {
        // Their stops say how they are, not these answers.
        drop(gdb.send(other));
    }
    // A step deep into a recursion or a big library's start can take gdb itself long.
    let wait = gdb.get().config.symbols_wait;
    let answer = gdb.send_within(line, wait);
    let token = answer.token();
    let before = gdb.get().task.clone();
    {
        let mut state = gdb.edit();
        let again = match kind {
            RunKind::To => Rc::from(line),
            kind => Rc::from(kind.line()),
        };
        state.run = Some(OpenRun {
            id,
            kind,
            token,
            again,
        });
        state.shown_level = 0;
        if state.task == TaskState::Stopped {
            state.set_task(TaskState::Running);
        }
    }
    let result = answer.await;
    if let Err(failure) = result {
        let stop_others = match &mut gdb.edit().scope {
            Some(scope) if alone => Some(scope.did_not_step()),
            _ => None,
        };
        if stop_others == Some(true) {
            drop(gdb.send("-exec-interrupt"));
        }
        let begun = stop_others.is_none() && gdb.get().executing && !gdb.is_held();
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
    let mut state = gdb.edit();
    if state.read_only && !state.core_file {
        // gdb wants to hear of libraries; killed now it would leave that to the process.
        state.actions.push_back(Action::ClearCode);
    }
    Ok(())
}
