//! Waiting for commands, and what Ctrl-C and Ctrl-Z mean meanwhile.

use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::event::Phase;
use sdm_debug::{Command, EndPolicy, TaskState};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::render::set_text;

use super::input::LineSource;
use super::notices::Patience;
use super::{Control, Over, Shell};
use crate::commands;

/// What goes on is shown after this long.
const STATUS_AFTER: Duration = Duration::from_secs(1);
/// Who is slowest is named after this long.
const SLOWEST_AFTER: Duration = Duration::from_secs(10);
/// What a question is given beyond its own time-out before the shell goes on without the tree.
const TREE_GRACE: Duration = Duration::from_secs(15);

/// How long gdb is given to complete a line that is being typed.
pub const COMPLETE_WAIT: Duration = Duration::from_secs(2);

/// What is waited for.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// A question is answered.
    Answered(CommandId),
    /// Tasks are left: whoever does not wait for it does not break it off.
    Left(CommandId),
    /// Every task that was let run has stopped or ended.
    Run(Vec<CommandId>),
    /// The tasks are held at `main`.
    Held(Vec<CommandId>),
    /// The tasks are on their way.
    Started(Vec<CommandId>),
    /// None of these runs.
    Still(IdSet),
    /// All of these, which were detached, have ended.
    Gone(IdSet),
    /// The launcher has ended.
    LauncherOver,
}

/// How waiting came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// It has come.
    Reached,
    /// The time is over.
    TimedOut,
    /// A person wants the prompt back.
    GivenUp,
    /// The session is over.
    Over,
}

impl<D: Debug> Shell<D> {
    /// Waits; `said` is what the person said.
    pub(super) fn wait_for(&mut self, goal: &Goal, said: &str, until: Option<Instant>) -> Waited {
        let began = self.now();
        let until = match goal {
            Goal::Answered(_) if self.completing => Some(began + COMPLETE_WAIT),
            Goal::Answered(_) | Goal::Left(_) => {
                Some(began + self.options.query_timeout + TREE_GRACE)
            }
            _ => until,
        };
        self.notices.patience = match goal {
            Goal::Answered(_)
            | Goal::Left(_)
            | Goal::Run(_)
            | Goal::Still(_)
            | Goal::Gone(_)
            | Goal::LauncherOver => Patience::RUN,
            Goal::Held(_) | Goal::Started(_) => Patience::START,
        };
        let waited = self.wait_until(goal, said, (began, until));
        self.notices.patience = Patience::IDLE;
        self.view.status(None);
        waited
    }

    fn wait_until(
        &mut self,
        goal: &Goal,
        said: &str,
        (began, until): (Instant, Option<Instant>),
    ) -> Waited {
        let mut interrupted = false;
        let mut shown = began;
        loop {
            match self.take_control() {
                Some(Control::Interrupt) if !interrupted => {
                    interrupted = true;
                    self.interrupted = true;
                    self.interrupt_goal(goal);
                }
                Some(Control::Interrupt | Control::Suspend) => return Waited::GivenUp,
                _ => {}
            }
            if self.is_reached(goal) {
                return Waited::Reached;
            }
            // Who stands still does nothing about it.
            if interrupted && self.only_silent_left(goal) {
                return Waited::GivenUp;
            }
            if self.over.is_some() || self.jobless {
                return Waited::Over;
            }
            let now = self.now();
            if until.is_some_and(|until| now >= until) {
                return Waited::TimedOut;
            }
            if now >= shown + STATUS_AFTER && !self.completing {
                shown = now;
                let said = commands::spelled_out(said);
                let line = self.status_line(goal, &said, now - began);
                self.view.status(Some(&line));
            }
            let next = (shown + STATUS_AFTER).min(until.unwrap_or(shown + STATUS_AFTER));
            self.pump(Some(next));
        }
    }

    /// The next thing from outside; lines and what follows them wait until they are asked for.
    pub(super) fn take_control(&mut self) -> Option<Control> {
        loop {
            match self.controls.try_recv().ok()? {
                control @ (Control::Interrupt | Control::Suspend) => return Some(control),
                Control::Warned => {
                    self.warned = true;
                    return Some(Control::Interrupt);
                }
                Control::Terminate(signal) => {
                    self.over.get_or_insert(Over::Terminated(signal));
                }
                Control::Input(bytes) => self.take_input(bytes),
                line => self.lines.push_back(line),
            }
        }
    }

    /// The next line; absent where there is none to come. Until it comes the prompt follows what happens.
    pub(super) fn next_line(
        &mut self,
        mut prompt: String,
        source: &mut dyn LineSource,
    ) -> Option<Control> {
        loop {
            // Ctrl-C and Ctrl-Z at an idle prompt are the prompt's own.
            let _ = self.take_control();
            if self.over.is_some() {
                return None;
            }
            match self.lines.pop_front() {
                Some(Control::Complete(typed, answer)) => {
                    // Who asked may have given up.
                    let _ = answer.send(self.complete(&typed));
                    continue;
                }
                Some(line) => return Some(line),
                None => {}
            }
            self.pump(None);
            let now = self.prompt();
            if now != prompt {
                source.retell(&now);
                prompt = now;
            }
        }
    }

