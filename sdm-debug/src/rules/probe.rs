//! The parts of probes, each with who has it.

use bytes::Bytes;
use sdm_core::aggregate::{Acc, Merge, Rejected};
use sdm_idset::IdSet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::capped::{BUDGET_BYTES, Capped, Held, Thing};
use super::coding::{Reader, Writer, is_merged};
use super::rule_numbers::RULE_PROBE;
use crate::fold::STACK_FRAMES_MAX;
use crate::probe::{ProcessState, TaskProbe, TaskWaits};
use crate::reply::{Reply, TaskStacks};
use crate::wire;

/// What the probes of many tasks have come to: tasks that differ in one part are together in the others.
///
/// Merged payload: `fe 04`, the set of those whose inner variables changed, that of those whose outer ones
/// did, then for each kind of part (waits, processor times, process states, stacks): cut, count and set of
/// the others, count of parts, and for each its bytes and its set.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Probes {
    /// The distinct stacks.
    pub stacks: Vec<(IdSet, TaskStacks)>,
    /// Who has a variable in the innermost user frame that is another than at the probe before.
    pub inner_changed: IdSet,
    /// Who has one in the two frames around it.
    pub outer_changed: IdSet,
    /// What is waited in.
    pub waits: Vec<(IdSet, TaskWaits)>,
    /// Time on a processor since the probe before, in milliseconds.
    pub cpu_ms: Vec<(IdSet, u64)>,
    /// What the kernel says of the processes.
    pub processes: Vec<(IdSet, ProcessState)>,
    /// Who has stacks that there was no room for.
    pub cut: IdSet,
}

impl Probes {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// A payload that is no probe.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload).map(|parts| parts.probes())
    }

    /// One task's own answer, or the equal answers of these tasks.
    #[must_use]
    pub fn of(tasks: &IdSet, probe: TaskProbe) -> Self {
        let mut parts = Parts::default();
        parts.insert(tasks, probe);
        parts.probes()
    }

    /// Takes in what other answers have come to.
    pub fn absorb(&mut self, other: Self) {
        join(&mut self.stacks, other.stacks);
        self.inner_changed.union_with(&other.inner_changed);
        self.outer_changed.union_with(&other.outer_changed);
        join(&mut self.waits, other.waits);
        join(&mut self.cpu_ms, other.cpu_ms);
        join(&mut self.processes, other.processes);
        self.cut.union_with(&other.cut);
    }
}

/// A part as its bytes: equal parts have equal ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Encoded(Vec<u8>);

impl Thing for Encoded {
    fn cost(&self) -> usize {
        self.0.len()
    }

    fn hash(&self) -> u64 {
        xxh3_64(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Default)]
struct Parts {
    inner_changed: IdSet,
    outer_changed: IdSet,
    waits: Capped<Encoded>,
    cpu_ms: Capped<Encoded>,
    processes: Capped<Encoded>,
    stacks: Capped<Encoded>,
}

impl Parts {
    /// Takes in the equal answers of some tasks.
    fn insert(&mut self, tasks: &IdSet, probe: TaskProbe) {
        if probe.inner_changed == Some(true) {
            self.inner_changed.union_with(tasks);
        }
        if probe.outer_changed == Some(true) {
            self.outer_changed.union_with(tasks);
        }
        let waits = probe.waits.filter(|waits| !waits.is_empty());
        insert(&mut self.waits, tasks, waits);
        insert(&mut self.cpu_ms, tasks, probe.cpu_ms);
        insert(&mut self.processes, tasks, probe.process);
        insert(&mut self.stacks, tasks, probe.stacks);
    }

    fn absorb(&mut self, other: Self) {
        self.inner_changed.union_with(&other.inner_changed);
        self.outer_changed.union_with(&other.outer_changed);
        self.waits.absorb(other.waits);
        self.cpu_ms.absorb(other.cpu_ms);
        self.processes.absorb(other.processes);
        self.stacks.absorb(other.stacks);
    }

