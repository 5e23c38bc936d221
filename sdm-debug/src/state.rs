//! The states of a task and the moves between them.

use serde::{Deserialize, Serialize};

/// What a task is doing. What it was stopped by is in the answer that said so.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum TaskState {
    /// Not started yet.
    #[default]
    Absent,
    /// gdb is being started, or the program is on its way to `main`.
    Starting,
    /// It stands still.
    Stopped,
    /// It runs.
    Running,
    /// It ended by itself with this exit code.
    Exited(i32),
    /// This signal ended it.
    Signalled(String),
    /// It was left running.
    Detached,
    /// Its gdb is gone.
    GdbDead,
}

impl TaskState {
    /// The word for it in `ranks` and `--json`.
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

    /// True where a process stands behind the task and gdb holds it.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Starting | Self::Stopped | Self::Running)
    }

    /// True where the table of moves has `self -> next`.
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
            // `run` again.
            (S::Exited(_) | S::Signalled(_) | S::Detached | S::GdbDead, S::Starting) => true,
            _ => false,
        }
    }
}
