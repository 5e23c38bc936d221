//! The activity of the task, and its open run.
//!
//! The types exclude impossible states: a stopped task has no open run, and a task that is over executes nothing.

use std::rc::Rc;

use sdm_core::CommandId;
use sdm_debug::TaskState;
use sdm_debug::command::StepKind;

/// The activity of the task.
#[derive(Debug, Default)]
pub(crate) enum Activity {
    /// No start or attach has begun.
    #[default]
    Absent,
    /// A start or an attach is under way; the process may run several times during it.
    Starting(Motion),
    /// The process is stopped, and the front-end knows where.
    Stopped,
    /// The front-end considers the process running.
    Running(Motion),
    /// gdb holds no process any more.
    Over(Over),
}

/// Whether the process of a starting or running task is executing, and the open run, if there is one.
#[derive(Debug, Default)]
pub(crate) enum Motion {
    /// The process is not running and no run is open: its start is being prepared, or an unrequested stop is being
    /// examined.
    #[default]
    Still,
    /// A run is open but the process is not running: it has not begun, or its stop is being examined.
    Held(OpenRun),
    /// The process is running: for a run, or by a console line of the user.
    Executing(Option<OpenRun>),
}

/// The way in which the task ended.
#[derive(Debug)]
pub(crate) enum Over {
    /// The program has exited with this code.
    Exited(i32),
    /// This signal ended the program.
    Signalled(String),
    /// gdb has detached from the process.
    Detached,
    /// gdb has ended unexpectedly.
    GdbDead,
}

/// A run that has begun and not ended. A task has at most one.
#[derive(Clone, Debug)]
pub(crate) struct OpenRun {
    /// The command that the end of the run answers; `None` if it was cancelled.
    pub(crate) id: Option<CommandId>,
    /// The kind of the run.
    pub(crate) kind: RunKind,
    /// Token of the MI command that began the run, 0 for none: gdb may answer `^running` and later `^error`.
    pub(crate) token: u64,
    /// The MI command that resumes the program after an unreported stop.
    pub(crate) again: Rc<str>,
}

/// The place at which a step, a `finish` or an `until` began, which ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    /// gdb's number of the thread.
    pub(crate) thread: String,
    pub(crate) frame: StackFrame,
    /// Number of steps that are still to be made after this one. If gdb is interrupted, it does not report how many
    /// steps it has made.
    pub(crate) left: u32,
    /// True for an `until` without a location.
    pub(crate) is_until: bool,
}

/// A frame by its address on the stack, and the line in which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackFrame {
    pub(crate) address: u64,
    pub(crate) line: String,
    /// True for an inlined call, whose frame has the address of the caller's frame.
    pub(crate) is_inline: bool,
}

/// The kind of command that began a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// A start that stops at `main`.
    StartToMain,
    /// A start up to the process's first instruction, mostly the dynamic linker's. It continues as `StartToEntry`, or
    /// until an exec wrapper has executed the program.
    StartToFirst,
    /// The continuation of `StartToFirst` up to the program's entry point.
    StartToEntry,
    /// A start by an exec wrapper, on its way to the program.
    StartToProgram,
    /// A start without a stop.
    StartFreely,
    /// `continue`, and other runs without an end of their own.
    Continue,
    /// A number of steps of this kind.
    Step(StepKind, u32),
    /// A step of source lines from inside a runtime: first out of it, to the line that the user has seen.
    StepOut(StepKind, u32),
    /// Until the end of the selected function.
    Finish,
    /// Until a location is reached: `until`, `advance`.
    To,
    /// Backward through the recording.
    Reverse,
    /// A number of backward steps of this kind.
    ReverseStep(StepKind, u32),
}

