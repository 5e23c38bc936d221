//! A gdb as its operations see it: the state, and the means to send commands.
//!
//! An operation is one `async fn`, from its first MI command to its answer. The driver polls it after each input. There
//! is no executor and no waker: a waiting operation checks [`State`] again at each poll. A borrow of the state never
//! lives across an `await`.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::{Event, Failure, FailureCode, Reply};

use super::action::Action;
use super::answer::Answer;
use super::background::BackgroundTasks;
use super::budget::Budget;
use super::config::DriverConfig;
use super::state::State;
use super::state::commands::{AnswerState, GdbLife, InterruptState, Pending};
use crate::host::Host;
use sdm_mi::Results;

/// A handle to one gdb's state for its operations; cheap to clone.
#[derive(Clone)]
pub(super) struct Gdb {
    parts: Rc<GdbParts>,
    /// The limits of an inspection; `None` for other operations.
    budget: Option<Rc<Budget>>,
}

struct GdbParts {
    state: RefCell<State>,
    /// Number of changes so far. The driver polls until the number stays the same.
    version: Cell<u64>,
    /// Times at which waiting operations want to be polled.
    wakeups: RefCell<Vec<Instant>>,
    /// The background tasks, which run to their end even if no operation waits for their results.
    works: BackgroundTasks,
    host: Box<dyn Host>,
}

/// Time that gdb has to answer after a SIGINT.
const GRACE: Duration = Duration::from_secs(5);

impl Gdb {
    pub(super) fn new(now: Instant, config: Rc<DriverConfig>, host: Box<dyn Host>) -> Self {
        let parts = GdbParts {
            state: RefCell::new(State::new(now, config)),
            version: Cell::new(0),
            wakeups: RefCell::new(Vec::new()),
            works: BackgroundTasks::default(),
            host,
        };
        Self {
            parts: Rc::new(parts),
            budget: None,
        }
    }

    /// The same gdb for a new inspection. All questions of the inspection share one limit of time and of gdb's output.
    pub(super) fn for_a_look(&self) -> Self {
        let now = self.get().now;
        Self {
            parts: Rc::clone(&self.parts),
            budget: Some(Rc::new(Budget::new(now))),
        }
    }

    /// The budget of the inspection; `None` if this operation is not an inspection.
    pub(super) fn budget(&self) -> Option<&Budget> {
        self.budget.as_deref()
    }

