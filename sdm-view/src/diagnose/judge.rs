//! From what was observed to what can be said.

use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_debug::rules::Probes;
use sdm_idset::{IdSet, TaskId};

use super::evidence::{Evidence, Message, in_kernel};
use super::wait::{Wait, WaitKind, user_frame};
use super::{Diagnosis, Finding, Kind, Observed};

/// Tasks that stand in the same place.
struct SamePlace {
    tasks: IdSet,
    wait: Wait,
}

/// How the tasks that were looked at went on between the samples.
struct Motion {
    /// Nothing of them changed.
    still: IdSet,
    /// Something changed, but they did not leave their function.
    within: IdSet,
    /// They went on.
    moving: IdSet,
}

/// What the samples show.
#[must_use]
pub fn judge(observed: &Observed) -> Diagnosis {
    let motion = motion(&observed.samples);
    let still = groups(&observed.samples, &motion.still);
    let within = groups(&observed.samples, &motion.within);
    let evidence = observed.samples.last().map(Evidence::of);
    let evidence = evidence.unwrap_or_default();
    let (conclusion, suspects, stuck) = conclude(observed, &evidence, &motion, &still, &within);
    let mut findings = findings(observed, &evidence, &motion, (&still, &within), &suspects);
    findings.sort_by(|a, b| {
        let size = b.tasks.len().cmp(&a.tasks.len());
        let by_kind = a.kind.cmp(&b.kind);
        by_kind
            .then(size)
            .then(a.tasks.first().cmp(&b.tasks.first()))
    });
    Diagnosis {
        samples: observed.samples.len(),
        span: observed.span,
        conclusion,
        suspects,
        stuck,
        findings,
    }
}

fn motion(samples: &[Probes]) -> Motion {
    let seen = samples.iter().map(|sample| all_of(&sample.stacks));
    let looked = seen.reduce(|a, b| a.intersection(&b)).unwrap_or_default();
    let Some((_, later)) = samples.split_first().filter(|(_, later)| !later.is_empty()) else {
        return Motion {
            still: IdSet::new(),
            within: IdSet::new(),
            moving: IdSet::new(),
        };
    };
    let same_stack = steady(samples, &looked, |stacks| stacks);
    let same_function = steady(samples, &looked, outer_place);
    let inner_changed = IdSet::union_all(later.iter().map(|sample| &sample.inner_changed));
    let outer_changed = IdSet::union_all(later.iter().map(|sample| &sample.outer_changed));
    let still = same_stack
        .difference(&inner_changed)
        .difference(&outer_changed)
        .difference(&busy(samples));
    let within = same_function.difference(&outer_changed).difference(&still);
    Motion {
        moving: looked.difference(&still).difference(&within),
        still,
        within,
    }
}

/// Those who are in code of their own and spent processor time between the samples: they go on, though
/// the samples may find them at the same line. In MPI that would say nothing, because MPI spins.
fn busy(samples: &[Probes]) -> IdSet {
    let times = samples.iter().flat_map(|sample| &sample.cpu_ms);
    let spent = times.filter(|(_, ms)| *ms > 0).map(|(tasks, _)| tasks);
    let runs = |stacks| Wait::of(stacks).is_some_and(|wait| wait.kind == WaitKind::Running);
    let last = samples.last().map(|sample| &sample.stacks[..]);
    let running = last
        .unwrap_or_default()
        .iter()
        .filter(|(_, stacks)| runs(stacks));
    IdSet::union_all(running.map(|(tasks, _)| tasks)).intersection(&IdSet::union_all(spent))
}

/// Everything of the main stack but where in its innermost user function a task stands: the frames around
/// that function, and its name.
fn outer_place(stacks: &TaskStacks) -> (&[StackFrame], Option<&str>) {
    let main = stacks.threads.iter().find(|thread| thread.main);
    let Some(thread) = main.or_else(|| stacks.threads.first()) else {
        return (&[], None);
    };
    let user = user_frame(&thread.frames);
    let is_user = |frame: &StackFrame| user.is_some_and(|user| std::ptr::eq(frame, user));
    let end = thread.frames.iter().position(is_user);
    let outer = &thread.frames[..end.unwrap_or(thread.frames.len())];
    (outer, user.map(|user| user.function.as_str()))
}

