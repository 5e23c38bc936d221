//! Changes over all samples: the tasks that stayed in one place, those that go on, and those that cannot be
//! judged.

use std::collections::BTreeMap;

use sdm_debug::probe::{WaitFor, Within};
use sdm_debug::reply::TaskStacks;
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;
use sdm_mpi::reads_window;

use super::wait::{Wait, WaitKind, kind};

/// Tasks that stay in the same place.
pub(super) struct SamePlace {
    pub(super) tasks: IdSet,
    pub(super) wait: Wait,
}

/// The sampled tasks by their changes between the samples.
#[derive(Default)]
pub(super) struct Seen {
    /// Tasks without any change, in the same call of the same function.
    pub(super) still: IdSet,
    /// Tasks with a change.
    pub(super) moving: IdSet,
    /// Tasks that were seen at least once in a polling call, by the call that was seen last: `MPI_Iprobe`. Also tasks
    /// that were seen only between the polls of a loop.
    pub(super) polls: BTreeMap<String, IdSet>,
    /// Tasks that were in a polling or sleeping call in more than half of the samples.
    pub(super) asking: IdSet,
    /// Tasks that were in a sleeping call in every sample, by the name of the call: `usleep`.
    pub(super) sleeps: BTreeMap<String, IdSet>,
    /// Moving tasks that were in operations on windows in some samples, and asleep in the others.
    pub(super) at_windows: IdSet,
    /// The function that a moving task has not left between samples; of all samples, the outermost such function.
    pub(super) within: Vec<(IdSet, Within)>,
    /// Tasks that cannot be judged, with the reason.
    pub(super) unknown: Vec<(IdSet, String)>,
    /// Tasks that spent no processor time.
    pub(super) idle: IdSet,
    /// Tasks that stayed in the same call and exchanged data with others.
    pub(super) exchanged: IdSet,
    /// Tasks of which it is unknown whether they wait, because they have exchanged data.
    pub(super) doubted: IdSet,
}

impl Seen {
    pub(super) fn of(samples: &[Probes]) -> Self {
        let Some((_, later)) = samples.split_first().filter(|(_, later)| !later.is_empty()) else {
            return Self::default();
        };
        let parts = |part: fn(&Probes) -> &IdSet| IdSet::union_all(samples.iter().map(part));
        let partial = parts(|sample| &sample.marks.partial);
        let cut = parts(|sample| &sample.cut);
        let starved = starved(samples);
        let seen = samples.iter().map(|sample| all_of(&sample.stacks));
        let looked = seen.reduce(|a, b| a.intersection(&b)).unwrap_or_default();
        let looked = looked.difference(&partial).difference(&cut);
        let mut unknown = Vec::new();
        for (tasks, why) in [
            (
                partial,
                "not judged: gdb could not read the stack to its end",
            ),
            (cut, "not judged: there are too many different stacks"),
            (
                starved.intersection(&looked),
                "not judged: the process got no processor time between the samples",
            ),
        ] {
            if !tasks.is_empty() {
                unknown.push((tasks, why.to_owned()));
            }
        }
        let looked = looked.difference(&starved);
        let changed = later.iter().map(|sample| sample.marks.changed());
        let changed = changed.fold(IdSet::new(), |all, more| all.union(&more));
        let steady = steady(samples, &looked);
        // A change in the result of a system call that the observation interrupted is not progress.
        let idle = idle(samples);
        let changed = changed.difference(&for_resources(samples).intersection(&idle));
        let still = steady.difference(&changed).difference(&busy(samples));
        let moving = looked.difference(&still);
        let exchanged = IdSet::union_all(later.iter().map(|sample| &sample.marks.exchanged));
        let within = outermost(later, &moving);
        let mut polls = seen_in(WaitKind::Poll, samples, &looked);
        let between = between_polls(samples);
        let known = IdSet::union_all(polls.values());
        for (call, tasks) in &between {
            let more = tasks.intersection(&looked).difference(&known);
            if !more.is_empty() {
                polls.entry(call.clone()).or_default().union_with(&more);
            }
        }
        let asking = mostly(&[WaitKind::Poll, WaitKind::Sleep], samples);
        let asleep = samples.iter();
        let asleep = asleep.fold(looked.clone(), |all, sample| {
            all.intersection(&in_kinds(&[WaitKind::Sleep], sample))
        });
        let asleep = asleep.difference(&IdSet::union_all(between.values()));
        let sleeps = seen_in(WaitKind::Sleep, samples, &asleep);
        let at_windows = at_windows(samples, &moving).difference(&asleep);
        Self {
            moving,
            at_windows,
            polls,
            asking: asking.intersection(&looked),
            sleeps,
            within,
            unknown,
            idle,
            exchanged: exchanged.intersection(&still),
            doubted: IdSet::new(),
            still,
        }
    }

