//! Sampling the stacks of tasks several times, while they run in between.

use std::cell::Cell;
use std::time::Duration;

use sdm_debug::command::{LookSpec, ProbeSpec};
use sdm_debug::reply::StopReason;
use sdm_debug::rules::{Merged, Probes};
use sdm_debug::{Command, Failure, FailureCode};
use sdm_diagnose::Observed;
use sdm_idset::{IdSet, TaskId};
use sdm_view::coalesce::join;
use sdm_view::item::Happening;

use crate::shell::model::goal::{Goal, WaitOutcome};
use crate::shell::model::open_commands::RunEnd;
use crate::shell::{SessionHandle, Verdict};

/// Time that tasks run between two samples.
pub(super) const BETWEEN: Duration = Duration::from_millis(500);
/// Outcome of an unattached task whose process no longer exists.
const ENDED: &str = "ended: the process no longer exists";
/// Outcome of a task that a signal has stopped.
pub(super) const HALTED: &str = "stopped by a signal (SIGSTOP or another stop signal)";
/// State letter of a stopped process in `/proc/PID/stat`.
const STOPPED_LETTER: char = 'T';
/// Time limit for interrupted tasks to stop.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// Time that a task runs before its stack is read again, if it was incomplete.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// Maximum number of such repeated reads. A runtime spends some percent of its time inside the few
/// functions that gdb cannot unwind. At a fifth of its time, more than was seen, a task stays incomplete in one of two
/// million samples (0.2 to the ninth): one diagnosis of 1,000 tasks in 500 has a task that it does not judge. With four
/// reads it would be every other one. A task that stays there costs eight times [`RETRY_AFTER`] a sample.
const RETRIES: u32 = 8;

/// The number of samples and their interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// Number of samples.
    pub samples: u32,
    /// Time that the tasks run between two samples.
    pub between: Duration,
}

impl Looks {
    /// A number of samples, half a second apart, or spread over `seconds` if that is longer.
    #[must_use]
    pub fn of(samples: u32, seconds: Option<u32>) -> Self {
        let gaps = samples.saturating_sub(1).max(1);
        let over = Duration::from_secs(seconds.unwrap_or_default().into());
        Self {
            samples,
            between: (over / gaps).max(BETWEEN),
        }
    }
}

/// A sampler of tasks for a diagnosis.
pub(super) struct Sampler<'a> {
    pub(super) session: &'a SessionHandle,
    /// The command line of the diagnosis.
    pub(super) line: &'a str,
    /// Number of the user's interrupts when sampling began.
    pub(super) since: u64,
    /// The processes that gdb is not attached to. They run, and stop for an instant at each sample.
    pub(super) free: &'a [(u32, i32)],
    /// A sample that was taken before, and counts as the first one.
    pub(super) first: Cell<Option<LookResult>>,
}

/// One sample, and the tasks that could not answer, with the reason.
pub(super) type LookResult = (Probes, Vec<(IdSet, Failure)>);