    fn is_reached(&self, goal: &Goal) -> bool {
        match goal {
            Goal::Answered(id) | Goal::Left(id) => {
                self.open.get(*id).is_none_or(|open| open.complete)
            }
            Goal::Run(ids) | Goal::Held(ids) => {
                let mut open = ids.iter().filter_map(|id| self.open.get(*id));
                open.all(|open| open.complete)
            }
            Goal::Started(ids) => {
                let running = self.phase(Phase::Running);
                let open = ids.iter().filter_map(|id| self.open.get(*id));
                let mut under_way = open.filter(|open| !open.complete);
                under_way.all(|open| open.left.is_subset(&running))
            }
            Goal::Still(tasks) => tasks.is_disjoint(&self.tasks.running()),
            Goal::Gone(tasks) => tasks.is_disjoint(&self.left_running()),
            Goal::LauncherOver => self.launcher_over,
        }
    }

    /// Who is waited for.
    fn left_of(&self, goal: &Goal) -> IdSet {
        match goal {
            Goal::Answered(id) | Goal::Left(id) => self.asked_and_left(&[*id]).1,
            Goal::Run(ids) | Goal::Held(ids) | Goal::Started(ids) => self.asked_and_left(ids).1,
            Goal::Still(tasks) => tasks.intersection(&self.tasks.running()),
            Goal::Gone(tasks) => tasks.intersection(&self.left_running()),
            Goal::LauncherOver => IdSet::new(),
        }
    }

    fn only_silent_left(&self, goal: &Goal) -> bool {
        let left = self.left_of(goal);
        !left.is_empty() && left.is_subset(self.tasks.silent())
    }

    /// Ctrl-C: a question is given up; tasks that run are stopped.
    fn interrupt_goal(&mut self, goal: &Goal) {
        match goal {
            Goal::Answered(id) => return self.debug.cancel(*id),
            Goal::Left(_) => return,
            _ => {}
        }
        let tasks = self.left_of(goal);
        if tasks.is_empty() {
            return;
        }
        if self.options.controlled && matches!(goal, Goal::Gone(_)) {
            // Their launcher ends them, when the session ends it.
            self.over.get_or_insert(Over::Quit(EndPolicy::KillStarted));
            return;
        }
        let id = match goal {
            Goal::Gone(_) => self.send("kill", &tasks, &Command::Kill),
            _ => self.send("interrupt", &tasks, &Command::Interrupt),
        };
        if let Some(open) = self.open.find(id) {
            open.unattended = true;
        }
    }

    /// Who has come to a phase of the start.
    fn phase(&self, phase: Phase) -> IdSet {
        let reached = self.phases.iter().filter(|(_, known)| *known >= phase);
        IdSet::union_all(reached.map(|(tasks, _)| tasks))
    }

    fn status_line(&self, goal: &Goal, said: &str, took: Duration) -> String {
        let seconds = took.as_secs();
        match goal {
            Goal::Answered(id) | Goal::Left(id) => {
                let (to, left) = self.asked_and_left(&[*id]);
                let done = to.len() - left.len();
                format!(
                    "{said}: {done}/{} answered, waiting for {} ({seconds} s); ^C gives it up",
                    to.len(),
                    set_text(&left, 24)
                )
            }
            Goal::Run(ids) => {
                let (to, left) = self.asked_and_left(ids);
                running_line(said, &to, &left, seconds)
            }
            Goal::Still(to) => {
                let left = to.intersection(&self.tasks.running());
                running_line(said, to, &left, seconds)
            }
            Goal::LauncherOver => format!("{said}: waiting for the launcher ({seconds} s)"),
            Goal::Gone(to) => {
                let left = to.intersection(&self.left_running());
                let left = set_text(&left, 24);
                format!("{said}: running on: {left} ({seconds} s); ^C kills them")
            }
            Goal::Held(ids) | Goal::Started(ids) => {
                let (to, left) = self.asked_and_left(ids);
                let all = to.len();
                let symbols = self.phase(Phase::Symbols);
                let symbols = symbols.union(&to.difference(&left));
                let mut line = format!(
                    "start: symbols {}/{all}, at main {}/{all} ({seconds} s)",
                    symbols.len(),
                    all - left.len()
                );
                if took >= SLOWEST_AFTER {
                    line.push_str(&format!(", slowest: {}", set_text(&left, 24)));
                }
                line
            }
        }
    }

    /// To whom commands under way went, and who has not answered.
    fn asked_and_left(&self, ids: &[CommandId]) -> (IdSet, IdSet) {
        let open: Vec<_> = ids.iter().filter_map(|id| self.open.get(*id)).collect();
        (
            IdSet::union_all(open.iter().map(|open| &open.gathered.to)),
            IdSet::union_all(open.iter().map(|open| &open.left)),
        )
    }

    /// The tasks among these that have ended.
    pub(super) fn ended_among(&self, tasks: &IdSet) -> IdSet {
        let gone =
            |state: &TaskState| matches!(state, TaskState::Exited(_) | TaskState::Signalled(_));
        self.tasks.in_state(gone).intersection(tasks)
    }
}

fn running_line(said: &str, to: &IdSet, left: &IdSet, seconds: u64) -> String {
    format!(
        "{said}: {}/{} stopped, running: {} ({seconds} s); ^C stops them, ^Z gives the prompt back",
        to.len() - left.len(),
        to.len(),
        set_text(left, 24)
    )
}
