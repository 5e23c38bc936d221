//! The merge rule for probes: their parts, each with the tasks that have it.

mod marks;

use std::collections::BTreeMap;

use sdm_core::aggregate::Rejected;
use sdm_idset::{IdSet, TaskId};

use super::capped::Capped;
use super::coding::{Reader, Writer, is_merged};
use super::numbers::Numbers;
use super::parts::{Part, classes, insert, read_kind, write_kind};
use super::plain::MergedForm;
use super::rule_numbers::RULE_PROBE;
use crate::fold::STACK_FRAMES_MAX;
use crate::probe::{ArgumentRole, ProcessState, TaskProbe, TaskWaits, Within};
use crate::reply::{Reply, TaskStacks};
use crate::wire;
pub use marks::Marks;

/// The merged probes of many tasks: tasks that differ in one part are still merged in the others.
///
/// Merged payload: `fe 04`, then the sets of [`Marks`] in the order of its fields. Then come the kinds of parts: waits,
/// processor times, process states, functions not left. Each kind has cut, count and set of the others, count of parts,
/// and for each part its bytes and its set. Then come, for each role of an argument, the tasks' numbers, encoded as
/// [`Numbers`]. The stacks are the last kind of parts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Probes {
    /// The distinct stacks.
    pub stacks: Vec<(IdSet, TaskStacks)>,
    /// The tasks for which each property holds.
    pub marks: Marks,
    /// The waits. The numbers in them are in `numbers`, for each task, except those of communicators and files.
    pub waits: Vec<(IdSet, TaskWaits)>,
    /// The numeric arguments of the tasks' calls, by their role in the call.
    pub numbers: BTreeMap<ArgumentRole, Numbers>,
    /// The innermost functions not left since the probe before.
    pub within: Vec<(IdSet, Within)>,
    /// Processor time since the previous probe, in milliseconds.
    pub cpu_ms: Vec<(IdSet, u64)>,
    /// States of the processes in the kernel.
    pub processes: Vec<(IdSet, ProcessState)>,
    /// Tasks with stacks that the merged answer has no room for.
    pub cut: IdSet,
}

impl Probes {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// The payload is not a probe.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload).map(|parts| parts.probes())
    }

    /// The merged form of the answer of one task, or of the equal answers of several.
    #[must_use]
    pub fn of(tasks: &IdSet, probe: TaskProbe) -> Self {
        let mut parts = Parts::default();
        parts.insert(tasks, probe);
        parts.probes()
    }

    /// Merges in the answers of other tasks.
    pub fn absorb(&mut self, other: Self) {
        join(&mut self.stacks, other.stacks);
        self.marks.absorb(&other.marks);
        absorb_numbers(&mut self.numbers, other.numbers);
        self.numbers.values_mut().for_each(Numbers::settle);
        join(&mut self.waits, other.waits);
        join(&mut self.within, other.within);
        join(&mut self.cpu_ms, other.cpu_ms);
        join(&mut self.processes, other.processes);
        self.cut.union_with(&other.cut);
    }

    /// The numeric argument of a role in a task's call; `None` if the task has none.
    #[must_use]
    pub fn number(&self, role: ArgumentRole, task: TaskId) -> Option<i64> {
        self.numbers.get(&role)?.of(task)
    }

    /// Removes the data of these tasks, to be replaced by another probe. The numbers stay until that probe replaces
    /// them.
    pub fn forget(&mut self, tasks: &IdSet) {
        self.marks.forget(tasks);
        self.cut.subtract(tasks);
        forget(&mut self.stacks, tasks);
        forget(&mut self.waits, tasks);
        forget(&mut self.within, tasks);
        forget(&mut self.cpu_ms, tasks);
        forget(&mut self.processes, tasks);
    }
}

fn forget<T>(classes: &mut Vec<(IdSet, T)>, tasks: &IdSet) {
    for (known, _) in classes.iter_mut() {
        known.subtract(tasks);
    }
    classes.retain(|(known, _)| !known.is_empty());
}

fn absorb_numbers(
    known: &mut BTreeMap<ArgumentRole, Numbers>,
    more: BTreeMap<ArgumentRole, Numbers>,
) {
    for (role, numbers) in more {
        known.entry(role).or_default().absorb(numbers);
    }
}

#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Parts {
    marks: Marks,
    numbers: BTreeMap<ArgumentRole, Numbers>,
    within: Capped<Part<Within>>,
    waits: Capped<Part<TaskWaits>>,
    cpu_ms: Capped<Part<u64>>,
    processes: Capped<Part<ProcessState>>,
    stacks: Capped<Part<TaskStacks>>,
}

impl Parts {
    /// Adds the equal answers of some tasks.
    fn insert(&mut self, tasks: &IdSet, mut probe: TaskProbe) {
        self.marks.insert(tasks, &probe);
        let call = probe.waits.as_mut().and_then(|waits| waits.call.as_mut());
        for argument in call.into_iter().flat_map(|call| &mut call.arguments) {
            // Arguments that differ between ranks are kept apart, so that the rest is equal.
            if matches!(
                argument.role,
                ArgumentRole::Communicator | ArgumentRole::File
            ) {
                continue;
            }
            if let Some(number) = argument.number.replace(0) {
                let numbers = self.numbers.entry(argument.role).or_default();
                numbers.insert(tasks, number);
            } else {
                argument.number = None;
            }
        }
        insert(&mut self.within, tasks, probe.within);
        let waits = probe.waits.filter(|waits| !waits.is_empty());
        insert(&mut self.waits, tasks, waits);
        insert(&mut self.cpu_ms, tasks, probe.cpu_ms);
        insert(&mut self.processes, tasks, probe.process);
        insert(&mut self.stacks, tasks, probe.stacks);
    }

