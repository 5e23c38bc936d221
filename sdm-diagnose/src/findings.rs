//! The findings of a diagnosis as text, one for each group of tasks in the same call.

use std::collections::BTreeMap;

use sdm_debug::fold::STOPPED;
use sdm_debug::probe::Within;
use sdm_debug::reply::TaskStacks;
use sdm_idset::IdSet;

use super::evidence::{Evidence, in_kernel};
use super::motion::{SamePlace, Seen, groups};
use super::verdict::Verdict;
use super::wait::{WaitKind, place};
use super::{Finding, Kind, Observed, Step};

/// Reason why nothing is proved about a task that stays in a call.
const EXCHANGED: &str = "data was exchanged during the observation (shared memory, TCP)";

/// The findings, most important first.
pub(super) fn findings(
    observed: &Observed,
    evidence: &Evidence<'_>,
    seen: &Seen,
    still: &[SamePlace],
    verdict: &Verdict,
) -> Vec<Finding> {
    let mut list = apart(observed, verdict);
    list.extend(
        seen.unknown
            .iter()
            .flat_map(|unknown| not_judged(observed, unknown)),
    );
    let doubted = groups(&observed.samples, &seen.doubted);
    for group in still.iter().chain(&doubted) {
        const SAME: &str = "; nothing changed";
        let (verb, kind, changed) = match group.wait.kind {
            _ if group.tasks.is_subset(&seen.doubted) => ("staying", Kind::Unknown, ""),
            WaitKind::Running => ("standing", Kind::Runs, SAME),
            WaitKind::Poll => ("asking", Kind::Runs, SAME),
            WaitKind::Sleep => ("sleeping", Kind::Waits, SAME),
            _ => ("waiting", Kind::Waits, SAME),
        };
        let mut polls = seen.polls.iter();
        let polls = polls.find(|(_, tasks)| group.tasks.is_subset(tasks));
        let what = match (polls, group.wait.kind) {
            (Some((call, _)), WaitKind::Sleep) => {
                format!("polling with {call}, {verb} {}{changed}", group.wait.text())
            }
            _ => format!("{verb} {}{changed}", group.wait.text()),
        };
        for tasks in divided(&group.tasks, verdict) {
            let mut lines = lines_of(observed, evidence, &tasks);
            lines.extend(unfollowed(observed, &tasks));
            let counts = kind == Kind::Unknown || verdict.step == Step::CannotTell;
            if counts && !seen.exchanged.is_disjoint(&tasks) {
                lines.push(EXCHANGED.to_owned());
            }
            list.push(Finding {
                kind,
                what: what.clone(),
                evidence: lines,
                tasks,
            });
        }
    }
    list.extend(moving(observed, seen, verdict));
    for finding in &mut list {
        if finding.tasks.is_subset(&verdict.suspects) {
            finding.kind = Kind::Suspect;
        } else if finding.tasks.is_subset(&verdict.held_up_by) {
            finding.kind = Kind::Holds;
        }
    }
    let mut crowds: BTreeMap<String, u64> = BTreeMap::new();
    for finding in &list {
        *crowds.entry(finding.what.clone()).or_default() += finding.tasks.len();
    }
    // Among suspects, the places with the fewest tasks come first.
    let crowd = |one: &Finding| match one.kind {
        Kind::Suspect => crowds.get(&one.what).copied(),
        _ => None,
    };
    list.sort_by(|a, b| {
        let by_kind = a.kind.cmp(&b.kind).then(crowd(a).cmp(&crowd(b)));
        let size = b.tasks.len().cmp(&a.tasks.len());
        by_kind
            .then(size)
            .then(a.tasks.first().cmp(&b.tasks.first()))
    });
    list
}

