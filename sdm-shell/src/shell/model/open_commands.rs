//! Commands that were sent and are not complete, with their answers so far.
use std::collections::{BTreeMap, VecDeque};

use sdm_core::CommandId;
use sdm_debug::{FailureCode, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_session::Class;
use sdm_view::item::Gathered;

use super::tasks::Row;
use sdm_view::coalesce::{Distinct, join};

/// Number of completed commands that are remembered for late answers.
const RECENT_MAX: usize = 256;

/// Whether stops that end a run are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Stops are shown as they arrive.
    #[default]
    Shown,
    /// The shell lets tasks run and interrupts them for a sample. Such stops are not shown, others are.
    Looked,
    /// Stops are not shown, because another front-end shows them.
    Hidden,
}

/// An open command.
#[derive(Debug, Default)]
pub(crate) struct OpenCommand {
    /// The answers so far.
    pub(crate) gathered: Gathered,
    /// Index of the distinct replies in `gathered`.
    replies: Distinct,
    /// Tasks that have not answered.
    pub(crate) left: IdSet,
    /// True for commands that resume tasks.
    pub(crate) run: bool,
    /// Tasks that a task of this command has spawned since the command was sent. The command waits for them, too.
    pub(crate) joined: IdSet,
    /// For a run: the tasks that have stopped or ended.
    pub(crate) stopped: IdSet,
    /// The tasks' states before they were let run.
    pub(crate) before: Vec<Row>,
    /// True if no caller waits for this command. When it is complete, its answers are shown if `run_end` is `Shown` or
    /// the command failed on a task.
    pub(crate) unattended: bool,
    /// Whether stops that end the command's run are shown.
    pub(crate) run_end: RunEnd,
    /// True once each task has answered or is known to be missing or lost.
    pub(crate) complete: bool,
}

impl OpenCommand {
    /// A command without answers.
    pub(crate) fn new(command: &str, to: &IdSet) -> Self {
        Self {
            gathered: Gathered {
                command: command.to_owned(),
                to: to.clone(),
                ..Gathered::default()
            },
            left: to.clone(),
            ..Self::default()
        }
    }

    /// Adds an answer. Replies that end a run are handled by the caller.
    pub(crate) fn take(&mut self, class: Class) {
        let tasks = &class.tasks;
        self.left.subtract(tasks);
        for (missing, _) in &mut self.gathered.missing {
            missing.subtract(tasks);
        }
        self.gathered.missing.retain(|(set, _)| !set.is_empty());
        self.gathered.lost.subtract(tasks);
        self.gathered.add(class, &mut self.replies);
    }

    /// Adds tasks that did not answer.
    pub(crate) fn miss(&mut self, missing: Vec<(IdSet, String)>, lost: &IdSet) {
        for (tasks, why) in missing {
            self.left.subtract(&tasks);
            join(&mut self.gathered.missing, &tasks, why);
        }
        self.left.subtract(lost);
        self.gathered.lost.union_with(lost);
    }

    /// Marks the tasks that are still open as missing.
    pub(crate) fn give_up(&mut self, why: &str) {
        let left = std::mem::take(&mut self.left);
        if !left.is_empty() {
            join(&mut self.gathered.missing, &left, why.to_owned());
        }
    }

    /// Notes that tasks have ended while a command was to end them. The end is reported separately, so the
    /// command's failure on them is not shown.
    pub(crate) fn have_ended(&mut self, tasks: &IdSet) {
        let gathered = &mut self.gathered;
        let failed = gathered.failed.iter_mut().map(|(set, _)| set);
        let missing = gathered.missing.iter_mut().map(|(set, _)| set);
        failed.chain(missing).for_each(|set| set.subtract(tasks));
        gathered.failed.retain(|(set, _)| !set.is_empty());
        gathered.missing.retain(|(set, _)| !set.is_empty());
        gathered.lost.subtract(tasks);
        self.stopped.union_with(tasks);
    }

    /// True if the command failed: on some task, or because no task could carry it out.
    ///
    /// Tasks that run or have ended do not count as failures if other tasks could carry out the command.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed_without(&IdSet::new())
    }

    /// True if the command failed in the sense of `has_failed`, but the loss of `these` tasks is no failure. A
    /// command that was sent to no other task has not failed only because no task could carry it out.
    pub(crate) fn has_failed_without(&self, these: &IdSet) -> bool {
        let gathered = &self.gathered;
        let state = |code| {
            matches!(
                code,
                FailureCode::Running | FailureCode::AlreadyRunning | FailureCode::NotRunning
            )
        };
        let mut failed = gathered.failed.iter();
        failed.any(|(_, failure)| !state(failure.code))
            || !gathered.missing.is_empty()
            || !gathered.lost.is_subset(these)
            || (self.done().is_empty() && (these.is_empty() || !gathered.to.is_subset(these)))
    }

    /// Tasks that have carried out the command.
    pub(crate) fn done(&self) -> IdSet {
        self.gathered.done().union(&self.stopped)
    }

    /// Tasks that answered `Done`.
    pub(crate) fn plainly_done(&self) -> IdSet {
        let done = self.gathered.ok.iter();
        IdSet::union_all(
            done.filter(|(_, reply)| *reply == Reply::Done)
                .map(|(tasks, _)| tasks),
        )
    }
}

/// All open commands, and the names of some completed ones.
#[derive(Debug, Default)]
pub(crate) struct OpenCommands {
    open: BTreeMap<CommandId, OpenCommand>,
    recent: VecDeque<(CommandId, String)>,
}

impl OpenCommands {
    pub(crate) fn insert(&mut self, id: CommandId, open: OpenCommand) {
        self.open.insert(id, open);
    }

    pub(crate) fn find(&mut self, id: CommandId) -> Option<&mut OpenCommand> {
        self.open.get_mut(&id)
    }

    pub(crate) fn get(&self, id: CommandId) -> Option<&OpenCommand> {
        self.open.get(&id)
    }

    /// Removes a command that is complete or given up, and returns it. None if it is not open.
    pub(crate) fn remove(&mut self, id: CommandId) -> Option<OpenCommand> {
        let open = self.open.remove(&id)?;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        let name = (id, open.gathered.command.clone());
        self.recent.push_back(name);
        Some(open)
    }

    /// Adds tasks that task `by` has spawned to the open run commands that include `by`.
    pub(crate) fn join(&mut self, by: u32, tasks: &IdSet) {
        let runs = self.open.values_mut().filter(|open| open.run);
        for open in runs.filter(|open| open.gathered.to.contains(TaskId(by))) {
            open.joined.union_with(tasks);
        }
    }

    /// Sets whether the stops that end the current runs are shown, unless another front-end shows them.
    pub(crate) fn set_run_end(&mut self, end: RunEnd) {
        let runs = self.open.values_mut().filter(|open| open.run);
        for open in runs.filter(|open| open.run_end != RunEnd::Hidden) {
            open.run_end = end;
        }
    }

    /// Notes that no caller waits for a command any more, so that its result is shown when it is complete.
    /// Returns false if it is complete or not open.
    pub(crate) fn leave_unattended(&mut self, id: CommandId) -> bool {
        match self.open.get_mut(&id) {
            Some(open) if !open.complete => {
                open.unattended = true;
                true
            }
            _ => false,
        }
    }

    /// The command line of a completed command. None if it is no longer remembered.
    pub(crate) fn name_of(&self, id: CommandId) -> Option<&str> {
        let mut recent = self.recent.iter();
        let (_, name) = recent.find(|(known, _)| *known == id)?;
        Some(name)
    }
}
