//! Why is it stuck: what a few samples of the stacks show, and no more than that.
//!
//! [`judge`] is a pure function of what was [`Observed`]: who changed between the samples and who
//! did not, who waits where, whose lock or message. It names the odd ones out first, and nobody
//! where no single task is to blame.

mod evidence;
mod judge;
#[cfg(test)]
mod tests;
mod wait;

use std::time::Duration;

use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

pub use judge::judge;
pub use wait::{Wait, WaitKind};

/// What a few samples have shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The samples, in order; the tasks ran in between.
    pub samples: Vec<Probes>,
    /// From the first to the last.
    pub span: Duration,
    /// How long of that the tasks ran.
    pub ran: Duration,
    /// Tasks that are gone, and how: `exited with code 1`.
    pub gone: Vec<(IdSet, String)>,
    /// Tasks whose process is in a state of its own: `is stopped by a signal`.
    pub states: Vec<(IdSet, String)>,
    /// Tasks that stood before and were not let run, and why.
    pub stood: Vec<(IdSet, String)>,
    /// Tasks that could not be looked at, and why.
    pub unseen: Vec<(IdSet, String)>,
}

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The evidence points at these.
    Suspect,
    /// Gone: ended, killed, lost.
    Gone,
    /// They wait, and nothing of them changed.
    Waits,
    /// They run in one place.
    Runs,
    /// They make progress.
    Progress,
    /// They were not let run, or could not be looked at.
    Unknown,
}

impl Kind {
    /// Its name, as in `--json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Gone => "gone",
            Self::Waits => "waits",
            Self::Runs => "runs",
            Self::Progress => "progress",
            Self::Unknown => "unknown",
        }
    }
}

/// Something found about some tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The tasks that it was found of.
    pub tasks: IdSet,
    /// What it is.
    pub kind: Kind,
    /// What they do: lower case, no full stop.
    pub what: String,
    /// What was seen that says so.
    pub evidence: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// How many samples.
    pub samples: usize,
    /// From the first to the last.
    pub span: Duration,
    /// In one sentence, without its full stop.
    pub conclusion: String,
    /// Whom the evidence points at; nobody where no single one is to blame.
    pub suspects: IdSet,
    /// True where something is stuck, as far as was seen.
    pub stuck: bool,
    /// All that was found, what matters most first.
    pub findings: Vec<Finding>,
}