    fn probes(&self) -> Probes {
        Probes {
            stacks: classes(&self.stacks),
            inner_changed: self.inner_changed.clone(),
            outer_changed: self.outer_changed.clone(),
            waits: classes(&self.waits),
            cpu_ms: classes(&self.cpu_ms),
            processes: classes(&self.processes),
            cut: self.stacks.others.clone(),
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

fn insert(parts: &mut Capped<Encoded>, tasks: &IdSet, part: Option<impl Serialize>) {
    let Some(part) = part else { return };
    let held = Held {
        tasks: tasks.clone(),
        count: tasks.len(),
        at: 0,
    };
    parts.insert(Encoded(wire::encode(&part)), &held);
}

/// The parts as values, in the order of the first task of each.
fn classes<T: DeserializeOwned>(parts: &Capped<Encoded>) -> Vec<(IdSet, T)> {
    let value = |(part, held): (&Encoded, &Held)| {
        let value = wire::decode(&part.0).ok()?;
        Some((held.tasks.clone(), value))
    };
    let mut classes: Vec<(IdSet, T)> = parts.entries().filter_map(value).collect();
    classes.sort_by_key(|(tasks, _)| tasks.first());
    classes
}

pub(super) struct Rule;

impl Merge for Rule {
    fn start(&self) -> Acc {
        Box::new(Parts::default())
    }

    fn merge(&self, acc: &mut Acc, sources: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let parts = read(sources, payload)?;
        let acc: &mut Parts = acc.downcast_mut().expect("made by start");
        acc.absorb(parts);
        Ok(())
    }

    fn finish(&self, acc: Acc, bytes_max: usize) -> Bytes {
        let acc: Box<Parts> = acc.downcast().expect("made by start");
        Bytes::from(write(*acc, bytes_max))
    }
}

fn write(parts: Parts, bytes_max: usize) -> Vec<u8> {
    // A share for each of the smaller ones; the stacks, without which nothing can be said, have the rest.
    let share = bytes_max / 8;
    let mut writer = Writer::new(RULE_PROBE);
    for changed in [&parts.inner_changed, &parts.outer_changed] {
        let before = writer.out.len();
        writer.set(changed);
        if writer.out.len() - before > share {
            writer.out.truncate(before);
            // Who is thought to have changed is accused of nothing.
            writer.all_sources();
        }
    }
    for kind in [parts.waits, parts.cpu_ms, parts.processes] {
        writer.fixed(&kind.within(share, write_kind));
    }
    let rest = bytes_max.saturating_sub(writer.out.len());
    writer.fixed(&parts.stacks.within(rest, write_kind));
    writer.out
}

fn write_kind(parts: &Capped<Encoded>, named: bool) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new() };
    parts.write_rest(&mut writer, named);
    writer.size(parts.entries().len());
    for (part, held) in parts.entries() {
        writer.size(part.0.len());
        writer.fixed(&part.0);
        writer.set(&held.tasks);
    }
    writer.out
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<Parts, Rejected> {
    if !is_merged(payload) {
        return own(sources, payload);
    }
    let mut reader = Reader::new(RULE_PROBE, payload, sources)?;
    let parts = Parts {
        inner_changed: reader.set()?,
        outer_changed: reader.set()?,
        waits: read_kind(&mut reader, is::<TaskWaits>)?,
        cpu_ms: read_kind(&mut reader, is::<u64>)?,
        processes: read_kind(&mut reader, is::<ProcessState>)?,
        stacks: read_kind(&mut reader, |bytes| {
            wire::decode(bytes).is_ok_and(|stacks| is_bounded(&stacks))
        })?,
    };
    reader.end()?;
    Ok(parts)
}

fn read_kind(
    reader: &mut Reader<'_>,
    is_part: fn(&[u8]) -> bool,
) -> Result<Capped<Encoded>, Rejected> {
    Capped::read(reader, |reader| {
        let part = reader.bytes()?;
        if part.len() > BUDGET_BYTES || !is_part(part) {
            return Err(Rejected("a part of a probe that is none"));
        }
        let part = Encoded(part.to_vec());
        let tasks = reader.set()?;
        let held = Held {
            count: tasks.len(),
            tasks,
            at: 0,
        };
        Ok((part, held))
    })
}

fn is<T: DeserializeOwned>(bytes: &[u8]) -> bool {
    wire::decode::<T>(bytes).is_ok()
}

fn is_bounded(stacks: &TaskStacks) -> bool {
    let mut threads = stacks.threads.iter();
    threads.all(|thread| thread.frames.len() <= STACK_FRAMES_MAX)
}

/// What a task answered.
fn own(sources: &IdSet, payload: &[u8]) -> Result<Parts, Rejected> {
    let Ok(Reply::Probe(probe)) = wire::decode(payload) else {
        return Err(Rejected("no probe"));
    };
    if !probe.stacks.as_ref().is_none_or(is_bounded) {
        return Err(Rejected("a stack beyond its bound"));
    }
    let mut parts = Parts::default();
    parts.insert(sources, *probe);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::StackFrame;

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    fn stacks(line: u32) -> TaskStacks {
        TaskStacks::of_main(vec![StackFrame::own("main", "a.c", line)], 0)
    }

    /// A task that stands at a line, has used so much time, and whose variables are what they were or not.
    fn probe(line: u32, cpu_ms: u64, changed: bool) -> TaskProbe {
        TaskProbe {
            stacks: Some(stacks(line)),
            inner_changed: Some(changed),
            outer_changed: Some(false),
            cpu_ms: Some(cpu_ms),
            ..TaskProbe::default()
        }
    }

    /// The payload of all, merged one after another in this order, through bytes every time.
    fn merged(answers: &[(&str, TaskProbe)], bytes_max: usize) -> (IdSet, Bytes) {
        let mut whole: Option<(IdSet, Bytes)> = None;
        for (tasks, probe) in answers {
            let own = wire::encode(&Reply::Probe(Box::new(probe.clone())));
            let mut acc = Rule.start();
            let mut sources = set(tasks);
            Rule.merge(&mut acc, &sources, &own).unwrap();
            if let Some((before, payload)) = whole {
                Rule.merge(&mut acc, &before, &payload).unwrap();
                sources.union_with(&before);
            }
            whole = Some((sources, Rule.finish(acc, bytes_max)));
        }
        whole.unwrap()
    }

    #[test]
    fn tasks_that_differ_in_one_part_are_together_in_the_others() {
        let mut answers = vec![
            ("0-2,4-7", probe(9, 500, false)),
            ("3", probe(9, 0, true)),
            ("8", probe(12, 0, false)),
            ("9", TaskProbe::default()),
        ];
        let (sources, payload) = merged(&answers, 1 << 20);
        let probes = Probes::decode(&sources, &payload).unwrap();
        let expect = Probes {
            stacks: vec![(set("0-7"), stacks(9)), (set("8"), stacks(12))],
            inner_changed: set("3"),
            cpu_ms: vec![(set("0-2,4-7"), 500), (set("3,8"), 0)],
            ..Probes::default()
        };
        assert_eq!(probes, expect);
        answers.reverse();
        assert_eq!(merged(&answers, 1 << 20), (sources, payload));
    }

    #[test]
    fn a_million_tasks_take_few_bytes() {
        let all = format!("0-{}", (1 << 20) - 1);
        let (_, payload) = merged(&[(&all, probe(9, 500, false))], 4 << 20);
        assert!(payload.len() < 100, "{} bytes", payload.len());
    }

    #[test]
    fn stacks_that_there_is_no_room_for_are_cut_and_their_tasks_named() {
        let mut acc = Rule.start();
        let mut all = IdSet::new();
        for line in 0..5000 {
            let tasks = set(&line.to_string());
            let own = wire::encode(&Reply::Probe(Box::new(probe(line, 0, false))));
            Rule.merge(&mut acc, &tasks, &own).unwrap();
            all.union_with(&tasks);
        }
        let payload = Rule.finish(acc, 16 << 10);
        assert!(payload.len() <= 16 << 10);
        let probes = Probes::decode(&all, &payload).unwrap();
        let kept = IdSet::union_all(probes.stacks.iter().map(|(tasks, _)| tasks));
        assert!(!kept.is_empty() && kept.is_disjoint(&probes.cut));
        assert_eq!(kept.union(&probes.cut), all);
    }

    #[test]
    fn who_does_not_fit_is_thought_to_have_changed() {
        let scattered: IdSet = (0..90_000_u32)
            .filter(|id| id.wrapping_mul(0x9e37_79b9) >> 30 == 0)
            .map(sdm_idset::TaskId)
            .collect();
        let mut acc = Rule.start();
        let own = |changed| wire::encode(&Reply::Probe(Box::new(probe(9, 0, changed))));
        let all = IdSet::all_below(90_000);
        Rule.merge(&mut acc, &scattered, &own(true)).unwrap();
        let rest = all.difference(&scattered);
        Rule.merge(&mut acc, &rest, &own(false)).unwrap();
        let payload = Rule.finish(acc, 1 << 10);
        assert!(payload.len() <= 1 << 10);
        let probes = Probes::decode(&all, &payload).unwrap();
        assert_eq!(probes.inner_changed, all);
    }

    #[test]
    fn what_is_no_probe_is_refused() {
        let sources = set("0-3");
        let (_, payload) = merged(&[("0-3", probe(9, 500, true))], 1 << 20);
        for end in 0..payload.len() {
            assert!(Probes::decode(&sources, &payload[..end]).is_err());
        }
        assert!(Probes::decode(&set("0"), &payload).is_err());
        let text = wire::encode(&Reply::Text("x".to_owned()));
        assert!(Probes::decode(&sources, &text).is_err());
    }
}
