//! The handle by which commands access their session: the model, the view, and outgoing messages.
//!
//! A command is an `async fn` over a [`SessionHandle`], from its first query to its output. It waits only
//! by [`SessionHandle::turn`]: one event loop polls one future, and there is no waker. The model is
//! accessed in closures, so no borrow of the model can be held across an `await`.
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::Command;
use sdm_debug::rules::rule_of;
use sdm_idset::IdSet;
use sdm_session::{DebugSession, SendOptions, SessionMember};
use sdm_view::item::{Happening, Item, Problem, View};
use sdm_view::normalise;

use super::controls::InputSource;
use super::effects::{LocalMachine, SessionRestart, SessionWidening};
use super::model::open_commands::{OpenCommand, RunEnd};
use super::model::{Break, Model, Over};
use super::report_state::Reporting;
use super::{Application, Verdict};
use crate::commands::CommandError;

/// A session for the shell's commands; cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionHandle(Rc<SessionParts>);

/// State shared by all commands of one session.
pub(super) struct SessionParts {
    pub(super) session: Rc<RefCell<dyn DebugSession>>,
    model: RefCell<Model>,
    pub(super) view: RefCell<Box<dyn View>>,
    pub(super) machine: RefCell<Box<dyn LocalMachine>>,
    pub(super) reporting: RefCell<Reporting>,
    /// Standard input of `sdm` for the programs. None if they get no input from it.
    pub(super) input: RefCell<Option<Box<dyn InputSource>>>,
    /// Opens another session for `run`. None if the job cannot be restarted.
    pub(super) restart: RefCell<Option<SessionRestart>>,
    /// Opens another session for `attach SET`. None if servers cannot be started on further hosts.
    pub(super) widening: RefCell<Option<SessionWidening>>,
    pub(super) clock: Box<dyn Fn() -> Instant>,
    pub(super) began: Instant,
    /// The time at which the waiting command is polled even without an event.
    wake_at: Cell<Option<Instant>>,
}

impl SessionHandle {
    /// A handle of a session before its first event.
    pub(super) fn new(
        session: Rc<RefCell<dyn DebugSession>>,
        application: Application,
        model: Model,
        now: Instant,
    ) -> Self {
        Self(Rc::new(SessionParts {
            session,
            model: RefCell::new(model),
            view: RefCell::new(application.view),
            machine: RefCell::new(application.machine),
            reporting: RefCell::new(Reporting::new(now)),
            input: RefCell::new(None),
            restart: RefCell::new(None),
            widening: RefCell::new(None),
            clock: application.clock,
            began: now,
            wake_at: Cell::new(None),
        }))
    }

    /// Returns the shared state. None while a command still holds a handle.
    pub(super) fn into_shared(self) -> Option<SessionParts> {
        Rc::into_inner(self.0)
    }

    pub(super) fn shared(&self) -> &SessionParts {
        &self.0
    }

