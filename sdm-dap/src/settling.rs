//! Stops that a client is to be told of, and when.

use std::time::{Duration, Instant};

use sdm_idset::IdSet;

use crate::tasks::Tasks;

/// How long nobody may stop any more until the client is told of those that have, while others run.
const QUIET: Duration = Duration::from_millis(150);
/// How long the client is kept waiting at most; and after how long a step says who has not arrived.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(1);

/// A step that not all have ended yet.
#[derive(Debug)]
pub(crate) struct Step {
    /// Since when.
    pub(crate) began: Instant,
    /// What a person calls it.
    pub(crate) said: &'static str,
    /// Whom it moves.
    pub(crate) moved: IdSet,
}

/// Stops that the client was not told of.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Who has stopped.
    pub(crate) fresh: IdSet,
    /// Who is asked where it stands.
    pub(crate) asked: IdSet,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
    /// A step that is watched.
    pub(crate) step: Option<Step>,
    /// Who is to be stopped since the client's last word, and how often that was asked of them.
    pub(crate) pausing: (IdSet, u32),
    /// Who has stopped where the client does not want it, and is to run on.
    pub(crate) passing: IdSet,
    /// Who was let run by another client: their stops are not what this one waits for.
    pub(crate) foreign: IdSet,
    /// Tasks have ended, or run by another client's word.
    pub(crate) changed: bool,
}

impl Settling {
    /// Tasks run from now on.
    pub(crate) fn begin(&mut self) {
        self.first = None;
        self.last = None;
        self.step = None;
    }

    pub(crate) fn watch_step(&mut self, step: Step) {
        self.step = Some(step);
    }

    /// When something is due.
    pub(crate) fn due(&self, tasks: &Tasks) -> Option<Instant> {
        let step = self.step.as_ref().map(|step| step.began + WAIT_MAX);
        let step = step.filter(|_| !tasks.running().is_empty());
        [self.stops_due(), step].into_iter().flatten().min()
    }

    /// When the client is to be told of stops, while others run.
    pub(crate) fn stops_due(&self) -> Option<Instant> {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return None;
        };
        if self.fresh.is_empty() {
            return None;
        }
        match &self.step {
            Some(step) => Some(step.began + WAIT_MAX),
            None => Some((last + QUIET).min(first + WAIT_MAX)),
        }
    }
}