/// Splits a group into the tasks that the verdict names and the other tasks.
fn divided(tasks: &IdSet, verdict: &Verdict) -> Vec<IdSet> {
    let named = verdict.suspects.union(&verdict.held_up_by);
    let parts = [tasks.intersection(&named), tasks.difference(&named)];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Findings about tasks that have ended, are stopped, or could not be sampled.
fn apart(observed: &Observed, verdict: &Verdict) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (kind, list) in [
        (Kind::Gone, &observed.gone),
        (Kind::Halted, &observed.halted),
        (Kind::Unknown, &observed.states),
        (Kind::Unknown, &observed.stood),
    ] {
        for (tasks, what) in list {
            findings.extend(divided(tasks, verdict).into_iter().map(|tasks| Finding {
                tasks,
                kind,
                what: what.clone(),
                evidence: Vec::new(),
            }));
        }
    }
    if !observed.outside.is_empty() {
        findings.push(Finding {
            tasks: observed.outside.clone(),
            kind: Kind::Unknown,
            what: "not sampled".to_owned(),
            evidence: Vec::new(),
        });
    }
    let last = observed.samples.last();
    findings.extend(observed.unseen.iter().map(|(tasks, what)| Finding {
        tasks: tasks.clone(),
        kind: Kind::Unknown,
        what: what.clone(),
        evidence: last.map_or_else(Vec::new, |last| in_kernel(last, tasks)),
    }));
    findings
}

/// Findings about tasks that cannot be judged, with the places where the last sample found them.
fn not_judged(observed: &Observed, (tasks, why): &(IdSet, String)) -> Vec<Finding> {
    let places = groups(&observed.samples, tasks);
    let known = IdSet::union_all(places.iter().map(|group| &group.tasks));
    let places = places.into_iter();
    let places = places.map(|group| {
        (
            group.tasks,
            vec![format!("last seen {}", group.wait.text())],
        )
    });
    let rest = (tasks.difference(&known), Vec::new());
    let all = places.chain([rest]).filter(|(tasks, _)| !tasks.is_empty());
    all.map(|(tasks, evidence)| Finding {
        tasks,
        kind: Kind::Unknown,
        what: why.clone(),
        evidence,
    })
    .collect()
}

/// Findings about tasks that go on: their place, and whether the state of their frames has changed.
fn moving(observed: &Observed, seen: &Seen, verdict: &Verdict) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Tasks that moved and then stopped or ended are reported already.
    let told = observed.stood.iter().chain(&observed.gone);
    let told = IdSet::union_all(told.map(|(tasks, _)| tasks));
    let mut rest = seen.moving.difference(&told);
    let polls = seen.polls.iter().map(|entry| ("polling with", entry));
    let sleeps = seen.sleeps.iter();
    let sleeps = sleeps.map(|entry| ("sleeping repeatedly in", entry));
    for (verb, (call, tasks)) in sleeps.chain(polls) {
        let tasks = tasks.intersection(&rest);
        let places = seen.within.iter();
        let places = places.filter(|(who, _)| !who.is_disjoint(&tasks));
        let places: Vec<String> = places.map(|(_, within)| place(&within.frame)).collect();
        for tasks in divided(&tasks, verdict) {
            findings.push(Finding {
                kind: Kind::Runs,
                what: match places.first() {
                    Some(first) => format!("{verb} {call}, within {first}"),
                    None => format!("{verb} {call}"),
                },
                evidence: processor_time(observed, &tasks).into_iter().collect(),
                tasks,
            });
        }
        rest.subtract(&tasks);
    }
    for (tasks, within) in &seen.within {
        let tasks = tasks.intersection(&rest);
        rest.subtract(&tasks);
        for tasks in divided(&tasks, verdict) {
            findings.push(Finding {
                kind: match within.depth {
                    0 => Kind::Progress,
                    _ => Kind::Runs,
                },
                what: stays(within),
                evidence: processor_time(observed, &tasks).into_iter().collect(),
                tasks,
            });
        }
    }
    // The function that these tasks stay in is unknown: a loop without visible changes, or another program.
    for group in groups(&observed.samples, &rest) {
        rest.subtract(&group.tasks);
        let verb = match group.wait.kind {
            WaitKind::Running => "running",
            _ => "making progress",
        };
        for tasks in divided(&group.tasks, verdict) {
            findings.push(Finding {
                kind: Kind::Progress,
                what: format!("{verb} {}", group.wait.text()),
                evidence: processor_time(observed, &tasks).into_iter().collect(),
                tasks,
            });
        }
    }
    for tasks in divided(&rest, verdict) {
        findings.push(Finding {
            tasks,
            kind: Kind::Progress,
            what: "making progress".to_owned(),
            evidence: Vec::new(),
        });
    }
    findings
}

