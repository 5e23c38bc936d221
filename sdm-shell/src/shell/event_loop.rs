//! The event loop of a shell: it polls the current command and handles events.
//!
//! Only this loop takes events from the session, and no command can enter it. A command has only a
//! [`SessionHandle`](super::SessionHandle), and waits by `await`.
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sdm_session::DebugSession;

use super::model::{Effect, Model};
use super::{SessionHandle, Shell, notices, overview, program_input, report};

impl<D: DebugSession + 'static> Shell<D> {
    /// Polls a command's future until it is done.
    pub(super) fn block_on<T>(&mut self, command: impl Future<Output = T>) -> T {
        let mut command = pin!(command);
        let mut context = Context::from_waker(Waker::noop());
        self.take_controls();
        loop {
            if let Poll::Ready(value) = command.as_mut().poll(&mut context) {
                return value;
            }
            if !self.take_controls() {
                self.take_event();
                self.take_controls();
            }
        }
    }

    /// Handles inputs from outside the session. Returns false if there was none.
    fn take_controls(&self) -> bool {
        let mut some = false;
        while let Ok(control) = self.controls.try_recv() {
            self.handle.edit(|model| model.handle_control(control));
            perform_effects(&self.handle);
            some = true;
        }
        some
    }

    /// Waits for one event and handles it. Then shows the notices whose delay is over, and the report and the state of
    /// the session if they are due.
    fn take_event(&self) {
        let deadline = self.handle.read(|model| model.news.deadline());
        let next = [self.handle.wake_at(), deadline, overview::due(&self.handle)]
            .into_iter()
            .flatten()
            .min();
        let now = self.handle.now();
        let wait = next.map(|next| next.saturating_duration_since(now));
        let event = self.session.borrow_mut().next_event(wait);
        if let Some(event) = event {
            let now = self.handle.now();
            self.handle.edit(|model| model.handle_event(now, event));
            perform_effects(&self.handle);
        }
        notices::show_due(&self.handle);
        report::write_due_report(&self.handle);
        overview::show_due(&self.handle);
    }
}

/// Carries out the actions that the model requests.
pub(super) fn perform_effects(session: &SessionHandle) {
    while let Some(effect) = session.edit(Model::poll_effect) {
        match effect {
            Effect::Show(item) => session.show(&item),
            Effect::Pass { stderr, bytes } => {
                session.shared().view.borrow_mut().pass(stderr, &bytes);
            }
            Effect::RequestInput => program_input::request_input(session),
            Effect::PassInput(bytes) => program_input::pass_input(session, bytes),
        }
    }
}
