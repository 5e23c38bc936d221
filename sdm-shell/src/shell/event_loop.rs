//! The one event loop of a shell: it polls the command that is under way and takes in what comes.
//!
//! Nothing else takes an event from the session, and no command can enter the loop: a command has
//! a [`SessionHandle`](super::SessionHandle) only, and waits by awaiting.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::{Shell, report};
use sdm_session::Debug;

impl<D: Debug + 'static> Shell<D> {
    /// Carries out a command to its end.
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

    /// Takes in what has come from outside the session; false where nothing has.
    fn take_controls(&self) -> bool {
        let mut some = false;
        while let Ok(control) = self.controls.try_recv() {
            self.handle.edit(|model| model.handle_control(control));
            self.handle.perform_effects();
            some = true;
        }
        some
    }

    /// Waits for one event and takes it in; then shows what has been held back for long enough.
    fn take_event(&self) {
        let deadline = self.handle.read(|model| model.news.deadline());
        let next = [self.handle.wake_at(), deadline]
            .into_iter()
            .flatten()
            .min();
        let now = self.handle.now();
        let wait = next.map(|next| next.saturating_duration_since(now));
        let event = self.session.borrow_mut().next_event(wait);
        if let Some(event) = event {
            let now = self.handle.now();
            self.handle.edit(|model| model.handle_event(now, event));
            self.handle.perform_effects();
        }
        self.handle.show_due();
        report::write_due_report(&self.handle);
    }
}