fn stays(within: &Within) -> String {
    let changed = match within.changed {
        true => "its variables changed",
        false => "none of its variables changed",
    };
    let place = place(&within.frame);
    match (within.depth, within.noted) {
        (0, _) if within.changed => format!("making progress in {place}; {changed}"),
        (0, _) => format!("running in {place}; {changed}"),
        (_, true) => format!("running within {place}, which it did not leave; {changed}"),
        (_, false) => format!("running within {place} in each sample; {changed}"),
    }
}

/// The evidence about some tasks, with further notes, as lines of text.
fn lines_of(observed: &Observed, evidence: &Evidence<'_>, tasks: &IdSet) -> Vec<String> {
    let mut lines = evidence.lines(tasks);
    lines.extend(cut(observed, tasks));
    lines.extend(processor_time(observed, tasks));
    lines
}

/// A note that a stack of these tasks is incomplete, so that its place and the awaited rank are unknown. None if all
/// stacks are complete.
fn cut(observed: &Observed, tasks: &IdSet) -> Option<String> {
    let last = observed.samples.last()?;
    let mut stacks = last
        .stacks
        .iter()
        .filter(|(who, _)| !who.is_disjoint(tasks));
    let outermost = |of: &TaskStacks| {
        let mut frames = of.threads.iter().filter_map(|thread| thread.frames.first());
        let cut = frames.find(|frame| frame.function.starts_with(STOPPED));
        cut.map(|frame| frame.function.clone())
    };
    stacks.find_map(|(_, stacks)| outermost(stacks))
}

/// A note that one long call of these tasks could not be distinguished from repeated equal calls. None if it could.
fn unfollowed(observed: &Observed, tasks: &IdSet) -> Option<String> {
    let mut looks = observed.samples.iter();
    let any = looks.any(|sample| !sample.marks.unfollowed.is_disjoint(tasks));
    any.then(|| {
        "this can also be a loop of equal calls: returns were not counted (kernel.perf_event_paranoid \
         above 2, or a batch traces the rank)"
            .to_owned()
    })
}

/// The share of the time for which these tasks were on a processor, as text. In MPI that is no progress, because MPI
/// spins. None if the time is unknown for some of them, or too short.
fn processor_time(observed: &Observed, tasks: &IdSet) -> Option<String> {
    let seconds = observed.ran.as_secs_f64();
    let mut spent = vec![(tasks.clone(), 0)];
    for sample in observed.samples.get(1..)? {
        spent = summed(&spent, &sample.cpu_ms);
    }
    let known = IdSet::union_all(spent.iter().map(|(who, _)| who));
    if seconds < 0.2 || observed.samples.len() < 2 || known != *tasks {
        return None;
    }
    let share = |ms: Option<u64>| {
        let ms = u32::try_from(ms.unwrap_or_default()).unwrap_or(u32::MAX);
        f64::from(ms) / 10.0 / seconds
    };
    let low = share(spent.iter().map(|(_, ms)| *ms).min());
    let high = share(spent.iter().map(|(_, ms)| *ms).max());
    Some(match (low.round(), high.round()) {
        (_, 0.0) => "no processor time spent".to_owned(),
        (low, high) if high - low < 5.0 => format!("{high:.0} % of a processor"),
        (low, high) => format!("{low:.0} to {high:.0} % of a processor each"),
    })
}

/// Adds the numbers of both lists per task, and groups tasks with equal sums.
fn summed(before: &[(IdSet, u64)], more: &[(IdSet, u64)]) -> Vec<(IdSet, u64)> {
    let mut sums: std::collections::BTreeMap<u64, IdSet> = std::collections::BTreeMap::new();
    for (tasks, ms) in before {
        for (who, more) in more {
            let both = tasks.intersection(who);
            if !both.is_empty() {
                let sum = ms.saturating_add(*more);
                sums.entry(sum).or_default().union_with(&both);
            }
        }
    }
    sums.into_iter().map(|(ms, tasks)| (tasks, ms)).collect()
}
