//! From what was observed to what can be said.

use std::collections::BTreeMap;

use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_idset::{IdSet, TaskId};

use super::wait::{Wait, WaitKind, user_frame};
use super::{Diagnosis, Finding, Kind, Message, Observed, Sample};

/// Tasks that stand in the same place.
struct Group {
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
    let (conclusion, suspects, stuck) = conclude(observed, &motion, &still, &within);
    let mut findings = findings(observed, &motion, (&still, &within), &suspects);
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

fn motion(samples: &[Sample]) -> Motion {
    let seen = samples.iter().map(|sample| all_of(&sample.stacks));
    let looked = seen.reduce(|a, b| a.intersection(&b)).unwrap_or_default();
    if samples.len() < 2 {
        return Motion {
            still: IdSet::new(),
            within: IdSet::new(),
            moving: IdSet::new(),
        };
    }
    let keys = |key: fn(&TaskStacks) -> String| {
        let of = |sample: &Sample| {
            let classes = sample.stacks.iter();
            classes
                .map(|(tasks, stacks)| (tasks.clone(), key(stacks)))
                .collect()
        };
        samples.iter().map(of).collect::<Vec<Vec<_>>>()
    };
    let variables = |pick: fn(&Sample) -> &Vec<(IdSet, String)>| {
        samples
            .iter()
            .map(|sample| pick(sample).clone())
            .collect::<Vec<_>>()
    };
    let same_stack = steady(&keys(|stacks| format!("{stacks:?}")), &looked);
    let same_function = steady(&keys(outer_key), &looked);
    let same_inner = steady(&variables(|sample| &sample.inner), &looked);
    let same_outer = steady(&variables(|sample| &sample.outer), &looked);
    let still = same_stack
        .intersection(&same_inner)
        .intersection(&same_outer)
        .difference(&busy(samples));
    let within = same_function.intersection(&same_outer).difference(&still);
    Motion {
        moving: looked.difference(&still).difference(&within),
        still,
        within,
    }
}

/// Those who are in code of their own and spent processor time between the samples: they go on, though
/// the samples may find them at the same line. In MPI that would say nothing, because MPI spins.
fn busy(samples: &[Sample]) -> IdSet {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return IdSet::new();
    };
    let before: BTreeMap<TaskId, u64> = first.ticks.iter().copied().collect();
    let spent = last.ticks.iter().filter(|(task, ticks)| {
        let before = before.get(task);
        before.is_some_and(|before| ticks > before)
    });
    let spent: IdSet = spent.map(|(task, _)| *task).collect();
    let runs = |stacks| Wait::of(stacks).is_some_and(|wait| wait.kind == WaitKind::Running);
    let running = last.stacks.iter().filter(|(_, stacks)| runs(stacks));
    IdSet::union_all(running.map(|(tasks, _)| tasks)).intersection(&spent)
}

/// Everything of the main stack but where in its innermost user function a task stands.
fn outer_key(stacks: &TaskStacks) -> String {
    let main = stacks.threads.iter().find(|thread| thread.main);
    let Some(thread) = main.or_else(|| stacks.threads.first()) else {
        return String::new();
    };
    let user = user_frame(&thread.frames);
    let until = |frame: &&StackFrame| !user.is_some_and(|user| std::ptr::eq(*frame, user));
    let outer: Vec<_> = thread.frames.iter().take_while(until).collect();
    format!("{outer:?} {:?}", user.map(|user| &user.function))
}

/// Those among `looked` whose key is the same in all samples; who has none has none in all.
fn steady(samples: &[Vec<(IdSet, String)>], looked: &IdSet) -> IdSet {
    let Some((first, rest)) = samples.split_first() else {
        return IdSet::new();
    };
    let mut steady = IdSet::new();
    for (tasks, key) in first {
        let mut same = tasks.clone();
        for sample in rest {
            let equal = sample.iter().filter(|(_, other)| other == key);
            same = same.intersection(&IdSet::union_all(equal.map(|(tasks, _)| tasks)));
        }
        steady.union_with(&same);
    }
    let with_key = samples.iter().flatten().map(|(tasks, _)| tasks);
    let without = looked.difference(&IdSet::union_all(with_key));
    steady.union(&without).intersection(looked)
}

fn all_of(stacks: &[(IdSet, TaskStacks)]) -> IdSet {
    IdSet::union_all(stacks.iter().map(|(tasks, _)| tasks))
}

