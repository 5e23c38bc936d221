//! The condition that a command waits for, whether it holds, and the status text meanwhile.
use std::time::Duration;

use sdm_core::CommandId;
use sdm_debug::event::Phase;
use sdm_idset::IdSet;
use sdm_idset::set_text;

use super::Model;
use super::job::Launcher;
use super::notices::Patience;
use super::open_commands::RunEnd;

/// The slowest tasks are named after this time.
const SLOWEST_AFTER: Duration = Duration::from_secs(10);

/// The condition that a command waits for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// A query is answered.
    Answered(CommandId),
    /// A completion query is answered. No status line is shown while it is awaited.
    Completed(CommandId),
    /// Tasks are detached. An interrupt ends only the wait, not the command.
    Left(CommandId),
    /// Every resumed task has stopped or ended.
    Run(Vec<CommandId>),
    /// Every task that was let run has stopped or ended, or one has crashed.
    RunOrCrash(Vec<CommandId>),
    /// The tasks are held at `main`.
    Held(Vec<CommandId>),
    /// The programs of all tasks run; they need not have reached `main`.
    Started(Vec<CommandId>),
    /// None of these tasks runs. The second field tells whether stops by a user's interrupt are shown.
    Still(IdSet, RunEnd),
    /// None of these tasks runs, or one has crashed or is stopped at an error in the use of MPI.
    StillOrError(IdSet),
    /// All of these tasks, which are detached, have ended.
    Gone(IdSet),
    /// The launcher has ended.
    LauncherEnded,
}

/// The outcome of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// The goal is reached.
    Reached,
    /// The time limit is reached.
    TimedOut,
    /// The user has interrupted the wait.
    GivenUp,
    /// The session is over.
    Over,
}

impl Goal {
    /// The delay of notices while this goal is waited for.
    pub(crate) fn patience(&self) -> Patience {
        match self {
            Self::Answered(_)
            | Self::Completed(_)
            | Self::Left(_)
            | Self::Run(_)
            | Self::RunOrCrash(_)
            | Self::Still(..)
            | Self::StillOrError(_)
            | Self::Gone(_)
            | Self::LauncherEnded => Patience::RUN,
            Self::Held(_) | Self::Started(_) => Patience::START,
        }
    }

    /// The commands whose answers the goal needs.
    fn commands(&self) -> &[CommandId] {
        match self {
            Self::Answered(id) | Self::Completed(id) | Self::Left(id) => std::slice::from_ref(id),
            Self::Run(ids) | Self::RunOrCrash(ids) | Self::Held(ids) | Self::Started(ids) => ids,
            Self::Still(..) | Self::StillOrError(_) | Self::Gone(_) | Self::LauncherEnded => &[],
        }
    }
}

impl Model {
    /// True if the goal is reached.
    pub(crate) fn is_reached(&self, goal: &Goal) -> bool {
        let mut open = goal.commands().iter().filter_map(|id| self.open.get(*id));
        match goal {
            Goal::Answered(_) | Goal::Completed(_) | Goal::Left(_) | Goal::Held(_) => {
                open.all(|open| open.complete)
            }
            Goal::Run(_) => {
                let running = self.tasks.running();
                open.all(|open| open.complete && open.joined.is_disjoint(&running))
            }
            Goal::RunOrCrash(ids) => {
                !self.crashed_of(ids).is_empty() || self.is_reached(&Goal::Run(ids.clone()))
            }
            Goal::Started(_) => {
                let running = self.job.tasks_at(Phase::Running);
                let mut under_way = open.filter(|open| !open.complete);
                // One that all have answered is about to be complete.
                under_way.all(|open| !open.left.is_empty() && open.left.is_subset(&running))
            }
            Goal::Still(tasks, _) => tasks.is_disjoint(&self.tasks.running()),
            Goal::StillOrError(tasks) => {
                tasks.is_disjoint(&self.tasks.running())
                    || !tasks.is_disjoint(&self.tasks.at_mpi_errors())
                    || !tasks.is_disjoint(&self.tasks.crashed())
            }
            Goal::Gone(tasks) => tasks.is_disjoint(&self.left_running()),
            Goal::LauncherEnded => matches!(self.job.launcher, Launcher::Ended { .. }),
        }
    }

