//! Diagnosis of hanging MPI jobs from a few samples of their stacks.
//!
//! [`judge`] is a pure function of the observations ([`Observed`]): stacks, changes between samples,
//! arguments of calls, locks. It builds a [`WaitGraph`] from the waits of all ranks that stayed in one
//! call, and reduces it. A [`Step`] says how much that proves.

mod blame;
mod cause;
mod collective_groups;
mod collective_order;
mod culprits;
mod dot;
mod drawn;
mod endings;
mod epochs;
mod evidence;
mod findings;
mod graph;
mod json;
mod judge;
mod members;
mod messages;
mod mismatch;
mod motion;
mod neighbors;
mod observations;
mod operations;
mod outside;
mod strict;
#[cfg(test)]
mod tests;
mod threads;
mod verdict;
mod wait;
mod wait_for;
mod window_locks;

use std::collections::BTreeMap;
use std::time::Duration;

use sdm_debug::rules::Probes;
use sdm_idset::{IdSet, TaskId};

pub use cause::Cause;
pub use culprits::Guilty;
pub use dot::dot;
pub use evidence::away_text;
pub use graph::{Reduced, SetNeed, WaitGraph};
pub use judge::judge;
pub use observations::{
    OBSERVATIONS_BYTES_MAX, OBSERVATIONS_VERSION, Observations, ObservationsError,
};
pub use wait::{Wait, WaitKind};

/// The observations that a diagnosis rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The samples, in order. The tasks ran between the samples.
    pub samples: Vec<Probes>,
    /// Time from the first to the last sample.
    pub span: Duration,
    /// Time for which the tasks ran within `span`.
    pub ran: Duration,
    /// Tasks that have ended or are lost, with the reason: `exited with code 1`.
    pub gone: Vec<(IdSet, String)>,
    /// Tasks that are about to crash or to abort, or that have aborted the job, with the reason.
    pub aborting: Vec<(IdSet, String)>,
    /// Tasks whose process was stopped by a signal before the first sample, with the reason.
    pub halted: Vec<(IdSet, String)>,
    /// Tasks whose process is in an unusual state: `in the kernel, uninterruptible`.
    pub states: Vec<(IdSet, String)>,
    /// Tasks that were stopped before the diagnosis and did not run between the samples, with the reason.
    pub stood: Vec<(IdSet, String)>,
    /// Tasks that could not be sampled, with the reason.
    pub unseen: Vec<(IdSet, String)>,
    /// Ranks of the job that were not part of the request.
    pub outside: IdSet,
    /// True if the tasks' numbers are not ranks, so that ranks in a call's arguments do not name tasks.
    pub unranked: bool,
    /// True if `--check=strict` has standard sends wait for their receives.
    pub strict_sends: bool,
    /// Process ids of the tasks on this host.
    pub pids: BTreeMap<i32, TaskId>,
}

impl Observed {
    /// Tasks that got no processor between the samples and wait in no system call. Nothing can be said
    /// about them.
    #[must_use]
    pub fn starved(&self) -> IdSet {
        motion::starved(&self.samples)
    }

    /// Evaluates a sample that was taken while only `tasks` ran. The sample is not kept. Tasks that neither changed nor
    /// exchanged data in it no longer count as having exchanged data.
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

/// The strength of a verdict, which is never higher than the evidence supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Proved: some tasks wait only for one another.
    Deadlock,
    /// Proved: some tasks wait for an event that cannot come.
    CannotGoOn,
    /// Some tasks wait for others that can go on by themselves.
    HeldUp,
    /// No task was seen to wait for the whole time.
    NoHangSeen,
    /// A fact that the verdict depends on was not observed.
    CannotTell,
}

impl Step {
    /// The name of this verdict in the records of `--json`.
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

    /// The name of this verdict in text for users: `Deadlock`.
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

    /// True if a hang is proved.
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

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The tasks that the evidence points at.
    Suspect,
    /// Tasks that can go on, and that others wait for.
    Holds,
    /// Tasks that have ended, were killed, or are lost.
    Gone,
    /// Tasks that a signal has stopped.
    Halted,
    /// Tasks that wait, without any change.
    Waits,
    /// Tasks that run in one place.
    Runs,
    /// Tasks that make progress.
    Progress,
    /// Tasks that cannot be judged: they did not run, could not be sampled, have an incomplete stack or an unusual
    /// state, or exchanged data while they stayed in a call.
    Unknown,
}

impl Kind {
    /// The name of this kind of finding in the records of `--json`.
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

/// A finding about a group of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The tasks of the finding.
    pub tasks: IdSet,
    /// The kind of finding.
    pub kind: Kind,
    /// The state of the tasks as text: lower case, no full stop.
    pub what: String,
    /// The observations that support the finding, as lines of text.
    pub evidence: Vec<String>,
}

/// The result of a judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Number of samples.
    pub samples: usize,
    /// Time from the first to the last sample.
    pub span: Duration,
    /// The verdict as one sentence, without full stop.
    pub conclusion: String,
    /// The strength of the verdict.
    pub step: Step,
    /// The cause that the diagnosis reports.
    pub cause: Cause,
    /// The ranks to which the error is attributed, with their calls. These are the ranks to blame or, if no particular
    /// rank is to blame, the ranks between which the error is. If ranks are held up, these are the ranks that hold them
    /// up.
    pub guilty: Vec<Guilty>,
    /// The tasks to blame, if the verdict is proved: several if either side of a mismatch may be at fault. Empty if no
    /// particular task is to blame.
    pub suspects: IdSet,
    /// The tasks that can go on, and that others wait for.
    pub held_up_by: IdSet,
    /// The cycle of ranks that wait for each other, without its first rank again at the end. Empty without a cycle.
    pub circle: Vec<u32>,
    /// The wait-for graph of the judgement.
    pub graph: WaitGraph,
    /// The ranks that would be proved stuck if some of them had not exchanged data with each other, or with running
    /// ranks by shared memory. A sample while only these ranks run shows whether they are stuck.
    pub doubtful: IdSet,
    /// All findings, most important first.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// True for a deadlock that has no suspect and rests on assumptions. There is no deadlock if ranks with pending
    /// requests or unknown peers can go on. A long message that the network card moves by itself looks the same as such
    /// a deadlock.
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