/// Those among `looked` whose stacks have the same key in all samples.
fn steady<'a, K: PartialEq>(
    samples: &'a [Probes],
    looked: &IdSet,
    key: impl Fn(&'a TaskStacks) -> K,
) -> IdSet {
    let keyed = |sample: &'a Probes| {
        let classes = sample.stacks.iter();
        let classes = classes.map(|(tasks, stacks)| (tasks, key(stacks)));
        classes.collect::<Vec<(&IdSet, K)>>()
    };
    let samples: Vec<_> = samples.iter().map(keyed).collect();
    let Some((first, rest)) = samples.split_first() else {
        return IdSet::new();
    };
    let mut steady = IdSet::new();
    for (tasks, key) in first {
        let mut same = (*tasks).clone();
        for sample in rest {
            let equal = sample.iter().filter(|(_, other)| other == key);
            same = same.intersection(&IdSet::union_all(equal.map(|(tasks, _)| *tasks)));
        }
        steady.union_with(&same);
    }
    steady.intersection(looked)
}

fn all_of(stacks: &[(IdSet, TaskStacks)]) -> IdSet {
    IdSet::union_all(stacks.iter().map(|(tasks, _)| tasks))
}

/// Where some tasks stood in the last sample, biggest group first.
fn groups(samples: &[Probes], among: &IdSet) -> Vec<SamePlace> {
    let mut groups: Vec<SamePlace> = Vec::new();
    for (tasks, stacks) in samples.last().map(|s| &s.stacks[..]).unwrap_or_default() {
        let tasks = tasks.intersection(among);
        let Some(wait) = Wait::of(stacks).filter(|_| !tasks.is_empty()) else {
            continue;
        };
        match groups.iter_mut().find(|group| group.wait == wait) {
            Some(group) => group.tasks.union_with(&tasks),
            None => groups.push(SamePlace { tasks, wait }),
        }
    }
    groups.sort_by(|a, b| {
        let size = b.tasks.len().cmp(&a.tasks.len());
        size.then(a.tasks.first().cmp(&b.tasks.first()))
    });
    groups
}

/// The sentence, whom it points at, and whether something is stuck.
fn conclude(
    observed: &Observed,
    evidence: &Evidence,
    motion: &Motion,
    still: &[SamePlace],
    within: &[SamePlace],
) -> (String, IdSet, bool) {
    if observed.samples.len() < 2 {
        let text = "nobody could be sampled twice: nothing can be said of progress";
        return (text.to_owned(), IdSet::new(), false);
    }
    let waiting: Vec<&SamePlace> = still.iter().filter(|group| group.wait.is_mpi()).collect();
    let gone = IdSet::union_all(observed.gone.iter().map(|(tasks, _)| tasks));
    let ill = IdSet::union_all(observed.states.iter().map(|(tasks, _)| tasks));
    if !evidence.circles.is_empty() {
        let tasks = IdSet::union_all(evidence.circles.iter().map(|(tasks, _)| tasks));
        let text = "threads wait for each other's locks in a circle";
        return (text.to_owned(), tasks, true);
    }
    if !waiting.is_empty() && !gone.is_empty() {
        let text = "the others wait in MPI for tasks that are gone";
        return (text.to_owned(), gone, true);
    }
    if !still.is_empty() && !ill.is_empty() {
        let text = "a process is in a state in which it cannot go on";
        return (text.to_owned(), ill, true);
    }
    let collective: Vec<&SamePlace> = of_kind(still, WaitKind::Collective);
    if !collective.is_empty() {
        return in_collectives(motion, still, within, &collective);
    }
    if motion.still.is_empty() {
        return nothing_stands(motion);
    }
    if !of_kind(still, WaitKind::Message).is_empty() {
        return in_messages(evidence, motion, still);
    }
    stands_elsewhere(motion, still)
}

