//! Looking at tasks a few times, while they run in between.

use std::time::Duration;

use sdm_debug::Command;
use sdm_debug::command::ProbeSpec;
use sdm_debug::reply::StopReason;
use sdm_debug::rules::{Merged, Probes};
use sdm_diagnose::Observed;
use sdm_idset::IdSet;
use sdm_view::gather::join;
use sdm_view::item::Happening;

use crate::shell::model::goal::{Goal, Waited};
use crate::shell::model::open_commands::RunEnd;
use crate::shell::{SessionHandle, Verdict};

/// How long tasks run between two samples.
pub(super) const BETWEEN: Duration = Duration::from_millis(500);
/// How long interrupted tasks are given to stop.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How long a task runs before it is looked at again whose stack could not be read to its end.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// How often it is looked at again. In the middle of the few functions that gdb finds no way out of, a runtime
/// spends some percent of its time.
const RETRIES: u32 = 8;

/// How long is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// How often.
    pub samples: u32,
    /// How long the tasks run between two looks.
    pub between: Duration,
}

impl Looks {
    /// So many looks, half a second apart, or over so many seconds where that is longer.
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

/// Looks at the tasks so often, and lets them run in between. Gives who was not seen at each look, and why.
pub(super) async fn sample(
    session: &SessionHandle,
    line: &str,
    (looked, looks): (&IdSet, Looks),
    observed: &mut Observed,
    since: u64,
) -> Vec<(IdSet, String)> {
    let began = session.now();
    let mut missed = Vec::new();
    for number in 0..looks.samples {
        if number > 0 {
            observed.ran += run_for(session, line, (looked, looks.between), since).await;
        }
        if session.is_over() || session.interrupted_since(since) {
            break;
        }
        let unseen = all_of(&observed.unseen);
        let spec = ProbeSpec {
            compare: number > 0,
            waits: number + 1 == looks.samples,
        };
        let asked = looked.union(&unseen);
        let (mut probes, mut failed) = probe(session, line, &asked, spec).await;
        look_again(session, line, &mut probes, (looked, spec), since).await;
        // Where nobody could be asked nothing was seen.
        if probes == Probes::default() {
            continue;
        }
        let answered = IdSet::union_all(probes.stacks.iter().map(|(tasks, _)| tasks));
        let mut silent = looked.difference(&answered).difference(&probes.cut);
        failed.push((silent.clone(), "no answer".to_owned()));
        for (tasks, why) in failed {
            let tasks = tasks.intersection(&silent);
            silent.subtract(&tasks);
            if !tasks.is_empty() {
                join(&mut missed, &tasks, why);
            }
        }
        observed.samples.push(probes);
    }
    observed.span = session.now() - began;
    missed
}

/// Who was not seen at each look, though it neither ended nor stopped by itself. True where there is nobody.
pub(super) fn note_missed(missed: Vec<(IdSet, String)>, observed: &mut Observed) -> bool {
    let mut told = all_of(&observed.gone).union(&all_of(&observed.stood));
    let mut is_whole = true;
    for (tasks, why) in missed {
        let tasks = tasks.difference(&told);
        if !tasks.is_empty() {
            is_whole = false;
            told.union_with(&tasks);
            let what = format!("not judged: it could not be looked at each time: {why}");
            join(&mut observed.unseen, &tasks, what);
        }
    }
    is_whole
}

/// A stack that was not read to its end says nothing: those tasks run on for a moment and are looked at again.
async fn look_again(
    session: &SessionHandle,
    line: &str,
    probes: &mut Probes,
    (among, spec): (&IdSet, ProbeSpec),
    since: u64,
) {
    for _ in 0..RETRIES {
        let partial = probes.marks.partial.intersection(among);
        let partial = partial.intersection(&session.standing());
        if partial.is_empty() || session.is_over() || session.interrupted_since(since) {
            return;
        }
        run_for(session, line, (&partial, RETRY_AFTER), since).await;
        let (again, _) = probe(session, line, &partial, spec).await;
        // What has come in the way is no reason to say nothing of what was seen before.
        if again == Probes::default() {
            return;
        }
        probes.forget(&partial);
        probes.absorb(again);
    }
}

/// Gives how long they ran.
pub(super) async fn run_for(
    session: &SessionHandle,
    line: &str,
    (tasks, time): (&IdSet, Duration),
    since: u64,
) -> Duration {
    let began = session.now();
    let tasks = tasks.intersection(&free(session));
    if tasks.is_empty() {
        return Duration::ZERO;
    }
    session.send_unattended(line, &tasks, &Command::Continue, RunEnd::Looked);
    let until = session.now() + time;
    while session.now() < until && !session.is_over() && !session.interrupted_since(since) {
        session.turn(Some(until)).await;
        if session.take_break().is_some() {
            session.edit(|model| model.requests.interrupts += 1);
        }
    }
    let running = session.running().intersection(&tasks);
    stop_quietly(session, line, &running, since).await;
    session.now() - began
}

/// Stops tasks without a word; false where a person gave up waiting for it. `since` is how many
/// interrupts there were when the look at the tasks began.
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
        // Some were not told to stop: nobody waits for them.
        return false;
    }
    let until = Some(session.now() + STOP_WAIT);
    let waited = session
        .wait_for(&Goal::Still(tasks.clone(), RunEnd::Looked), line, until)
        .await;
    verdict != Verdict::GivenUp && waited != Waited::GivenUp
}

/// Asks all of the tasks one question, however many they are; gives who could not answer too, and why.
pub(super) async fn probe(
    session: &SessionHandle,
    line: &str,
    tasks: &IdSet,
    spec: ProbeSpec,
) -> (Probes, Vec<(IdSet, String)>) {
    let mut probes = Probes::default();
    if tasks.is_empty() {
        return (probes, Vec::new());
    }
    let command = Command::Probe(spec);
    let (_, open) = session.ask_quietly(line, tasks, &command).await;
    let Some(open) = open else {
        return (probes, Vec::new());
    };
    let mut gathered = open.gathered;
    if let Some((_, Merged::Probes(found))) = gathered.take_merged() {
        probes = *found;
    }
    probes.cut.union_with(&gathered.others);
    let failed = gathered.failed.into_iter();
    let failed = failed.map(|(tasks, failure)| (tasks, failure.text));
    (probes, failed.chain(gathered.missing).collect())
}

/// All of whom something is said.
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

/// Those that stand because they were to be looked at, and for nothing else.
pub(super) fn free(session: &SessionHandle) -> IdSet {
    let is_ours = |reason: &_| matches!(reason, StopReason::Interrupted | StopReason::Attached);
    where_stopped(session, is_ours).intersection(&session.standing())
}
