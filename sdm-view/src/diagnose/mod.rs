//! Why is it stuck: what a few samples of the stacks show, and no more than that.
//!
//! [`judge`] is a pure function of what was [`Observed`]: who changed between the samples and who
//! did not, who waits where, whose lock or message. It names the odd ones out first, and nobody
//! where no single task is to blame.

mod judge;
mod source;
#[cfg(test)]
mod tests;
mod wait;

use std::time::Duration;

use sdm_debug::reply::TaskStacks;
use sdm_idset::{IdSet, TaskId};

pub use judge::judge;
pub use source::call_arguments;
pub use wait::{Wait, WaitKind, is_lock};

/// One look at all tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The folded stacks.
    pub stacks: Vec<(IdSet, TaskStacks)>,
    /// The variables of the innermost user frame, as text to be compared.
    pub inner: Vec<(IdSet, String)>,
    /// Those of the frames around it.
    pub outer: Vec<(IdSet, String)>,
    /// Time on a processor so far, in clock ticks, where it is known.
    pub ticks: Vec<(TaskId, u64)>,
}

/// A message that a task waits for or wants to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The tasks that wait for it.
    pub tasks: IdSet,
    /// The other side, where it is one rank.
    pub peer: Option<u32>,
    /// The line of source.
    pub source: String,
    /// What is known of it: `left_neighbour = 2`.
    pub facts: Vec<String>,
}

/// What a few samples have shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The samples, in order; the tasks ran in between.
    pub samples: Vec<Sample>,
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
    /// What those wait for that are in a send or receive.
    pub messages: Vec<Message>,
    /// Circles of threads that hold each other's locks: of whom, and the circle in words.
    pub circles: Vec<(IdSet, Vec<String>)>,
    /// What is known of files that are waited for.
    pub files: Vec<(IdSet, String)>,
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
    /// About whom.
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
