//! Waiting for answers, runs and ends of tasks, with the handling of Ctrl-C and Ctrl-Z meanwhile.
use std::time::{Duration, Instant};

use sdm_debug::Command;
use sdm_debug::EndPolicy;

use super::controls::LineSource;
use super::model::goal::{Goal, WaitOutcome};
use super::model::job::Stage;
use super::model::notices::Patience;
use super::model::open_commands::RunEnd;
use super::model::{Break, Over};
use super::{Control, SessionHandle, complete, overview};
use crate::commands;

/// The status line appears after this time.
const STATUS_AFTER: Duration = Duration::from_secs(1);
/// Time beyond a query's own limit before the shell stops waiting for the tree.
const TREE_GRACE: Duration = Duration::from_secs(15);

/// Time limit for gdb to complete a partly typed line.
pub const COMPLETE_WAIT: Duration = Duration::from_secs(2);

impl SessionHandle {
    /// Waits for a goal, at most until this time; without a time, without limit. An earlier limit of the session
    /// applies too. `said` is the user's line. Queries have a time limit of their own.
    pub(super) async fn wait_for(
        &self,
        goal: &Goal,
        said: &str,
        until: Option<Instant>,
    ) -> WaitOutcome {
        let began = self.now();
        let (timeout, last) = self.edit(|model| {
            model.news.notices.patience = goal.patience();
            (model.options.query_timeout, model.requests.wait_until)
        });
        let until = match goal {
            Goal::Completed(_) => Some(began + COMPLETE_WAIT),
            Goal::Answered(_) | Goal::Left(_) => Some(began + timeout + TREE_GRACE),
            _ => until,
        };
        let until = until.into_iter().chain(last).min();
        let waited = wait_until(self, goal, said, (began, until)).await;
        self.edit(|model| model.news.notices.patience = Patience::IDLE);
        self.status(None);
        waited
    }
}

async fn wait_until(
    session: &SessionHandle,
    goal: &Goal,
    said: &str,
    (began, until): (Instant, Option<Instant>),
) -> WaitOutcome {
    let mut interrupted = false;
    let mut shown = began;
    loop {
        match session.take_break() {
            Some(Break::Interrupt) if !interrupted => {
                interrupted = true;
                session.edit(|model| model.requests.interrupts += 1);
                interrupt_goal(session, goal);
            }
            Some(_) => return WaitOutcome::GivenUp,
            None => {}
        }
        if session.read(|model| model.is_reached(goal)) {
            return WaitOutcome::Reached;
        }
        // A silent server does nothing about an interrupt.
        if interrupted && session.read(|model| model.only_silent_left(goal)) {
            return WaitOutcome::GivenUp;
        }
        if session.read(|model| model.over.is_some() || model.job.stage == Stage::Over) {
            return WaitOutcome::Over;
        }
        let now = session.now();
        if until.is_some_and(|until| now >= until) {
            return WaitOutcome::TimedOut;
        }
        if now >= shown + STATUS_AFTER && !matches!(goal, Goal::Completed(_)) {
            shown = now;
            let said = commands::spelled_out(said);
            let line = session.read(|model| model.status_line(goal, &said, now - began));
            session.status(Some(&line));
        }
        let next = (shown + STATUS_AFTER).min(until.unwrap_or(shown + STATUS_AFTER));
        session.turn(Some(next)).await;
    }
}

/// The next line, or another input that stands among the lines, such as the end of input. None if the session is over.
/// Meanwhile the prompt is kept up to date.
pub(super) async fn next_line(
    session: &SessionHandle,
    mut prompt: String,
    source: &mut dyn LineSource,
) -> Option<Control> {
    loop {
        // Ctrl-C and Ctrl-Z at an idle prompt have no effect on a session. If a line is waiting, they apply
        // to that line.
        if !session.read(|model| model.requests.has_line()) {
            let _ = session.take_break();
        }
        if session.is_over() {
            return None;
        }
        match session.edit(|model| model.requests.take_line()) {
            Some(Control::Complete(typed, answer)) => {
                // The prompt that asked may have given up.
                let _ = answer.send(complete::complete(session, &typed).await);
                continue;
            }
            Some(line) => return Some(line),
            None => overview::look(session).await,
        }
        if !session.read(|model| model.requests.has_line()) {
            session.turn(None).await;
        }
        let now = session.read(|model| model.prompt());
        if now != prompt {
            source.set_prompt(&now);
            prompt = now;
        }
    }
}

/// Handles Ctrl-C: a query is given up, running tasks are stopped, and detached ones are killed. If their launcher
/// controls them, the session ends instead. A command that detaches tasks is not affected.
fn interrupt_goal(session: &SessionHandle, goal: &Goal) {
    let end = match goal {
        Goal::Answered(id) | Goal::Completed(id) => return session.cancel(*id),
        Goal::Left(_) => return,
        Goal::Still(_, end) => *end,
        _ => RunEnd::Shown,
    };
    let tasks = session.read(|model| model.left_of(goal));
    if tasks.is_empty() {
        return;
    }
    let gone = matches!(goal, Goal::Gone(_));
    if gone && session.read(|model| model.options.controlled) {
        // Their launcher ends them, when the session ends it.
        session.edit(|model| model.end(Over::Quit(EndPolicy::KillStarted)));
        return;
    }
    let (said, command) = match gone {
        true => ("kill", Command::Kill),
        false => ("interrupt", Command::Interrupt),
    };
    session.send_unattended(said, &tasks, &command, end);
}