/// Where some tasks stood in the last sample, biggest group first.
fn groups(samples: &[Sample], among: &IdSet) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (tasks, stacks) in samples.last().map(|s| &s.stacks[..]).unwrap_or_default() {
        let tasks = tasks.intersection(among);
        let Some(wait) = Wait::of(stacks).filter(|_| !tasks.is_empty()) else {
            continue;
        };
        match groups.iter_mut().find(|group| group.wait == wait) {
            Some(group) => group.tasks.union_with(&tasks),
            None => groups.push(Group { tasks, wait }),
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
    motion: &Motion,
    still: &[Group],
    within: &[Group],
) -> (String, IdSet, bool) {
    if observed.samples.len() < 2 {
        let text = "nobody could be sampled twice: nothing can be said of progress";
        return (text.to_owned(), IdSet::new(), false);
    }
    let waiting: Vec<&Group> = still.iter().filter(|group| group.wait.is_mpi()).collect();
    let gone = IdSet::union_all(observed.gone.iter().map(|(tasks, _)| tasks));
    let ill = IdSet::union_all(observed.states.iter().map(|(tasks, _)| tasks));
    if !observed.circles.is_empty() {
        let tasks = IdSet::union_all(observed.circles.iter().map(|(tasks, _)| tasks));
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
    let collective: Vec<&Group> = of_kind(still, WaitKind::Collective);
    if !collective.is_empty() {
        return in_collectives(motion, still, within, &collective);
    }
    if motion.still.is_empty() {
        return nothing_stands(motion);
    }
    if !of_kind(still, WaitKind::Message).is_empty() {
        return in_messages(observed, motion, still);
    }
    stands_elsewhere(motion, still)
}

fn of_kind(groups: &[Group], kind: WaitKind) -> Vec<&Group> {
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
    still: &[Group],
    within: &[Group],
    collective: &[&Group],
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
    let elsewhere: Vec<&Group> = elsewhere.collect();
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
fn in_messages(observed: &Observed, motion: &Motion, still: &[Group]) -> (String, IdSet, bool) {
    if !motion.moving.is_empty() {
        let text = "some wait for messages while others make progress: nothing says that they are \
                    stuck";
        return (text.to_owned(), IdSet::new(), false);
    }
    if let Some(circle) = circle(&observed.messages) {
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
fn stands_elsewhere(motion: &Motion, still: &[Group]) -> (String, IdSet, bool) {
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
    motion: &Motion,
    (still, within): (&[Group], &[Group]),
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
    for group in still {
        let (verb, kind) = match group.wait.kind {
            WaitKind::Running => ("standing", Kind::Runs),
            _ => ("waiting", Kind::Waits),
        };
        findings.push(Finding {
            tasks: group.tasks.clone(),
            kind: kind_of(&group.tasks, kind),
            what: format!("{verb} {}; nothing changed", group.wait.text()),
            evidence: evidence(observed, &group.tasks),
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
            evidence: evidence(observed, &group.tasks),
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
fn evidence(observed: &Observed, tasks: &IdSet) -> Vec<String> {
    let mut lines = Vec::new();
    for message in observed
        .messages
        .iter()
        .filter(|m| !m.tasks.is_disjoint(tasks))
    {
        if !message.source.is_empty() && !lines.contains(&message.source) {
            lines.push(message.source.clone());
        }
        if !message.facts.is_empty() {
            lines.push(message.facts.join(", "));
        }
    }
    let circles = observed
        .circles
        .iter()
        .filter(|(who, _)| !who.is_disjoint(tasks));
    lines.extend(circles.flat_map(|(_, words)| words.clone()));
    let files = observed
        .files
        .iter()
        .filter(|(who, _)| !who.is_disjoint(tasks));
    lines.extend(files.map(|(_, words)| words.clone()));
    lines.extend(processor_time(observed, tasks));
    lines
}

/// How much of the time some tasks were on a processor; MPI spins, so that it is no progress.
fn processor_time(observed: &Observed, tasks: &IdSet) -> Option<String> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let first = observed.samples.first()?;
    let last = observed.samples.last()?;
    let seconds = observed.ran.as_secs_f64();
    let mut shares: Vec<f64> = Vec::new();
    for (task, ticks) in last.ticks.iter().filter(|(task, _)| tasks.contains(*task)) {
        let (_, before) = first.ticks.iter().find(|(known, _)| known == task)?;
        let spent = u32::try_from(ticks.saturating_sub(*before)).ok()?;
        shares.push(f64::from(spent) / TICKS_PER_SECOND / seconds);
    }
    if seconds < 0.2 || shares.is_empty() {
        return None;
    }
    let low = shares.iter().copied().fold(f64::MAX, f64::min) * 100.0;
    let high = shares.iter().copied().fold(0.0, f64::max) * 100.0;
    Some(match (low.round(), high.round()) {
        (_, 0.0) => "no processor time spent".to_owned(),
        (low, high) if high - low < 5.0 => format!("{high:.0} % of a processor"),
        (low, high) => format!("{low:.0} to {high:.0} % of a processor each"),
    })
}
