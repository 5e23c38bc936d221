//! Stops to report to the client, and the time of the report.

use std::time::{Duration, Instant};

use sdm_idset::IdSet;

use crate::tasks::Tasks;

/// Time without further stops after which the present ones are reported to the client, while other tasks run.
const QUIET: Duration = Duration::from_millis(150);
/// Maximum delay of the report, and time after which a step reports the tasks that have not arrived.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(1);

/// A step that some tasks have not completed yet.
#[derive(Debug)]
pub(crate) struct Step {
    /// The time at which the step began.
    pub(crate) began: Instant,
    /// The name of the step in messages: `next`.
    pub(crate) said: &'static str,
    /// The tasks that the step moves.
    pub(crate) moved: IdSet,
}

/// Stops that the client does not know yet.
#[derive(Debug, Default)]
pub(crate) struct PendingStops {
    /// Tasks that have stopped.
    pub(crate) fresh: IdSet,
    /// Tasks that are asked for their stacks.
    pub(crate) asked: IdSet,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
    /// The step that is being watched; `None` if there is none.
    pub(crate) step: Option<Step>,
    /// Tasks that are to be stopped since the client's last request, and the number of attempts.
    pub(crate) pausing: (IdSet, u32),
    /// Tasks that have stopped where the client does not want a stop, and are to be resumed.
    pub(crate) passing: IdSet,
    /// Tasks that another client has resumed: this client does not wait for their stops.
    pub(crate) foreign: IdSet,
    /// True if tasks have ended or joined, or were resumed by another client or by a console line.
    pub(crate) changed: bool,
}

impl PendingStops {
    /// Forgets earlier stops, as tasks are resumed.
    pub(crate) fn begin(&mut self) {
        self.first = None;
        self.last = None;
        self.step = None;
    }

    pub(crate) fn watch_step(&mut self, step: Step) {
        self.step = Some(step);
    }

    /// The time at which stops or a step are due; `None` if none is.
    pub(crate) fn due(&self, tasks: &Tasks) -> Option<Instant> {
        let step = self.step.as_ref().map(|step| step.began + WAIT_MAX);
        let step = step.filter(|_| !tasks.running().is_empty());
        [self.stops_due(), step].into_iter().flatten().min()
    }

    /// The time at which the stops are reported to the client, while other tasks run. `None` without unreported stops.
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
