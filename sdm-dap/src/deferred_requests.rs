//! Requests of a client that wait for the start of the programs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::{Handled, RequestError};
use crate::message::Request;

/// Maximum number of waiting requests.
const WAITING_MAX: usize = 4096;

/// Maximum time for which the answer to a request is delayed until the programs are at `main`.
const WAIT: Duration = Duration::from_secs(2);

/// Requests of a client that are carried out once the programs are at `main`.
#[derive(Debug, Default)]
pub(crate) struct DeferredRequests {
    /// The waiting requests, each with its time of arrival.
    pub(crate) waiting: VecDeque<(Instant, Request)>,
    /// True once `configurationDone` was received and answered.
    pub(crate) configured: bool,
}

impl DeferredRequests {
    /// True for requests that a client sends before the programs run.
    pub(crate) fn takes(name: &str) -> bool {
        name == "configurationDone" || (name.starts_with("set") && name.ends_with("Breakpoints"))
    }

    /// Adds a request to the waiting ones.
    ///
    /// # Errors
    /// Too many requests wait.
    pub(crate) fn wait(&mut self, now: Instant, request: &Request) -> Handled {
        if self.waiting.len() >= WAITING_MAX {
            return Err(RequestError::Busy(WAITING_MAX));
        }
        self.waiting.push_back((now, request.clone()));
        Ok(None)
    }

    /// Takes all waiting requests.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Request> + use<> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|(_, request)| request)
    }

    /// The time at which the oldest waiting request must be answered. `None` if none waits.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waiting.front().map(|(since, _)| *since + WAIT)
    }
}