    /// Treats the tasks among `tasks` that have exchanged data as unknown instead of waiting.
    pub(super) fn doubting_exchange_of(mut self, tasks: &IdSet) -> Self {
        self.doubted = self.exchanged.intersection(tasks);
        self.still.subtract(&self.doubted);
        self
    }

    /// All tasks that cannot be judged.
    pub(super) fn unknown(&self) -> IdSet {
        let unknown = self.unknown.iter().map(|(tasks, _)| tasks);
        IdSet::union_all(unknown).union(&self.doubted)
    }

    /// All tasks that poll.
    pub(super) fn polling(&self) -> IdSet {
        IdSet::union_all(self.polls.values())
    }

    /// All tasks that sleep.
    pub(super) fn sleeping(&self) -> IdSet {
        IdSet::union_all(self.sleeps.values())
    }
}

/// Tasks that got no processor between any two samples and wait in no system call.
pub(super) fn starved(samples: &[Probes]) -> IdSet {
    let later = samples.iter().skip(1);
    let starved = later.map(|sample| sample.marks.starved.clone());
    let starved = starved.reduce(|all, more| all.intersection(&more));
    starved.unwrap_or_default()
}

/// Tasks in the user's code that spent processor time between the samples. They make progress, even if all samples find
/// them at the same line. In MPI that would say nothing, because MPI spins.
fn busy(samples: &[Probes]) -> IdSet {
    let times = samples.iter().flat_map(|sample| &sample.cpu_ms);
    let spent = times.filter(|(_, ms)| *ms > 0).map(|(tasks, _)| tasks);
    let runs = |stacks| Wait::of(stacks).is_some_and(|wait| wait.kind == WaitKind::Running);
    let last = samples.last().map(|sample| &sample.stacks[..]);
    let running = last.unwrap_or_default().iter();
    let running = running.filter(|(_, stacks)| runs(stacks));
    IdSet::union_all(running.map(|(tasks, _)| tasks)).intersection(&IdSet::union_all(spent))
}

/// Tasks that spent no processor time between any two samples.
fn idle(samples: &[Probes]) -> IdSet {
    let later = samples.iter().skip(1);
    let idle = later.map(|sample| {
        let idle = sample.cpu_ms.iter().filter(|(_, ms)| *ms == 0);
        IdSet::union_all(idle.map(|(tasks, _)| tasks))
    });
    let idle = idle.reduce(|all, more| all.intersection(&more));
    idle.unwrap_or_default()
}

/// Tasks that wait for a resource outside their process in the last sample: a file, a pipe, a connection or a child.
fn for_resources(samples: &[Probes]) -> IdSet {
    let waits = samples.last().map(|last| &last.waits[..]);
    let waits = waits.unwrap_or_default().iter();
    let waits = waits.filter(|(_, waits)| matches!(waits.main(), Some(WaitFor::Resource(_))));
    IdSet::union_all(waits.map(|(tasks, _)| tasks))
}

/// Tasks that were at least once in a call of this kind, by the call that was seen last. A task that polls or sleeps,
/// and computes in between, may wait for anything.
fn seen_in(kind: WaitKind, samples: &[Probes], among: &IdSet) -> BTreeMap<String, IdSet> {
    let mut found: BTreeMap<String, IdSet> = BTreeMap::new();
    for (tasks, stacks) in samples.iter().rev().flat_map(|sample| &sample.stacks) {
        let Some(wait) = Wait::of(stacks).filter(|wait| wait.kind == kind) else {
            continue;
        };
        let known = IdSet::union_all(found.values());
        let more = tasks.intersection(among).difference(&known);
        if !more.is_empty() {
            found.entry(wait.call).or_default().union_with(&more);
        }
    }
    found
}

/// Tasks that sleep or yield in a loop in which they also poll, by the polling call that the source names.
fn between_polls(samples: &[Probes]) -> BTreeMap<String, IdSet> {
    let Some(last) = samples.last() else {
        return BTreeMap::new();
    };
    let pausing = in_kinds(&[WaitKind::Sleep, WaitKind::Other], last);
    let calls = last.waits.iter().filter_map(|(tasks, waits)| {
        let call = waits.call.as_ref()?;
        (kind(&call.function) == WaitKind::Poll).then_some((tasks, &call.function))
    });
    let mut found: BTreeMap<String, IdSet> = BTreeMap::new();
    for (tasks, call) in calls {
        let tasks = tasks.intersection(&pausing);
        if !tasks.is_empty() {
            found.entry(call.clone()).or_default().union_with(&tasks);
        }
    }
    found
}