    fn probes(mut self) -> Probes {
        self.numbers.values_mut().for_each(Numbers::settle);
        Probes {
            marks: self.marks,
            numbers: self.numbers,
            within: classes(self.within),
            waits: classes(self.waits),
            cpu_ms: classes(self.cpu_ms),
            processes: classes(self.processes),
            cut: self.stacks.others.clone(),
            stacks: classes(self.stacks),
        }
    }
}

fn join<T: PartialEq>(classes: &mut Vec<(IdSet, T)>, more: Vec<(IdSet, T)>) {
    for (tasks, part) in more {
        match classes.iter_mut().find(|(_, known)| *known == part) {
            Some((known, _)) => known.union_with(&tasks),
            None => classes.push((tasks, part)),
        }
    }
}

impl MergedForm for Parts {
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload)
    }

    fn absorb(&mut self, other: Self) {
        self.marks.absorb(&other.marks);
        absorb_numbers(&mut self.numbers, other.numbers);
        self.within.absorb(other.within);
        self.waits.absorb(other.waits);
        self.cpu_ms.absorb(other.cpu_ms);
        self.processes.absorb(other.processes);
        self.stacks.absorb(other.stacks);
    }

    fn write(self, bytes_max: usize) -> Vec<u8> {
        write(self, bytes_max)
    }
}

fn write(mut parts: Parts, bytes_max: usize) -> Vec<u8> {
    // Each of the smaller parts has a fixed share. The stacks, which are essential for any diagnosis, have the rest.
    let share = bytes_max / 16;
    let mut writer = Writer::new(RULE_PROBE);
    for changed in parts.marks.all() {
        let before = writer.out.len();
        writer.set(changed);
        if writer.out.len() - before > share {
            writer.out.truncate(before);
            // A task that counts as changed is not reported as stuck.
            writer.all_sources();
        }
    }
    writer.fixed(&parts.waits.within(share, write_kind));
    writer.fixed(&parts.cpu_ms.within(share, write_kind));
    writer.fixed(&parts.processes.within(share, write_kind));
    writer.fixed(&parts.within.within(share, write_kind));
    writer.size(parts.numbers.len());
    let each = share / parts.numbers.len().max(1);
    for (role, numbers) in &mut parts.numbers {
        numbers.settle();
        let role = wire::encode(role);
        writer.size(role.len());
        writer.fixed(&role);
        numbers.write(&mut writer, each);
    }
    let rest = bytes_max.saturating_sub(writer.out.len());
    writer.fixed(&parts.stacks.within(rest, write_kind));
    writer.out
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<Parts, Rejected> {
    if !is_merged(payload) {
        return own(sources, payload);
    }
    let mut reader = Reader::new(RULE_PROBE, payload, sources)?;
    let parts = Parts {
        marks: Marks::read(&mut reader)?,
        waits: read_kind(&mut reader, |_| true)?,
        cpu_ms: read_kind(&mut reader, |_| true)?,
        processes: read_kind(&mut reader, |_| true)?,
        within: read_kind(&mut reader, |_| true)?,
        numbers: read_numbers(&mut reader, sources)?,
        stacks: read_kind(&mut reader, is_bounded)?,
    };
    reader.end()?;
    Ok(parts)
}

fn read_numbers(
    reader: &mut Reader<'_>,
    sources: &IdSet,
) -> Result<BTreeMap<ArgumentRole, Numbers>, Rejected> {
    let mut all = BTreeMap::new();
    for _ in 0..reader.count()? {
        let role = wire::decode(reader.bytes()?);
        let role = role.map_err(|_| Rejected("an argument of a call has an unknown role"))?;
        let numbers = Numbers::read(reader, sources)?;
        if all.insert(role, numbers).is_some() {
            return Err(Rejected(
                "the merged answer has two lists of values for one argument role of a call",
            ));
        }
    }
    Ok(all)
}

fn is_bounded(stacks: &TaskStacks) -> bool {
    let mut threads = stacks.threads.iter();
    threads.all(|thread| thread.frames.len() <= STACK_FRAMES_MAX)
}

/// Decodes the answer of one task, or the equal answers of several.
fn own(sources: &IdSet, payload: &[u8]) -> Result<Parts, Rejected> {
    let Ok(Reply::Probe(probe)) = wire::decode(payload) else {
        return Err(Rejected("no probe"));
    };
    if !probe.stacks.as_ref().is_none_or(is_bounded) {
        return Err(Rejected("a stack has more frames than the maximum"));
    }
    let mut parts = Parts::default();
    parts.insert(sources, *probe);
    Ok(parts)
}

#[cfg(test)]
mod tests;
