//! Queries of the manager because of a user's command, and the age of the data about jobs, nodes and queues.

use std::time::{Duration, Instant};

use sdm_runtime::attribute as id;
use sdm_runtime::wire::definition::Definition;

/// A manager is queried for callers only once the elements are older than this many times the duration of its last
/// query.
const PAUSE_OF_QUERY: u32 = 5;

/// The queries that callers cause.
#[derive(Debug, Default)]
pub struct Queries {
    /// True if the agent knows the command LOOK.
    is_known: bool,
    /// The command that has not been answered, and the time at which it was sent; `None` if there is none.
    running: Option<(u32, Instant)>,
    /// Start time of the first query of the elements, or of the last complete one; `None` before the first.
    read_at: Option<Instant>,
    /// Duration of the last query.
    took: Duration,
}

impl Queries {
    /// Age of the elements: the time since their query began. `None` if it is unknown.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let read_at = self.read_at.filter(|_| self.is_known);
        read_at.map(|read_at| now.saturating_duration_since(read_at))
    }

    /// True while a query that a caller has caused runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// True if the agent is to query its manager: it knows LOOK, no query of a caller runs, and the elements are older
    /// than `age_max`. After a slow query they must be older still.
    pub(crate) fn is_due(&self, now: Instant, age_max: Duration) -> bool {
        let age_max = age_max.max(self.took * PAUSE_OF_QUERY);
        let is_young = self.age(now).is_some_and(|age| age <= age_max);
        self.is_known && !self.is_running() && !is_young
    }

    /// Records from the agent's definitions whether the agent supports LOOK.
    pub(crate) fn learn(&mut self, definitions: &[Definition]) {
        self.is_known |= definitions.iter().any(|it| it.id == id::LOOK);
    }

    /// Records that the agent begins the first query now.
    pub(crate) fn begin_first(&mut self, now: Instant) {
        self.read_at = Some(now);
    }

    /// Records that the command `tid` was sent.
    pub(crate) fn begin(&mut self, now: Instant, tid: u32) {
        self.running = Some((tid, now));
    }

    /// Gives up a query that runs: its agent ends.
    pub(crate) fn give_up(&mut self) {
        self.running = None;
    }

    /// Handles the end of a query.
    pub(crate) fn end(&mut self, now: Instant, tid: u32, is_answered: bool) {
        if let Some((_, sent)) = self.running.take_if(|(running, _)| *running == tid) {
            self.took = now.saturating_duration_since(sent);
            if is_answered {
                self.read_at = Some(sent);
            }
        }
    }
}
