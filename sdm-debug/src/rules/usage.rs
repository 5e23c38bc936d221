//! The merge rule for memory usage: the sum, and the tasks that use the most.

use sdm_core::aggregate::Rejected;
use sdm_idset::{IdSet, TaskId};

use super::coding::{Reader, Writer, is_merged};
use super::plain::MergedForm;
use super::rule_numbers::RULE_USAGE;
use crate::reply::{Reply, Usage};
use crate::wire;

/// Maximum number of tasks that are listed as those with the largest memory.
pub const LARGEST_MAX: usize = 5;

/// The merged form of [`Reply::Usage`], by [`RULE_USAGE`].
///
/// Merged payload: `fe 05`, count of tasks, sum, highest peak, count of the largest, then for each its bytes and its
/// task.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TotalUsage {
    /// Number of tasks that answered.
    pub count: u64,
    /// Sum of the tasks' resident memory, in bytes, saturating. Shared pages count in each task.
    pub resident_bytes: u64,
    /// Highest peak resident memory of any one task, in bytes.
    pub peak_bytes: u64,
    /// The tasks with the largest resident memory, each as bytes and task: at most [`LARGEST_MAX`], largest first, of
    /// equal ones the lowest task.
    pub largest: Vec<(u64, TaskId)>,
}

impl TotalUsage {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// [`Rejected`]: a payload without memory usage.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        if is_merged(payload) {
            return read(sources, payload);
        }
        match wire::decode(payload) {
            Ok(Reply::Usage(usage)) => Ok(Self::of(sources, &usage)),
            _ => Err(Rejected("the bytes are not an encoded memory usage")),
        }
    }

    /// The merged form of equal answers of these tasks.
    #[must_use]
    pub fn of(tasks: &IdSet, own: &Usage) -> Self {
        let each = |task| (own.resident_bytes, task);
        Self {
            count: tasks.len(),
            resident_bytes: own.resident_bytes.saturating_mul(tasks.len()),
            peak_bytes: own.peak_bytes,
            largest: tasks.iter().take(LARGEST_MAX).map(each).collect(),
        }
    }

    /// Merges in the answers of other tasks.
    pub fn absorb(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.resident_bytes = self.resident_bytes.saturating_add(other.resident_bytes);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.largest.extend(&other.largest);
        let rank = |(bytes, task): &(u64, TaskId)| (std::cmp::Reverse(*bytes), *task);
        self.largest.sort_unstable_by_key(rank);
        self.largest.truncate(LARGEST_MAX);
    }
}

impl MergedForm for TotalUsage {
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        Self::decode(sources, payload)
    }

    fn absorb(&mut self, other: Self) {
        Self::absorb(self, &other);
    }

    // The payload has some ninety bytes at most, less than any bound of the tree.
    fn write(self, _bytes_max: usize) -> Vec<u8> {
        let mut writer = Writer::new(RULE_USAGE);
        for number in [self.count, self.resident_bytes, self.peak_bytes] {
            writer.number(number);
        }
        writer.size(self.largest.len());
        for (bytes, task) in &self.largest {
            writer.number(*bytes);
            writer.number(task.0.into());
        }
        writer.out
    }
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<TotalUsage, Rejected> {
    let mut reader = Reader::new(RULE_USAGE, payload, sources)?;
    let (count, resident_bytes) = (reader.number()?, reader.number()?);
    let peak_bytes = reader.number()?;
    let named = reader.count()?;
    if count > sources.len() || named > LARGEST_MAX || named as u64 > count {
        return Err(Rejected(
            "the memory usage counts or names more tasks than it can have",
        ));
    }
    let mut largest = Vec::with_capacity(named);
    for _ in 0..named {
        let bytes = reader.number()?;
        let task = u32::try_from(reader.number()?).map(TaskId);
        let task = task.ok().filter(|task| sources.contains(*task));
        largest.push((
            bytes,
            task.ok_or(Rejected(
                "the answer has a task to which the command was not sent",
            ))?,
        ));
    }
    reader.end()?;
    Ok(TotalUsage {
        count,
        resident_bytes,
        peak_bytes,
        largest,
    })
}
