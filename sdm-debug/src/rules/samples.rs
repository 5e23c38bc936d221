//! The merge rule for sampled stacks: distinct stacks, each with its tasks and its count in each.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;
use xxhash_rust::xxh3::xxh3_64;

use super::capped::{Capped, CappedKey, TaskCount};
use super::coding::{Reader, Writer, is_merged};
use super::frames::{FramesReader, FramesWriter, cost};
use super::plain::MergedForm;
use super::rule_numbers::RULE_SAMPLES;
use crate::fold::STACK_FRAMES_MAX;
use crate::reply::{Reply, StackFrame, TaskSamples};
use crate::wire;

/// A stack, and the number of times that each of some tasks was seen in it, counted by thread over all samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// The frames of the stack, outermost first.
    pub frames: Vec<StackFrame>,
    /// Number of times that each task's threads were seen in this stack, over all samples.
    pub times: u64,
}

impl CappedKey for Seen {
    fn cost(&self) -> usize {
        cost(&self.frames)
    }

    // All samples of one stack are kept or cut together.
    fn hash(&self) -> u64 {
        xxh3_64(&wire::encode(&self.frames))
    }
}

/// The merged form of [`Reply::Samples`], by [`RULE_SAMPLES`].
///
/// Merged payload: `fe 07`, the numbers in the order of the fields, the set `moved`, a table of strings, cut, count
/// and set of the others. Then come the stacks as in [`RULE_STACK_TREE`](super::RULE_STACK_TREE), each with its
/// count.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Samples {
    /// Number of samples, over all tasks.
    pub looks: u64,
    /// Number of times that a thread was left out, over all tasks.
    pub helpers: u64,
    /// Total time that tasks were stopped, in microseconds.
    pub stood_us: u64,
    /// Longest time that one task was stopped, over all its samples, in microseconds.
    pub stood_most_us: u64,
    /// Longest stop for one sample, in microseconds.
    pub longest_us: u64,
    /// Processor time of the processes that took the samples, in microseconds.
    pub processor_us: u64,
    /// Tasks whose stacks have changed between samples.
    pub moved: IdSet,
    capped: Capped<Seen>,
}

impl Samples {
    /// The merged form of equal answers of these tasks.
    ///
    /// # Errors
    /// A stack is longer than allowed.
    pub fn of(tasks: &IdSet, own: &TaskSamples) -> Result<Self, Rejected> {
        let mut frames = own.stacks.iter().map(|(_, frames)| frames.len());
        if frames.any(|length| length > STACK_FRAMES_MAX) {
            return Err(Rejected("a stack has more frames than the maximum"));
        }
        let times = |number: u64| number.saturating_mul(tasks.len());
        let mut samples = Self {
            looks: times(own.looks.into()),
            helpers: times(own.helpers),
            stood_us: times(own.cost.stood_us),
            stood_most_us: own.cost.stood_us,
            longest_us: own.cost.longest_us,
            processor_us: times(own.cost.processor_us),
            ..Self::default()
        };
        if own.moves > 0 {
            samples.moved.clone_from(tasks);
        }
        for (times, frames) in &own.stacks {
            let seen = Seen {
                frames: frames.clone(),
                times: *times,
            };
            let held = held(&seen, tasks.clone());
            samples.capped.insert(seen, &held);
        }
        Ok(samples)
    }

    /// Merges in the samples of other tasks.
    pub fn absorb(&mut self, other: Self) {
        self.looks = self.looks.saturating_add(other.looks);
        self.helpers = self.helpers.saturating_add(other.helpers);
        self.stood_us = self.stood_us.saturating_add(other.stood_us);
        self.stood_most_us = self.stood_most_us.max(other.stood_most_us);
        self.longest_us = self.longest_us.max(other.longest_us);
        self.processor_us = self.processor_us.saturating_add(other.processor_us);
        self.moved.union_with(&other.moved);
        self.capped.absorb(other.capped);
    }

    /// The stacks, each with the tasks that were seen in it as often; in no particular order.
    pub fn seen(&self) -> impl ExactSizeIterator<Item = (&Seen, &IdSet)> {
        self.capped
            .entries()
            .map(|(seen, held)| (seen, &held.tasks))
    }

    /// Tasks with stacks that the merged answer has no room for, and the number of times that their threads were seen
    /// in these stacks.
    #[must_use]
    pub fn others(&self) -> (&IdSet, u64) {
        (&self.capped.others, self.capped.others_count)
    }
}

fn held(seen: &Seen, tasks: IdSet) -> TaskCount {
    TaskCount {
        count: seen.times.saturating_mul(tasks.len()),
        tasks,
        at: 0,
    }
}

impl MergedForm for Samples {
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        if is_merged(payload) {
            return read(sources, payload);
        }
        match wire::decode(payload) {
            Ok(Reply::Samples(own)) => Self::of(sources, &own),
            _ => Err(Rejected(
                "the bytes are not an encoded list of stack samples",
            )),
        }
    }

    fn absorb(&mut self, other: Self) {
        Self::absorb(self, other);
    }

    fn write(mut self, bytes_max: usize) -> Vec<u8> {
        let capped = std::mem::take(&mut self.capped);
        capped.within(bytes_max, |capped, named| write(&self, capped, named))
    }
}

fn write(head: &Samples, capped: &Capped<Seen>, named: bool) -> Vec<u8> {
    let mut writer = Writer::new(RULE_SAMPLES);
    for number in [
        head.looks,
        head.helpers,
        head.stood_us,
        head.stood_most_us,
        head.longest_us,
        head.processor_us,
    ] {
        writer.number(number);
    }
    match named {
        true => writer.set(&head.moved),
        false => writer.all_sources(),
    }
    let mut sorted: Vec<_> = capped.entries().collect();
    sorted.sort_by_key(|(seen, _)| *seen);
    let mut frames_written = FramesWriter::default();
    let mut body = Writer { out: Vec::new() };
    capped.write_rest(&mut body, named);
    body.size(sorted.len());
    for (seen, held) in sorted {
        frames_written.write(&mut body, &seen.frames);
        body.number(seen.times);
        body.set(&held.tasks);
    }
    frames_written.write_texts(&mut writer);
    writer.fixed(&body.out);
    writer.out
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<Samples, Rejected> {
    let mut reader = Reader::new(RULE_SAMPLES, payload, sources)?;
    let mut samples = Samples {
        looks: reader.number()?,
        helpers: reader.number()?,
        stood_us: reader.number()?,
        stood_most_us: reader.number()?,
        longest_us: reader.number()?,
        processor_us: reader.number()?,
        moved: reader.set()?,
        ..Samples::default()
    };
    let mut frames = FramesReader::read_texts(&mut reader)?;
    samples.capped = Capped::read(&mut reader, |reader| {
        let frames = frames.read(reader)?;
        let times = reader.number()?;
        let seen = Seen { frames, times };
        let held = held(&seen, reader.set()?);
        Ok((seen, held))
    })?;
    reader.end()?;
    Ok(samples)
}