    pub(super) fn get(&self) -> Ref<'_, State> {
        self.parts.state.borrow()
    }

    pub(super) fn edit(&self) -> RefMut<'_, State> {
        self.touch();
        self.parts.state.borrow_mut()
    }

    /// Records a change that operations may wait for.
    pub(super) fn touch(&self) {
        self.parts.version.set(self.parts.version.get() + 1);
    }

    pub(super) fn works(&self) -> &BackgroundTasks {
        &self.parts.works
    }

    pub(super) fn host(&self) -> &dyn Host {
        self.parts.host.as_ref()
    }

    pub(super) fn version(&self) -> u64 {
        self.parts.version.get()
    }

    /// Clears all wake-up times: operations that still wait set theirs again when polled.
    pub(super) fn clear_wakeups(&self) {
        self.parts.wakeups.borrow_mut().clear();
    }

    /// Requests a poll at this time.
    pub(super) fn wake_at(&self, time: Instant) {
        self.parts.wakeups.borrow_mut().push(time);
    }

    /// The time at which the driver must be polled even without input; `None` if there is none.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let deadline = self.get().commands.next_deadline();
        let wakeups = self.parts.wakeups.borrow();
        deadline.into_iter().chain(wakeups.iter().copied()).min()
    }

    /// Answers a command, unless it is answered already: a run's end, a cancel and gdb's end can coincide.
    pub(super) fn answer(&self, id: CommandId, result: Result<Reply, Failure>) {
        self.edit().answer(id, result);
    }

    /// Sends an event to the front-end.
    pub(super) fn tell(&self, event: Event) {
        self.edit().actions.push_back(Action::Event(event));
    }

    /// Sends an MI command now, and returns the future of its answer. Dropping that future early abandons the
    /// command; use [`Gdb::post`] for a command whose answer is not needed.
    #[must_use]
    pub(super) fn send(&self, line: impl AsRef<str>) -> Answer {
        let wait = self.get().config.command_wait;
        self.send_within(line, wait)
    }

    /// Like `send`, with a time limit of its own.
    #[must_use]
    pub(super) fn send_within(&self, line: impl AsRef<str>, wait: Duration) -> Answer {
        let work = self.works().current();
        let mut state = self.edit();
        let token = state.commands.next_token();
        let left = self.budget.as_ref().map(|budget| budget.wait(state.now));
        let (left, known) = match left.transpose() {
            Ok(left) => (left, route(&mut state, token, line.as_ref())),
            Err(failure) => (None, Some(Err(failure))),
        };
        let pending = Pending {
            deadline: state.now + left.map_or(wait, |left| left.min(wait)),
            work,
            patience: InterruptState::Waiting,
            answer: known.map_or(AnswerState::Awaited, AnswerState::Here),
            printed: None,
        };
        state.commands.pending.insert(token, pending);
        drop(state);
        Answer::new(self.clone(), token)
    }

    /// Sends an MI command and waits for its answer.
    pub(super) async fn mi(&self, line: impl AsRef<str>) -> Result<Results, Failure> {
        self.send(line).await
    }

    /// Interrupts gdb at each command that is past its deadline. Fails each command that gdb has not answered by a
    /// second deadline after the interrupt.
    pub(super) fn expire(&self) {
        let now = self.get().now;
        let due = |pending: &Pending| pending.is_open() && pending.deadline <= now;
        if !self.get().commands.pending.values().any(due) {
            return;
        }
        let mut state = self.edit();
        let mut overdue = Vec::new();
        state.commands.pending.retain(|token, pending| {
            if !due(pending) {
                return true;
            }
            if pending.patience == InterruptState::Waiting {
                pending.patience = InterruptState::Interrupted;
                pending.deadline = now + GRACE;
                overdue.push(Action::BreakOff(*token));
                return true;
            }
            let wanted = matches!(pending.answer, AnswerState::Awaited);
            let text = "gdb did not answer in time, not even after an interrupt";
            pending.answer = AnswerState::Here(Err(Failure::new(FailureCode::TimedOut, text)));
            wanted
        });
        state.interrupts.broke_off |= !overdue.is_empty();
        state.actions.extend(overdue);
    }

    /// Abandons some of the open commands, as their answers are no longer wanted.
    pub(super) fn break_off(&self, which: impl Fn(u64, &Pending) -> bool) {
        let mut state = self.edit();
        let State {
            commands,
            actions,
            interrupts,
            ..
        } = &mut *state;
        let under_way = commands.pending.iter();
        let under_way = under_way.filter(|(token, it)| it.is_open() && which(**token, it));
        for (token, _) in under_way {
            actions.push_back(Action::BreakOff(*token));
            interrupts.broke_off = true;
        }
    }

    /// True while gdb executes a command, or a background task runs, whose result no operation waits for. The next
    /// operation begins only afterwards.
    pub(super) fn is_clearing(&self) -> bool {
        self.get().commands.is_clearing() || self.works().are_left()
    }

    /// Handles the answer to an MI command.
    pub(super) fn resolve(&self, token: u64, result: Result<Results, Failure>) {
        let mut state = self.edit();
        let Some(pending) = state.commands.pending.get_mut(&token) else {
            return;
        };
        match pending.answer {
            AnswerState::Abandoned => drop(state.commands.pending.remove(&token)),
            AnswerState::Here(_) => {}
            AnswerState::Awaited => {
                // An interrupted command fails with "Quit" or the like. The true reason is the driver's interrupt.
                let interrupted =
                    pending.patience == InterruptState::Interrupted && result.is_err();
                pending.answer = AnswerState::Here(if interrupted {
                    let text = "gdb took too long and was interrupted";
                    Err(Failure::new(FailureCode::TimedOut, text))
                } else {
                    result
                });
            }
        }
    }

    /// Fails all open commands, as gdb is gone.
    pub(super) fn fail_pending(&self, failure: &Failure) {
        let mut state = self.edit();
        state.life = GdbLife::Gone(failure.clone());
        let pending = &mut state.commands.pending;
        pending.retain(|_, it| !matches!(it.answer, AnswerState::Abandoned));
        for it in pending.values_mut().filter(|it| it.is_open()) {
            it.answer = AnswerState::Here(Err(failure.clone()));
        }
    }

    /// Sends a command whose answer is not needed; it is never abandoned.
    pub(super) fn post(&self, line: impl AsRef<str>) {
        let gdb = Self {
            parts: Rc::clone(&self.parts),
            budget: None,
        };
        let line = line.as_ref().to_owned();
        self.post_work(async move {
            // The poster of a command cannot react to its failure.
            let _ = gdb.mi(line).await;
        });
    }

    /// Runs a background task whose result is not needed. It is never abandoned.
    pub(super) fn post_work(&self, work: impl Future<Output = ()> + 'static) {
        drop(self.finish_unbroken(work));
    }
}

/// Queues a command for gdb. Returns the answer for a command that gdb does not receive. The command has a line break,
/// gdb is gone, or the command only selects a frame in a gdb of several tasks.
fn route(state: &mut State, token: u64, line: &str) -> Option<Result<Results, Failure>> {
    if line.contains(['\n', '\r', '\0']) {
        // Commands are quoted before. gdb would take the text after a line break for another command.
        let text = "a command for gdb contains a line break";
        return Some(Err(Failure::new(FailureCode::BadCommand, text)));
    }
    if let GdbLife::Gone(failure) = &state.life {
        return Some(Err(failure.clone()));
    }
    state.commands.sent(line);
    let line = match state.origin.scope_mut() {
        Some(scope) => scope.line(line),
        None => Some(line.to_owned()),
    };
    // A mere selection, in a gdb of many tasks, is remembered and not sent.
    let Some(line) = line else {
        return Some(Ok(Results::default()));
    };
    state
        .actions
        .push_back(Action::Send(format!("{token}{line}\n")));
    None
}