fn of_kind(groups: &[SamePlace], kind: WaitKind) -> Vec<&SamePlace> {
    groups
        .iter()
        .filter(|group| group.wait.kind == kind)
        .collect()
}

fn nothing_stands(motion: &Motion) -> (String, IdSet, bool) {
    let text = match (motion.within.is_empty(), motion.moving.is_empty()) {
        (true, true) => "nobody could be looked at",
        (false, true) => {
            "everybody runs within one function: an endless loop or just long; nobody waits"
        }
        _ => "there is progress, as far as the samples show",
    };
    (text.to_owned(), IdSet::new(), false)
}

/// Some wait in a collective operation: who is not there, or in another one?
fn in_collectives(
    motion: &Motion,
    still: &[SamePlace],
    within: &[SamePlace],
    collective: &[&SamePlace],
) -> (String, IdSet, bool) {
    let biggest = collective[0];
    let call = &biggest.wait.call;
    if !motion.moving.is_empty() {
        let text = format!(
            "some wait in {call} while others make progress: nothing says that they are stuck"
        );
        return (text, IdSet::new(), false);
    }
    let elsewhere = still
        .iter()
        .chain(within)
        .filter(|group| group.wait.kind != WaitKind::Collective);
    let elsewhere: Vec<&SamePlace> = elsewhere.collect();
    if collective.len() > 1 {
        let others = IdSet::union_all(collective[1..].iter().map(|group| &group.tasks));
        let same = collective.iter().all(|group| group.wait.call == *call);
        let text = match same {
            true => format!("they are in {call}, but called from different places"),
            false => "they are in different collective operations".to_owned(),
        };
        // Of equally many on either side neither is the odd one.
        let even = collective[1].tasks.len() == biggest.tasks.len();
        let odd = IdSet::union_all(elsewhere.iter().map(|group| &group.tasks)).union(&others);
        return (text, if even { IdSet::new() } else { odd }, true);
    }
    if elsewhere.is_empty() {
        let text = format!(
            "all that were looked at are in the same {call}: if others belong to it, they are not \
             here; else its cause is not in these stacks"
        );
        return (text, IdSet::new(), true);
    }
    let odd = IdSet::union_all(elsewhere.iter().map(|group| &group.tasks));
    let within_only = odd.is_subset(&motion.within);
    let text = match within_only {
        true => format!(
            "the others wait in {call}, which was not reached here: an endless loop, or just long"
        ),
        false => format!("the others wait in {call}, which was not reached here"),
    };
    (text, odd, true)
}

/// All that stand wait for messages, or for those who do.
fn in_messages(evidence: &Evidence, motion: &Motion, still: &[SamePlace]) -> (String, IdSet, bool) {
    if !motion.moving.is_empty() {
        let text = "some wait for messages while others make progress: nothing says that they are \
                    stuck";
        return (text.to_owned(), IdSet::new(), false);
    }
    if let Some(circle) = circle(&evidence.messages) {
        let text = format!(
            "they wait for each other's messages in a circle ({}): no single one is to blame",
            circle
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(" -> ")
        );
        return (text, IdSet::new(), true);
    }
    let others = still
        .iter()
        .filter(|group| group.wait.kind != WaitKind::Message);
    let elsewhere = IdSet::union_all(others.map(|group| &group.tasks)).union(&motion.within);
    if !elsewhere.is_empty() {
        let text = "the others wait for messages; these do not, and stay where they are";
        return (text.to_owned(), elsewhere, true);
    }
    let text = "all wait for messages that do not come; the samples do not show whose fault it is";
    (text.to_owned(), IdSet::new(), true)
}

