//! The command language in a session that another front-end serves: an editor's debug console.
//!
//! A [`EmbeddedShell`] takes no event from a session and waits for nothing. The front-end that serves the
//! session passes events to it and polls it.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::command::{PointSpec, StartSpec};
use sdm_debug::reply::Stop;
use sdm_debug::{Command, TaskState};
use sdm_idset::IdSet;
use sdm_session::{DebugSession, SessionEvent};
use sdm_view::item::{Gathered, Happening, Item};

use super::model::open_commands::{OpenCommand, RunEnd};
use super::model::{Break, Model};
use super::{
    Application, Options, ScriptLine, SessionHandle, Verdict, event_loop, notices, overview,
    script, start,
};

/// A shell in a session that another front-end serves.
pub struct EmbeddedShell {
    handle: SessionHandle,
    under_way: Option<Pin<Box<dyn Future<Output = Verdict>>>>,
    /// The query of the state for a view that shows all of it. None while no answer is awaited.
    looking: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl fmt::Debug for EmbeddedShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestShell")
            .field("busy", &self.is_busy())
            .finish_non_exhaustive()
    }
}

impl EmbeddedShell {
    /// A shell in an application. It uses `session` to send and cancel commands and to read its tasks and servers,
    /// never to take events.
    pub fn new(
        session: impl DebugSession + 'static,
        application: Application,
        options: Options,
    ) -> Self {
        let now = (application.clock)();
        let model = Model::new(now, session.tasks().clone(), options);
        let session: Rc<RefCell<dyn DebugSession>> = Rc::new(RefCell::new(session));
        Self {
            handle: SessionHandle::new(session, application, model, now),
            under_way: None,
            looking: None,
        }
    }

    /// Shows that the session has begun with these programs; there are none after an attach.
    pub fn show_start(&self, programs: &[(IdSet, StartSpec)]) {
        start::show_start(&self.handle, programs);
    }

    /// Sets the state of tasks, as the front-end that serves the session knows it.
    pub fn note_state(&self, tasks: &IdSet, state: TaskState, stop: Option<Stop>) {
        let last = stop.map(Happening::Stopped);
        self.handle.edit(|model| {
            model.tasks.set(tasks, state, last);
            model.glance.changes += 1;
        });
    }

    /// Notes that the front-end lets tasks run by this command.
    pub fn note_run(&self, id: CommandId, to: &IdSet) {
        self.handle.edit(|model| {
            let mut open = OpenCommand::new("", to);
            open.run = true;
            open.unattended = true;
            open.run_end = RunEnd::Hidden;
            open.before = model.note_run(to, &Command::Continue);
            model.open.insert(id, open);
        });
    }

    /// Sets the breakpoints with their tasks, which the front-end manages.
    pub fn note_points(&self, points: &[(PointSpec, IdSet)]) {
        self.handle.edit(|model| {
            let known: Vec<u32> = model.breaks.rows().iter().map(|row| row.number).collect();
            let is_gone = |number: &&u32| points.iter().all(|(spec, _)| spec.number() != **number);
            for number in known.iter().filter(is_gone) {
                let all = model.all.clone();
                model.breaks.remove(*number, &all);
                model.glance.changes += 1;
            }
            for (spec, tasks) in points {
                if known.contains(&spec.number()) {
                    continue;
                }
                model.breaks.add(spec.number(), spec.clone(), tasks.clone());
                model.glance.changes += 1;
            }
        });
    }

    /// Reserves the breakpoint numbers up to this one.
    pub fn reserve_numbers(&self, last: u32) {
        self.handle.edit(|model| model.breaks.reserve(last));
    }

    /// Notes an answer that the front-end has shown, so that `@1`, `@2`, ... mean its classes.
    pub fn note_answer(&self, gathered: &Gathered) {
        let item = Item::Answer(gathered.clone());
        self.handle.edit(|model| model.note_shown(&item));
    }