impl Activity {
    /// The state in the terms of the front-end.
    pub(crate) fn task(&self) -> TaskState {
        match self {
            Self::Absent => TaskState::Absent,
            Self::Starting(_) => TaskState::Starting,
            Self::Stopped => TaskState::Stopped,
            Self::Running(_) => TaskState::Running,
            Self::Over(Over::Exited(code)) => TaskState::Exited(*code),
            Self::Over(Over::Signalled(signal)) => TaskState::Signalled(signal.clone()),
            Self::Over(Over::Detached) => TaskState::Detached,
            Self::Over(Over::GdbDead) => TaskState::GdbDead,
        }
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting(_))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// True while there is a process, or will be one.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Starting(_) | Self::Stopped | Self::Running(_))
    }

    /// True while gdb reports the process as running.
    pub(crate) fn is_executing(&self) -> bool {
        matches!(self.motion(), Some(Motion::Executing(_)))
    }

    /// The open run; `None` if there is none.
    pub(crate) fn run(&self) -> Option<&OpenRun> {
        match self.motion()? {
            Motion::Held(run) | Motion::Executing(Some(run)) => Some(run),
            Motion::Still | Motion::Executing(None) => None,
        }
    }

    /// The kind of the open run; `None` if no run is open.
    pub(crate) fn run_kind(&self) -> Option<RunKind> {
        self.run().map(|run| run.kind)
    }

    /// The command that the end of the open run answers; `None` if no run is open, or if the command was cancelled.
    pub(crate) fn run_id(&self) -> Option<CommandId> {
        self.run()?.id
    }

    /// Handles a cancelled command: its run continues without it.
    pub(crate) fn forget_command(&mut self, id: CommandId) {
        if let Some(Motion::Held(run) | Motion::Executing(Some(run))) = self.motion_mut()
            && run.id == Some(id)
        {
            run.id = None;
        }
    }

    /// Opens a run, which replaces an open one; a stopped task becomes running.
    pub(crate) fn open_run(&mut self, run: OpenRun) {
        if self.is_stopped() {
            *self = Self::Running(Motion::Still);
        }
        if let Some(motion) = self.motion_mut() {
            *motion = match motion {
                Motion::Executing(_) => Motion::Executing(Some(run)),
                Motion::Still | Motion::Held(_) => Motion::Held(run),
            };
        }
    }

    /// Closes the open run, which has ended or never began, and returns it; `None` if no run was open.
    pub(crate) fn take_run(&mut self) -> Option<OpenRun> {
        let motion = self.motion_mut()?;
        match std::mem::take(motion) {
            Motion::Still => None,
            Motion::Held(run) => Some(run),
            Motion::Executing(run) => {
                *motion = Motion::Executing(None);
                run
            }
        }
    }

    /// Handles gdb's report that the process runs. If the task was stopped, a console line of the user has resumed
    /// it.
    pub(crate) fn begin_executing(&mut self) {
        if self.is_stopped() {
            *self = Self::Running(Motion::Still);
        }
        if let Some(motion) = self.motion_mut() {
            *motion = match std::mem::take(motion) {
                Motion::Still => Motion::Executing(None),
                Motion::Held(run) => Motion::Executing(Some(run)),
                executing => executing,
            };
        }
    }

    /// Handles gdb's report that the process has stopped.
    pub(crate) fn end_executing(&mut self) {
        if let Some(motion) = self.motion_mut() {
            *motion = match std::mem::take(motion) {
                Motion::Executing(Some(run)) => Motion::Held(run),
                Motion::Executing(None) => Motion::Still,
                held => held,
            };
        }
    }

    /// Moves the task to another state. Take the open run out first if the state ends it.
    pub(crate) fn set_task(&mut self, next: TaskState) {
        let now = self.task();
        if now == next {
            return;
        }
        assert!(
            now.may_become(&next),
            "no task goes from {now:?} to {next:?}"
        );
        let motion = self.motion_mut().map(std::mem::take).unwrap_or_default();
        *self = match next {
            TaskState::Absent => Self::Absent,
            TaskState::Starting => Self::Starting(motion),
            TaskState::Stopped => Self::Stopped,
            TaskState::Running => Self::Running(motion),
            TaskState::Exited(code) => Self::Over(Over::Exited(code)),
            TaskState::Signalled(signal) => Self::Over(Over::Signalled(signal)),
            TaskState::Detached => Self::Over(Over::Detached),
            TaskState::GdbDead => Self::Over(Over::GdbDead),
        };
    }

    fn motion(&self) -> Option<&Motion> {
        match self {
            Self::Starting(motion) | Self::Running(motion) => Some(motion),
            Self::Absent | Self::Stopped | Self::Over(_) => None,
        }
    }

    fn motion_mut(&mut self) -> Option<&mut Motion> {
        match self {
            Self::Starting(motion) | Self::Running(motion) => Some(motion),
            Self::Absent | Self::Stopped | Self::Over(_) => None,
        }
    }
}

/// The MI command that runs to the caller of the selected frame.
pub(crate) const FINISH: &str = "-exec-finish";

impl RunKind {
    /// The MI command that begins a run of this kind, and that resumes it after an unneeded stop.
    pub(crate) fn line(self) -> String {
        let (name, count) = match self {
            Self::StartToMain
            | Self::StartToFirst
            | Self::StartToEntry
            | Self::StartToProgram
            | Self::StartFreely
            | Self::To
            | Self::Continue => return "-exec-continue".to_owned(),
            Self::Reverse => return "-exec-continue --reverse".to_owned(),
            Self::Finish | Self::StepOut(..) => return FINISH.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u64) -> OpenRun {
        OpenRun {
            id: Some(CommandId(id)),
            kind: RunKind::Continue,
            token: id,
            again: Rc::from("-exec-continue"),
        }
    }

    #[test]
    fn run_stays_open_from_command_to_end() {
        let mut activity = Activity::Stopped;
        activity.open_run(run(1));
        assert!(activity.is_running() && !activity.is_executing());
        activity.begin_executing();
        assert!(activity.is_executing());
        activity.forget_command(CommandId(2));
        assert_eq!(activity.run_id(), Some(CommandId(1)));
        activity.end_executing();
        assert!(activity.is_running() && !activity.is_executing());
        let ended = activity.take_run().and_then(|run| run.id);
        assert_eq!(ended, Some(CommandId(1)));
        activity.set_task(TaskState::Stopped);
        assert!(activity.is_stopped() && activity.run().is_none());
    }

    #[test]
    fn task_resumed_without_a_command_has_no_open_run() {
        let mut activity = Activity::Stopped;
        activity.begin_executing();
        assert!(activity.is_running() && activity.is_executing());
        assert!(activity.run().is_none());
        activity.set_task(TaskState::Exited(3));
        activity.begin_executing();
        activity.open_run(run(1));
        assert_eq!(activity.task(), TaskState::Exited(3));
        assert!(!activity.is_executing() && activity.take_run().is_none());
    }
}