impl Sampler<'_> {
    /// True if the user has interrupted the sampling, or the session is over.
    fn is_over(&self) -> bool {
        self.session.is_over() || self.session.interrupted_since(self.since)
    }

    /// The tasks that gdb is not attached to.
    pub(super) fn free_tasks(&self) -> IdSet {
        self.free.iter().map(|(task, _)| TaskId(*task)).collect()
    }

    /// Takes the samples, and lets the tasks run in between. Returns the tasks that are missing from a
    /// sample, with the reason.
    pub(super) async fn sample(
        &self,
        (looked, looks): (&IdSet, Looks),
        observed: &mut Observed,
    ) -> Vec<(IdSet, Failure)> {
        let session = self.session;
        let began = session.now();
        let mut previous = began;
        let mut missed = Vec::new();
        let mut looked = looked.clone();
        for number in 0..looks.samples {
            let mut ran = Duration::ZERO;
            if number > 0 {
                ran = self.run_for(&looked, looks.between).await;
            }
            if self.is_over() {
                break;
            }
            let unseen = all_of(&observed.unseen);
            let spec = ProbeSpec {
                compare: number > 0,
                waits: number + 1 == looks.samples,
            };
            let asked = looked.union(&unseen);
            let (mut probes, mut failed) = match self.first.take() {
                Some(looked) => looked,
                None => self.probe(&asked, spec).await,
            };
            // Tasks without gdb also run while they are asked.
            let since = session.now() - std::mem::replace(&mut previous, session.now());
            if number > 0 && looked.is_subset(&self.free_tasks()) {
                ran = since;
            }
            observed.ran += ran;
            let halted = self.halted(&probes);
            if !halted.is_empty() {
                join(&mut observed.halted, &halted, HALTED.to_owned());
                probes.forget(&halted);
                looked.subtract(&halted);
            }
            self.look_again(&mut probes, (&looked, spec)).await;
            // Without an answer of any task, this look has no result but the failures.
            let has_result = probes != Probes::default();
            let answered = IdSet::union_all(probes.stacks.iter().map(|(tasks, _)| tasks));
            let mut silent = looked.difference(&answered).difference(&probes.cut);
            if has_result {
                let silence = Failure::new(FailureCode::TimedOut, "no answer");
                failed.push((silent.clone(), silence));
                observed.samples.push(probes);
            }
            for (tasks, why) in failed {
                let tasks = tasks.intersection(&silent);
                silent.subtract(&tasks);
                if !tasks.is_empty() {
                    join(&mut missed, &tasks, why);
                }
            }
        }
        observed.span = session.now() - began;
        missed
    }

    /// Tasks without gdb that a signal has stopped, so that they do not run between samples.
    fn halted(&self, probes: &Probes) -> IdSet {
        let stopped = probes.processes.iter();
        let stopped = stopped.filter(|(_, process)| process.letter == STOPPED_LETTER);
        IdSet::union_all(stopped.map(|(tasks, _)| tasks)).intersection(&self.free_tasks())
    }

    /// Reads incomplete stacks again, after their tasks have run for a moment. An incomplete stack proves
    /// nothing.
    async fn look_again(&self, probes: &mut Probes, (among, spec): (&IdSet, ProbeSpec)) {
        for _ in 0..RETRIES {
            let partial = probes.marks.partial.intersection(among);
            let there = self.session.standing().union(&self.free_tasks());
            let partial = partial.intersection(&there);
            if partial.is_empty() || self.is_over() {
                return;
            }
            self.run_for(&partial, RETRY_AFTER).await;
            let (again, _) = self.probe(&partial, spec).await;
            // If the repeated query fails, the earlier, incomplete result is kept.
            if again == Probes::default() {
                return;
            }
            probes.forget(&partial);
            probes.absorb(again);
        }
    }

    /// Lets the tasks run for a time. Returns the time that they ran.
    pub(super) async fn run_for(&self, tasks: &IdSet, time: Duration) -> Duration {
        let session = self.session;
        let began = session.now();
        let held = tasks.intersection(&free(session));
        if held.is_empty() && tasks.is_disjoint(&self.free_tasks()) {
            return Duration::ZERO;
        }
        if !held.is_empty() {
            session.send_unattended(self.line, &held, &Command::Continue, RunEnd::Looked);
        }
        let until = session.now() + time;
        while session.now() < until && !self.is_over() {
            session.turn(Some(until)).await;
            if session.take_break().is_some() {
                session.edit(|model| model.requests.interrupts += 1);
            }
        }
        let running = session.running().intersection(&held);
        stop_quietly(session, self.line, &running, self.since).await;
        session.now() - began
    }

    /// Sends one probe to all of the tasks. Returns also the tasks that could not answer.
    pub(super) async fn probe(&self, tasks: &IdSet, spec: ProbeSpec) -> LookResult {
        let free = tasks.intersection(&self.free_tasks());
        let look = Command::Look(LookSpec {
            pids: self.free.to_vec(),
            full: false,
            probe: Some(spec),
        });
        let (mut probes, mut failed) = self.ask(&free, &look).await;
        let (others, more) = self
            .ask(&tasks.difference(&free), &Command::Probe(spec))
            .await;
        probes.absorb(others);
        failed.extend(more);
        (probes, failed)
    }

    async fn ask(&self, tasks: &IdSet, command: &Command) -> LookResult {
        let mut probes = Probes::default();
        if tasks.is_empty() {
            return (probes, Vec::new());
        }
        let (_, open) = self.session.ask_quietly(self.line, tasks, command).await;
        let Some(open) = open else {
            return (probes, Vec::new());
        };
        let mut gathered = open.gathered;
        if let Some((_, Merged::Probes(found))) = gathered.take_merged() {
            probes = *found;
        }
        probes.cut.union_with(&gathered.others);
        let missing = gathered.missing.into_iter();
        let missing = missing.map(|(tasks, why)| (tasks, Failure::new(FailureCode::TimedOut, why)));
        (probes, gathered.failed.into_iter().chain(missing).collect())
    }
}