    /// Handles an event of the session at this time.
    pub fn handle_event(&self, now: Instant, event: SessionEvent) {
        self.handle.edit(|model| model.handle_event(now, event));
        event_loop::perform_effects(&self.handle);
        notices::show_due(&self.handle);
    }

    /// Begins a line. A line in progress is given up, and the tasks that it runs continue.
    pub fn begin_line(&mut self, text: &str) {
        let handle = self.handle.clone();
        let line = ScriptLine {
            text: text.to_owned(),
            ..ScriptLine::default()
        };
        // A Ctrl-C that was meant for the previous line does not apply to this one.
        handle.edit(|model| while model.requests.take_break().is_some() {});
        self.under_way = Some(Box::pin(async move {
            script::carry_out_line(&handle, &line, 0).await
        }));
    }

    /// Reads the state of stopped tasks for a view that shows it, if tasks have moved or a line was carried out since
    /// the last time. Returns true while the answers are awaited; a line then has to wait, as at the prompt.
    pub fn look(&mut self) -> bool {
        let handle = self.handle.clone();
        let looking = self
            .looking
            .get_or_insert_with(|| Box::pin(async move { overview::look(&handle).await }));
        let mut context = Context::from_waker(Waker::noop());
        let polled = looking.as_mut().poll(&mut context);
        if polled.is_ready() {
            self.looking = None;
        }
        event_loop::perform_effects(&self.handle);
        self.is_looking()
    }

    /// True while answers of [`EmbeddedShell::look`] are awaited.
    #[must_use]
    pub fn is_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// Interrupts the wait of the current line. With `stop`, the running tasks are stopped; otherwise they
    /// run on.
    pub fn give_up(&self, stop: bool) {
        let asked = if stop {
            Break::Interrupt
        } else {
            Break::Suspend
        };
        self.handle.edit(|model| model.requests.add_break(asked));
    }

    /// Drops the current line, and ends the local command that it has started.
    pub fn abandon(&mut self) {
        self.under_way = None;
    }

    /// Continues the current line. Returns its outcome once it is complete, before that None.
    pub fn poll(&mut self) -> Option<Verdict> {
        let command = self.under_way.as_mut()?;
        let mut context = Context::from_waker(Waker::noop());
        let polled = command.as_mut().poll(&mut context);
        event_loop::perform_effects(&self.handle);
        match polled {
            Poll::Ready(verdict) => {
                self.under_way = None;
                Some(verdict)
            }
            Poll::Pending => None,
        }
    }

    /// The time at which [`EmbeddedShell::poll`] has to be called even without an event.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let held = self.handle.read(|model| model.news.deadline());
        let waits = self.is_busy() || self.is_looking();
        let wanted = self.handle.wake_at().filter(|_| waits);
        let board = overview::due(&self.handle);
        [wanted, held, board].into_iter().flatten().min()
    }

    /// Shows the notices whose delay is over, and the state to a view that wants it.
    pub fn show_due(&self) {
        notices::show_due(&self.handle);
        overview::show_due(&self.handle);
    }

    /// The prompt, and true if the next line answers a question.
    #[must_use]
    pub fn prompt(&self) -> (String, bool) {
        self.handle
            .read(|model| (model.prompt(), model.dialogue.question.is_some()))
    }

    /// True while a line is being carried out.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// True if the next line answers a question, or belongs to a block.
    #[must_use]
    pub fn wants_a_line(&self) -> bool {
        let dialogue = |model: &Model| {
            model.dialogue.question.is_some() || model.dialogue.collecting.is_some()
        };
        self.handle.read(dialogue)
    }

    /// True once a line has requested the end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.handle.is_over()
    }

    /// True if a word is the name of a user-defined command.
    #[must_use]
    pub fn knows(&self, word: &str) -> bool {
        self.handle
            .read(|model| model.dialogue.defined.contains_key(word))
    }
}
