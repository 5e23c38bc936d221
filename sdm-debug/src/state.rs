//! The states of a task, the transitions between them, and checks of the state that a command needs.

use serde::{Deserialize, Serialize};

use crate::outcome::{Failure, FailureCode};

/// The state of a task. The reason of a stop is in the reply or event that reported it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum TaskState {
    /// The task has not started yet.
    #[default]
    Absent,
    /// gdb is starting, or the program runs to `main`.
    Starting,
    /// The task is stopped.
    Stopped,
    /// The program runs. Most commands require a stopped task.
    Running,
    /// The program ended by itself with this exit code.
    Exited(i32),
    /// This signal ended the program.
    Signalled(String),
    /// The program was detached and runs on.
    Detached,
    /// The task's gdb is gone.
    GdbDead,
}

impl TaskState {
    /// The state's name in `ranks` and `--json`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Starting => "starting",
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Exited(_) => "exited",
            Self::Signalled(_) => "signalled",
            Self::Detached => "detached",
            Self::GdbDead => "gdb_dead",
        }
    }

    /// True if the task is started and not detached, and neither its program nor its gdb has ended.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Starting | Self::Stopped | Self::Running)
    }

    /// True if the state transition table has `self -> next`.
    #[must_use]
    pub fn may_become(&self, next: &TaskState) -> bool {
        use TaskState as S;
        match (self, next) {
            (_, S::GdbDead) => true,
            (S::Absent, S::Starting) => true,
            (S::Starting | S::Running, S::Stopped | S::Running) => true,
            (S::Stopped, S::Running | S::Stopped) => true,
            (
                S::Starting | S::Stopped | S::Running,
                S::Exited(_) | S::Signalled(_) | S::Detached | S::Absent,
            ) => true,
            // The program was started here, detached, and has ended since.
            (S::Detached, S::Exited(_) | S::Signalled(_)) => true,
            // The program is started again by `run`.
            (S::Exited(_) | S::Signalled(_) | S::Detached | S::GdbDead, S::Starting) => true,
            _ => false,
        }
    }
}

impl TaskState {
    /// Checks that the task is stopped.
    ///
    /// # Errors
    /// `running`, `not_running` or `gdb_dead`. The text is the same for all tasks in that state, so that the failures
    /// merge.
    pub fn need_stopped(&self) -> Result<(), Failure> {
        match self {
            Self::Stopped => Ok(()),
            Self::Starting => Err(Failure::new(FailureCode::Running, "still starting")),
            Self::Running => {
                Err(Failure::new(FailureCode::Running, "running").with_hint("interrupt first"))
            }
            _ => self.need_live(),
        }
    }

    /// Checks that the task has a process.
    ///
    /// # Errors
    /// `not_running` or `gdb_dead`, as [`TaskState::need_stopped`].
    pub fn need_live(&self) -> Result<(), Failure> {
        let text = match self {
            Self::Starting | Self::Stopped | Self::Running => return Ok(()),
            Self::GdbDead => {
                return Err(Failure::new(
                    FailureCode::GdbDead,
                    "the gdb of this rank has ended",
                ));
            }
            Self::Absent => "not started".to_owned(),
            Self::Exited(code) => format!("not running (exited {code})"),
            Self::Signalled(signal) => format!("not running (ended by {signal})"),
            Self::Detached => "not running (detached)".to_owned(),
        };
        Err(Failure::new(FailureCode::NotRunning, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [TaskState; 8] {
        [
            TaskState::Absent,
            TaskState::Starting,
            TaskState::Stopped,
            TaskState::Running,
            TaskState::Exited(3),
            TaskState::Signalled("SIGSEGV".to_owned()),
            TaskState::Detached,
            TaskState::GdbDead,
        ]
    }

    #[test]
    fn state_transitions_match_the_table() {
        // One row per state in the order above: 1 if it may become the state of the column.
        let table = [
            "01000001", "10111111", "10111111", "10111111", "01000001", "01000001", "01001101",
            "01000001",
        ];
        for (from, row) in all().iter().zip(table) {
            for (to, cell) in all().iter().zip(row.chars()) {
                assert_eq!(from.may_become(to), cell == '1', "{from:?} -> {to:?}");
            }
        }
    }

    #[test]
    fn commands_are_allowed_or_refused_by_task_state() {
        let told = all().map(|state| match state.need_stopped() {
            Ok(()) => "ok".to_owned(),
            Err(failure) => format!("{}: {failure}", failure.code.name()),
        });
        let expect = [
            "not_running: not started",
            "running: still starting",
            "ok",
            "running: running (interrupt first)",
            "not_running: not running (exited 3)",
            "not_running: not running (ended by SIGSEGV)",
            "not_running: not running (detached)",
            "gdb_dead: the gdb of this rank has ended",
        ];
        assert_eq!(told, expect);
        for state in all() {
            assert_eq!(state.need_live().is_ok(), state.is_live(), "{state:?}");
        }
    }
}