    /// Reads the model.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Model) -> T) -> T {
        look(&self.0.model.borrow())
    }

    /// Changes the model.
    pub(super) fn edit<T>(&self, change: impl FnOnce(&mut Model) -> T) -> T {
        change(&mut self.0.model.borrow_mut())
    }

    pub(super) fn now(&self) -> Instant {
        (self.0.clock)()
    }

    /// Returns to the event loop for one event, or until the time `until`. Without a time it waits as long
    /// as it takes.
    pub(super) async fn turn(&self, until: Option<Instant>) {
        self.0.wake_at.set(until);
        let mut is_over = false;
        poll_fn(|_| match std::mem::replace(&mut is_over, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// The time at which the waiting command is polled even without an event.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.0.wake_at.get()
    }

    /// True once no command can be carried out any more.
    pub(super) fn is_over(&self) -> bool {
        self.read(|model| model.over.is_some())
    }

    /// The tasks of the session: `all`.
    pub(super) fn all(&self) -> IdSet {
        self.read(|model| model.all.clone())
    }

    /// Tasks that are stopped and reachable.
    pub(super) fn standing(&self) -> IdSet {
        self.read(|model| model.tasks.standing())
    }

    /// Tasks that run, or are being started, and are reachable.
    pub(super) fn running(&self) -> IdSet {
        self.read(|model| model.tasks.running())
    }

    /// The session's name.
    pub(super) fn session_name(&self) -> String {
        self.0.session.borrow().id().to_string()
    }

    /// The master and the servers, parents before their children. Empty if unknown.
    pub(super) fn members(&self) -> Vec<SessionMember> {
        self.0.session.borrow().members().to_vec()
    }

    /// Takes a Ctrl-C or Ctrl-Z, if there is one.
    pub(super) fn take_break(&self) -> Option<Break> {
        self.edit(|model| model.requests.take_break())
    }

    /// Number of interrupts by the user so far, for [`SessionHandle::interrupted_since`].
    pub(super) fn interrupts(&self) -> u64 {
        self.read(|model| model.requests.interrupts)
    }

    /// True if the user has interrupted a wait since the number of interrupts was this one.
    pub(super) fn interrupted_since(&self, interrupts: u64) -> bool {
        self.interrupts() > interrupts
    }

    /// Sends a command and registers it as open.
    pub(super) fn send(&self, said: &str, to: &IdSet, command: &Command) -> CommandId {
        self.send_merged(said, to, command, (rule_of(command), Vec::new()))
    }

    /// Sends a command whose answers are merged by a rule with these parameters, and keeps it open.
    pub(super) fn send_merged(
        &self,
        said: &str,
        to: &IdSet,
        command: &Command,
        (rule, rule_params): (u16, Vec<u8>),
    ) -> CommandId {
        let run = command.is_run_control();
        let mut open = OpenCommand::new(said, to);
        open.run = run;
        let timeout = self.edit(|model| {
            model.job.note_sent(command);
            if run {
                open.before = model.note_run(to, command);
            }
            (!run).then_some(model.options.query_timeout)
        });
        let options = SendOptions {
            timeout,
            rule,
            rule_params,
        };
        let id = self.0.session.borrow_mut().send(to, command, &options);
        self.edit(|model| model.open.insert(id, open));
        id
    }

    /// Sends a command that no caller waits for. When it is complete, its result is shown if `end` shows stops, or if
    /// it failed on a task.
    pub(super) fn send_unattended(
        &self,
        said: &str,
        to: &IdSet,
        command: &Command,
        end: RunEnd,
    ) -> CommandId {
        let id = self.send(said, to, command);
        self.edit(|model| {
            if let Some(open) = model.open.find(id) {
                open.unattended = true;
                open.run_end = end;
            }
        });
        id
    }

    /// Handles an event that the tasks do not report themselves.
    pub(super) fn happened(&self, tasks: &IdSet, what: Happening, end: RunEnd) {
        let now = self.now();
        self.edit(|model| model.happened(now, tasks, what, end));
    }

    /// Cancels a command.
    pub(super) fn cancel(&self, id: CommandId) {
        self.0.session.borrow_mut().cancel(id);
    }

    /// Duration of the session so far.
    pub(super) fn took(&self) -> Duration {
        self.now().saturating_duration_since(self.0.began)
    }

    /// Accesses the state of the report.
    pub(super) fn reporting<T>(&self, change: impl FnOnce(&mut Reporting) -> T) -> T {
        change(&mut self.0.reporting.borrow_mut())
    }

    /// Shows an item, whose classes become `@1`, `@2`, ...
    pub(super) fn show(&self, item: &Item) {
        self.edit(|model| model.note_shown(item));
        self.show_quietly(item);
    }

    /// Shows an item without changing the meaning of `@1` and other classes.
    pub(super) fn show_quietly(&self, item: &Item) {
        let at = self.took();
        self.reporting(|reporting| reporting.record(at, item));
        let mut view = self.0.view.borrow_mut();
        view.show(at, item);
        if view.is_gone() {
            self.edit(|model| model.end(Over::Unread));
        }
    }

    /// Shows a group of items.
    pub(super) fn show_group(&self, items: &[Item]) {
        let joined = match self.0.view.borrow().joins_alike() {
            true => normalise::returns_joined(items),
            false => items.to_vec(),
        };
        self.0.view.borrow_mut().group(true);
        for item in &joined {
            self.show(item);
        }
        self.0.view.borrow_mut().group(false);
    }

    /// Shows a line of text.
    pub(super) fn say(&self, text: &str) {
        self.show(&Item::Notice(text.to_owned()));
    }

    /// Shows an error of a command.
    pub(super) fn complain(&self, message: impl Into<String>, hint: &str) -> Verdict {
        self.show(&Item::Error(Problem {
            message: message.into(),
            hint: hint.to_owned(),
            ..Problem::default()
        }));
        Verdict::Failed
    }

    /// Shows the error of a line.
    pub(super) fn refuse(&self, line: &str, error: &CommandError) -> Verdict {
        self.show(&Item::Error(Problem {
            message: error.message.clone(),
            line: error.at.map(|_| line.to_owned()),
            at: error.at,
            hint: String::new(),
        }));
        Verdict::Failed
    }

    /// Shows, changes or removes the status line.
    pub(super) fn status(&self, line: Option<&str>) {
        self.0.view.borrow_mut().status(line);
    }

    /// Accesses the local machine.
    pub(super) fn machine<T>(&self, deed: impl FnOnce(&mut dyn LocalMachine) -> T) -> T {
        deed(&mut **self.0.machine.borrow_mut())
    }
}