/// Notes the tasks that are missing from a sample although they neither ended nor stopped by themselves.
/// Returns true if there are none.
pub(super) fn note_missed(missed: Vec<(IdSet, Failure)>, observed: &mut Observed) -> bool {
    for (tasks, why) in &missed {
        if why.code == FailureCode::NotRunning {
            join(&mut observed.gone, tasks, ENDED.to_owned());
        }
    }
    let mut told = all_of(&observed.gone).union(&all_of(&observed.stood));
    let mut is_whole = true;
    // The judgement gives another reason for tasks with incomplete stacks.
    let partial = observed.samples.iter().map(|sample| &sample.marks.partial);
    let partial = IdSet::union_all(partial);
    for (tasks, why) in missed {
        let tasks = tasks.difference(&told);
        is_whole &= tasks.is_empty();
        told.union_with(&tasks);
        let tasks = tasks.difference(&partial);
        if !tasks.is_empty() {
            let why = why.text;
            let what = format!("not judged: the process was not seen in each sample: {why}");
            join(&mut observed.unseen, &tasks, what);
        }
    }
    is_whole
}

/// Stops tasks without showing it. Returns false if the user has interrupted the wait. `since` is the
/// number of interrupts when sampling began.
pub(in crate::shell) async fn stop_quietly(
    session: &SessionHandle,
    line: &str,
    tasks: &IdSet,
    since: u64,
) -> bool {
    if tasks.is_empty() {
        return true;
    }
    let before = session.interrupted_since(since);
    let (verdict, _) = session.ask_quietly(line, tasks, &Command::Interrupt).await;
    if session.interrupted_since(since) && !before {
        // After Ctrl-C some tasks may not have received the interrupt, so their stop is not waited for.
        return false;
    }
    let until = Some(session.now() + STOP_WAIT);
    let waited = session
        .wait_for(&Goal::Still(tasks.clone(), RunEnd::Looked), line, until)
        .await;
    verdict != Verdict::GivenUp && waited != WaitOutcome::GivenUp
}

/// All tasks in a list of texts.
pub(super) fn all_of(said: &[(IdSet, String)]) -> IdSet {
    IdSet::union_all(said.iter().map(|(tasks, _)| tasks))
}

pub(super) fn where_stopped(session: &SessionHandle, is: fn(&StopReason) -> bool) -> IdSet {
    session.read(|model| {
        model.tasks.where_last(|last| match last {
            Happening::Stopped(stop) => is(&stop.reason),
            _ => false,
        })
    })
}

/// Tasks that are stopped only by an interrupt, of a sample or of the user, or by an attach.
pub(super) fn free(session: &SessionHandle) -> IdSet {
    let is_ours = |reason: &_| matches!(reason, StopReason::Interrupted | StopReason::Attached);
    where_stopped(session, is_ours).intersection(&session.standing())
}
