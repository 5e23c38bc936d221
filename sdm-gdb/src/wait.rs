//! Waits for a condition on the state of a gdb.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::gdb::Gdb;
use super::state::State;

impl Gdb {
    /// Waits until `found` returns a value for the state.
    pub(super) fn until<T, F>(&self, found: F) -> Until<T, F>
    where
        F: FnMut(&State) -> Option<T>,
    {
        Until {
            gdb: self.clone(),
            found,
            deadline: None,
        }
    }

    /// Like `until`, but gives up after `wait`.
    pub(super) fn until_within<T, F>(&self, wait: Duration, found: F) -> Until<T, F>
    where
        F: FnMut(&State) -> Option<T>,
    {
        let deadline = Some(self.get().now + wait);
        Until {
            deadline,
            ..self.until(found)
        }
    }
}

/// Future of a condition on the state. Yields `None` at its deadline.
pub(super) struct Until<T, F: FnMut(&State) -> Option<T>> {
    gdb: Gdb,
    found: F,
    deadline: Option<Instant>,
}

impl<T, F: FnMut(&State) -> Option<T> + Unpin> Future for Until<T, F> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        let this = &mut *self;
        let state = this.gdb.get();
        if let Some(found) = (this.found)(&state) {
            return Poll::Ready(Some(found));
        }
        match this.deadline {
            Some(deadline) if deadline <= state.now => Poll::Ready(None),
            Some(deadline) => {
                this.gdb.wake_at(deadline);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}
