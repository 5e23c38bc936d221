//! Why is it stuck: what a few samples of the stacks show, and no more than that.
//!
//! [`judge`] is a pure function of what was [`Observed`]: who changed between the samples and who did not, who waits
//! where, whose lock or message. From the waits of those who stood in the same call all the time it makes a
//! [`WaitGraph`], reduces it, and says in [`Step`]s what that proves.

mod blocked;
mod cause;
mod dot;
mod endings;
mod evidence;
mod findings;
mod graph;
mod guilty;
mod json;
mod judge;
mod messages;
mod mismatch;
mod needs;
mod observations;
mod operations;
mod past;
mod seen;
#[cfg(test)]
mod tests;
mod threads;
mod verdict;
mod wait;
mod window_locks;

use std::collections::BTreeMap;
use std::time::Duration;

use sdm_debug::rules::Probes;
use sdm_idset::{IdSet, TaskId};

pub use cause::Cause;
pub use dot::dot;
pub use evidence::away_text;
pub use graph::{Reduced, SetNeed, WaitGraph};
pub use guilty::Guilty;
pub use judge::judge;
pub use observations::{
    OBSERVATIONS_BYTES_MAX, OBSERVATIONS_VERSION, Observations, ObservationsError,
};
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
    /// Tasks that are about to crash or to abort, or that have ended the job for all, and how.
    pub aborting: Vec<(IdSet, String)>,
    /// Tasks whose process had been stopped by a signal before anybody looked, and how.
    pub halted: Vec<(IdSet, String)>,
    /// Tasks whose process is in a state of its own: `in the kernel, not to be interrupted`.
    pub states: Vec<(IdSet, String)>,
    /// Tasks that stood before and were not let run, and why.
    pub stood: Vec<(IdSet, String)>,
    /// Tasks that could not be looked at, and why.
    pub unseen: Vec<(IdSet, String)>,
    /// Ranks of the job that nobody was asked to look at.
    pub outside: IdSet,
    /// The numbers of the tasks are no ranks: whom a call names is not known.
    pub unranked: bool,
    /// The processes of tasks on this host.
    pub pids: BTreeMap<i32, TaskId>,
}

impl Observed {
    /// Who was at no time on a processor between the samples, and waits in no system call: nothing can be said of these.
    #[must_use]
    pub fn starved(&self) -> IdSet {
        seen::starved(&self.samples)
    }

    /// Takes in how some tasks were while only they ran: who was as before has exchanged no data with the others of them.
    pub fn add_alone(&mut self, tasks: &IdSet, alone: &Probes) {
        let seen = IdSet::union_all(alone.stacks.iter().map(|(tasks, _)| tasks));
        let quiet = seen.intersection(tasks);
        let quiet = quiet.difference(&alone.marks.changed());
        let quiet = quiet
            .difference(&alone.marks.exchanged)
            .difference(&alone.marks.partial);
        for sample in &mut self.samples {
            sample.marks.exchanged.subtract(&quiet);
        }
    }
}

/// How much was found: never more than the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Each of some tasks waits only for others of them.
    Deadlock,
    /// Some wait for what cannot come.
    CannotGoOn,
    /// Some wait for others that can go on by themselves.
    HeldUp,
    /// Nobody was seen to wait all the time.
    NoHangSeen,
    /// Something that it depends on was not seen.
    CannotTell,
}

impl Step {
    /// Its name, as in `--json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::CannotGoOn => "cannot_go_on",
            Self::HeldUp => "held_up",
            Self::NoHangSeen => "no_hang_seen",
            Self::CannotTell => "cannot_tell",
        }
    }

    /// How it is said: `Deadlock`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Deadlock => "Deadlock",
            Self::CannotGoOn => "Cannot go on",
            Self::HeldUp => "Held up",
            Self::NoHangSeen => "No hang seen",
            Self::CannotTell => "Cannot tell",
        }
    }

    /// True where it is proved that something is stuck.
    #[must_use]
    pub fn is_proved(self) -> bool {
        matches!(self, Self::Deadlock | Self::CannotGoOn)
    }

    /// The exit code of `sdm diagnose`.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::NoHangSeen => 0,
            Self::Deadlock => 1,
            Self::CannotTell => 2,
            Self::CannotGoOn => 3,
            Self::HeldUp => 4,
        }
    }
}

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The evidence points at these.
    Suspect,
    /// Others wait for these, who can go on.
    Holds,
    /// Gone: ended, killed, lost.
    Gone,
    /// A signal has stopped them.
    Halted,
    /// They wait, and nothing of them changed.
    Waits,
    /// They run in one place.
    Runs,
    /// They make progress.
    Progress,
    /// They were not let run, could not be looked at, or exchanged data while they stayed in a call.
    Unknown,
}

impl Kind {
    /// Its name, as in `--json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Holds => "holds",
            Self::Gone => "gone",
            Self::Halted => "halted",
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
    /// How much that is.
    pub step: Step,
    /// The class of the error.
    pub cause: Cause,
    /// Whose error it is, with the calls that they are in: those to blame, or those between which it is where no single one is.
    pub guilty: Vec<Guilty>,
    /// Whom the evidence points at, where it is proved that something is stuck; nobody where no single one is to
    /// blame.
    pub suspects: IdSet,
    /// Who can go on, and is waited for.
    pub held_up_by: IdSet,
    /// The circle of ranks that wait for each other; the first one is not repeated.
    pub circle: Vec<u32>,
    /// The waits that it was judged by.
    pub graph: WaitGraph,
    /// Who would be proved to be stuck, were it not for data that some of them exchanged: with each other, or with memory that ranks share who
    /// go on. Which of it shows where only they run.
    pub doubtful: IdSet,
    /// All that was found, what matters most first.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// True for a deadlock that names nobody, and is none if those go on who wait for requests or for they do not know whom: a message that
    /// takes long, and that a network card moves by itself, looks the same.
    #[must_use]
    pub fn is_guessed(&self) -> bool {
        if self.step != Step::Deadlock || !self.suspects.is_empty() {
            return false;
        }
        let mut graph = self.graph.clone();
        graph.live.union_with(&graph.by_request);
        let guessed = self.graph.sets.iter().filter(|set| set.guessed);
        guessed.for_each(|set| graph.live.union_with(&set.who));
        graph.reduce().blocked.is_empty()
    }
}