    /// The tasks that the goal still needs.
    pub(crate) fn left_of(&self, goal: &Goal) -> IdSet {
        match goal {
            Goal::Still(tasks, _) | Goal::StillOrError(tasks) => {
                tasks.intersection(&self.tasks.running())
            }
            Goal::Gone(tasks) => tasks.intersection(&self.left_running()),
            goal => self.asked_and_left(goal.commands()).1,
        }
    }

    /// True if only tasks with silent servers are still waited for.
    pub(crate) fn only_silent_left(&self, goal: &Goal) -> bool {
        let left = self.left_of(goal);
        !left.is_empty() && left.is_subset(self.tasks.silent())
    }

    /// The status line for the progress of a goal. `said` is the user's line, `took` the time waited so
    /// far.
    pub(crate) fn status_line(&self, goal: &Goal, said: &str, took: Duration) -> String {
        let seconds = took.as_secs();
        match goal {
            Goal::Answered(_) | Goal::Completed(_) | Goal::Left(_) => {
                let (to, left) = self.asked_and_left(goal.commands());
                let done = to.len() - left.len();
                format!(
                    "{said}: {done}/{} answered, waiting for {} ({seconds} s); ^C cancels it",
                    to.len(),
                    set_text(&left, 24)
                )
            }
            Goal::Run(ids) | Goal::RunOrCrash(ids) => {
                let (to, left) = self.asked_and_left(ids);
                running_line(said, &to, &left, seconds)
            }
            Goal::Still(to, _) | Goal::StillOrError(to) => {
                running_line(said, to, &self.left_of(goal), seconds)
            }
            Goal::LauncherEnded => format!("{said}: waiting for the launcher ({seconds} s)"),
            Goal::Gone(_) => {
                let left = set_text(&self.left_of(goal), 24);
                format!("{said}: not ended yet: {left} ({seconds} s); ^C kills them")
            }
            Goal::Held(ids) | Goal::Started(ids) => {
                let (to, left) = self.asked_and_left(ids);
                let all = to.len();
                let symbols = self.job.tasks_at(Phase::Symbols);
                let read = symbols.union(&to.difference(&left)).len();
                let at_main = all - left.len();
                let mut line = format!(
                    "start: symbols read {read}/{all}, at main {at_main}/{all} ({seconds} s)"
                );
                if took >= SLOWEST_AFTER {
                    line.push_str(&format!(", slowest: {}", set_text(&left, 24)));
                }
                line
            }
        }
    }

    /// The crashed tasks among those that these commands let run.
    pub(crate) fn crashed_of(&self, ids: &[CommandId]) -> IdSet {
        let (to, left) = self.asked_and_left(ids);
        self.tasks.crashed().intersection(&to).difference(&left)
    }

    /// The running tasks among those that these commands let run.
    pub(crate) fn running_of(&self, ids: &[CommandId]) -> IdSet {
        self.asked_and_left(ids).1
    }

    /// The tasks that commands in progress were sent to, and those that have not answered. Both include tasks that
    /// joined a command because its tasks spawned them; these are left while they run.
    fn asked_and_left(&self, ids: &[CommandId]) -> (IdSet, IdSet) {
        let open: Vec<_> = ids.iter().filter_map(|id| self.open.get(*id)).collect();
        let joined = IdSet::union_all(open.iter().map(|open| &open.joined));
        let left = joined.intersection(&self.tasks.running());
        let asked = open.iter().map(|open| &open.gathered.to);
        (
            IdSet::union_all(asked.chain([&joined])),
            IdSet::union_all(open.iter().map(|open| &open.left).chain([&left])),
        )
    }
}

fn running_line(said: &str, to: &IdSet, left: &IdSet, seconds: u64) -> String {
    format!(
        "{said}: {}/{} stopped, running: {} ({seconds} s); ^C stops them, ^Z returns to the prompt",
        to.len() - left.len(),
        to.len(),
        set_text(left, 24)
    )
}