/// Nobody waits in MPI.
fn stands_elsewhere(motion: &Motion, still: &[SamePlace]) -> (String, IdSet, bool) {
    let biggest = &still[0];
    let (call, tasks) = (&biggest.wait.call, motion.still.clone());
    let all = motion.moving.is_empty() && motion.within.is_empty();
    if biggest.wait.kind == WaitKind::File && still.len() == 1 && all {
        let text = format!("all wait for a file, in {call}: the cause is outside of these tasks");
        return (text, IdSet::new(), true);
    }
    if all {
        let text = "nothing changed anywhere; nobody waits in MPI".to_owned();
        return (text, IdSet::new(), true);
    }
    let text = "nothing changed here, while others went on".to_owned();
    (text, tasks, true)
}

/// Ranks that wait for each other's messages: each for the next one, the last for the first.
fn circle(messages: &[Message]) -> Option<Vec<u32>> {
    let next = |rank: u32| {
        let of = messages.iter().find(|m| m.tasks.contains(TaskId(rank)));
        of.and_then(|message| message.peer)
    };
    let starts = messages.iter().filter_map(|message| message.tasks.first());
    for start in starts {
        let mut way = vec![start.0];
        while let Some(peer) = next(way[way.len() - 1]) {
            if let Some(at) = way.iter().position(|rank| *rank == peer) {
                let mut circle = way.split_off(at);
                circle.push(peer);
                return Some(circle);
            }
            way.push(peer);
        }
    }
    None
}

fn findings(
    observed: &Observed,
    evidence: &Evidence,
    motion: &Motion,
    (still, within): (&[SamePlace], &[SamePlace]),
    suspects: &IdSet,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let kind_of = |tasks: &IdSet, kind| match tasks.is_subset(suspects) {
        true => Kind::Suspect,
        false => kind,
    };
    for (kind, list) in [
        (Kind::Gone, &observed.gone),
        (Kind::Unknown, &observed.states),
        (Kind::Unknown, &observed.stood),
        (Kind::Unknown, &observed.unseen),
    ] {
        findings.extend(list.iter().map(|(tasks, what)| Finding {
            tasks: tasks.clone(),
            kind: kind_of(tasks, kind),
            what: what.clone(),
            evidence: Vec::new(),
        }));
    }
    if let Some(last) = observed.samples.last() {
        let unseen = findings.iter_mut().filter(|finding| {
            let is_its =
                |(tasks, what): &(IdSet, String)| *tasks == finding.tasks && *what == finding.what;
            observed.unseen.iter().any(is_its)
        });
        for finding in unseen {
            finding.evidence = in_kernel(last, &finding.tasks);
        }
        if !last.cut.is_empty() {
            findings.push(Finding {
                tasks: last.cut.clone(),
                kind: Kind::Unknown,
                what: "not judged: there are too many different stacks".to_owned(),
                evidence: Vec::new(),
            });
        }
    }
    for group in still {
        let (verb, kind) = match group.wait.kind {
            WaitKind::Running => ("standing", Kind::Runs),
            _ => ("waiting", Kind::Waits),
        };
        findings.push(Finding {
            tasks: group.tasks.clone(),
            kind: kind_of(&group.tasks, kind),
            what: format!("{verb} {}; nothing changed", group.wait.text()),
            evidence: lines_of(observed, evidence, &group.tasks),
        });
    }
    for group in within {
        findings.push(Finding {
            tasks: group.tasks.clone(),
            kind: kind_of(&group.tasks, Kind::Runs),
            what: format!(
                "running within one function, last seen {}",
                group.wait.text()
            ),
            evidence: lines_of(observed, evidence, &group.tasks),
        });
    }
    if !motion.moving.is_empty() {
        findings.push(Finding {
            tasks: motion.moving.clone(),
            kind: Kind::Progress,
            what: "making progress".to_owned(),
            evidence: Vec::new(),
        });
    }
    findings
}

/// What else is known of some tasks.
fn lines_of(observed: &Observed, evidence: &Evidence, tasks: &IdSet) -> Vec<String> {
    let mut lines = evidence.lines(tasks);
    lines.extend(processor_time(observed, tasks));
    lines
}

/// How much of the time some tasks were on a processor; MPI spins, so that it is no progress.
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

/// The sums of what tasks have in both lists, equal ones together.
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