/// Tasks that were in calls of these kinds in more than half of the samples.
fn mostly(kinds: &[WaitKind], samples: &[Probes]) -> IdSet {
    // From that number on.
    let mut at_least: Vec<IdSet> = Vec::new();
    for sample in samples {
        let there = in_kinds(kinds, sample);
        at_least.push(IdSet::new());
        for more in (1..at_least.len()).rev() {
            let once_more = at_least[more - 1].intersection(&there);
            at_least[more].union_with(&once_more);
        }
        at_least[0].union_with(&there);
    }
    at_least.get(samples.len() / 2).cloned().unwrap_or_default()
}

/// Tasks that were in each sample in an operation on a window, or asleep.
fn at_windows(samples: &[Probes], among: &IdSet) -> IdSet {
    let is_there = |stacks| {
        let wait = Wait::of(stacks);
        wait.is_some_and(|wait| wait.kind == WaitKind::Sleep || reads_window(&wait.call))
    };
    samples.iter().fold(among.clone(), |all, sample| {
        let there = sample.stacks.iter().filter(|(_, stacks)| is_there(stacks));
        all.intersection(&IdSet::union_all(there.map(|(tasks, _)| tasks)))
    })
}

/// Tasks that were in a call of one of these kinds.
fn in_kinds(kinds: &[WaitKind], sample: &Probes) -> IdSet {
    let is_there = |stacks| Wait::of(stacks).is_some_and(|wait| kinds.contains(&wait.kind));
    let there = sample.stacks.iter().filter(|(_, stacks)| is_there(stacks));
    IdSet::union_all(there.map(|(tasks, _)| tasks))
}

/// The function that each task has not left in any sample: the outermost one of all samples.
fn outermost(later: &[Probes], among: &IdSet) -> Vec<(IdSet, Within)> {
    let mut found: Vec<(IdSet, Within)> = Vec::new();
    for (tasks, within) in later.iter().flat_map(|sample| &sample.within) {
        let mut new = tasks.intersection(among);
        let mut kept = Vec::new();
        for (known_tasks, known) in found {
            let both = known_tasks.intersection(&new);
            if both.is_empty() {
                kept.push((known_tasks, known));
                continue;
            }
            new.subtract(&both);
            let rest = known_tasks.difference(&both);
            let merged = match known.depth.cmp(&within.depth) {
                std::cmp::Ordering::Less => known.clone(),
                std::cmp::Ordering::Greater => within.clone(),
                std::cmp::Ordering::Equal => Within {
                    changed: known.changed || within.changed,
                    noted: known.noted && within.noted,
                    ..known.clone()
                },
            };
            kept.push((both, merged));
            if !rest.is_empty() {
                kept.push((rest, known));
            }
        }
        if !new.is_empty() {
            kept.push((new, within.clone()));
        }
        found = kept;
    }
    united(found)
}

/// Merges the tasks of equal entries.
fn united(list: Vec<(IdSet, Within)>) -> Vec<(IdSet, Within)> {
    let mut united: BTreeMap<Within, IdSet> = BTreeMap::new();
    for (tasks, within) in list {
        united.entry(within).or_default().union_with(&tasks);
    }
    united
        .into_iter()
        .map(|(within, tasks)| (tasks, within))
        .collect()
}

/// The tasks among `looked` whose stacks are the same in all samples.
fn steady(samples: &[Probes], looked: &IdSet) -> IdSet {
    let Some((first, rest)) = samples.split_first() else {
        return IdSet::new();
    };
    let mut steady = IdSet::new();
    for (tasks, stacks) in &first.stacks {
        let main = main_frames(stacks);
        let mut same = tasks.clone();
        for sample in rest {
            let equal = sample.stacks.iter();
            let equal = equal.filter(|(_, other)| main_frames(other) == main);
            same = same.intersection(&IdSet::union_all(equal.map(|(tasks, _)| tasks)));
        }
        steady.union_with(&same);
    }
    steady.intersection(looked)
}

/// The frames by which a task is judged: those of the main thread, or of the first thread if no stack is the main
/// thread's. None without threads. Other threads, for example those of a runtime, come and go.
fn main_frames(stacks: &TaskStacks) -> Option<&[sdm_debug::reply::StackFrame]> {
    let main = stacks.threads.iter().find(|thread| thread.main);
    let thread = main.or_else(|| stacks.threads.first())?;
    Some(&thread.frames)
}

pub(super) fn all_of(stacks: &[(IdSet, TaskStacks)]) -> IdSet {
    IdSet::union_all(stacks.iter().map(|(tasks, _)| tasks))
}

/// Groups of tasks by their place in the last sample, largest first.
pub(super) fn groups(samples: &[Probes], among: &IdSet) -> Vec<SamePlace> {
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
