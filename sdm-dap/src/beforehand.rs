//! Requests of a client that wait for the start of the programs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::{Handled, RequestError};
use crate::message::Request;

/// The most requests that wait.
const WAITING_MAX: usize = 4096;

/// The time for which the answer to a request waits for the programs.
const WAIT: Duration = Duration::from_secs(2);

/// Things that a client has said to be done once the programs are at `main`.
#[derive(Debug, Default)]
pub(crate) struct Beforehand {
    /// Requests, and since when each waits.
    pub(crate) waiting: VecDeque<(Instant, Request)>,
    /// All was said, and the client was told that this is known.
    pub(crate) configured: bool,
}

impl Beforehand {
    /// True where a request is part of what a client says before the programs run.
    pub(crate) fn takes(name: &str) -> bool {
        name == "configurationDone" || (name.starts_with("set") && name.ends_with("Breakpoints"))
    }

    /// A request waits from now on.
    ///
    /// # Errors
    /// Too many do.
    pub(crate) fn wait(&mut self, now: Instant, request: &Request) -> Handled {
        if self.waiting.len() >= WAITING_MAX {
            return Err(RequestError::Busy(WAITING_MAX));
        }
        self.waiting.push_back((now, request.clone()));
        Ok(None)
    }

    /// Everything that waits.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Request> + use<> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|(_, request)| request)
    }

    /// The time at which a request is to be answered.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waiting.front().map(|(since, _)| *since + WAIT)
    }
}
