//! A map from distinct keys to the tasks that have them, bounded in bytes and independent of the order of merging.
//!
//! Keys are ordered by hash, and their costs are summed in that order. Keys beyond the maximum cost are dropped, and
//! only their tasks are kept. The smallest dropped hash is part of the payload. Where one part dropped this hash, the
//! merged map drops it too. The cost sum of the merged map is never smaller than that of a part. So a part drops no key
//! that the merged map would keep. The result is as if all keys were inserted into one map.

use std::collections::BTreeMap;

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;

use super::coding::{Reader, Writer};

/// Maximum size of one merged payload's keys before encoding, in bytes.
pub(super) const BUDGET_BYTES: usize = 2 << 20;
/// Fixed cost of a key in addition to its own bytes. It limits the number of keys to 4096.
const ENTRY_BYTES: usize = 512;

/// A key of the map.
pub(super) trait CappedKey: Ord + Clone {
    /// The size of the key in bytes, or an upper bound.
    fn cost(&self) -> usize;
    /// A hash of the key that is the same in every member of the tree.
    fn hash(&self) -> u64;
}

/// The tasks that have a key, their total count, and its smallest position.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct TaskCount {
    pub(super) tasks: IdSet,
    /// Total count over all tasks.
    pub(super) count: u64,
    /// The smallest position of the key in the answer of any of the tasks.
    pub(super) at: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Capped<K: CappedKey> {
    entries: BTreeMap<(u64, K), TaskCount>,
    cost: usize,
    budget: usize,
    /// The smallest dropped hash: keys with this hash or a higher one are not kept. `None` if nothing was dropped.
    cut: Option<u64>,
    pub(super) others: IdSet,
    pub(super) others_count: u64,
}

impl<K: CappedKey> Default for Capped<K> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            cost: 0,
            budget: BUDGET_BYTES,
            cut: None,
            others: IdSet::new(),
            others_count: 0,
        }
    }
}

impl<K: CappedKey> Capped<K> {
    /// Adds a key of some tasks.
    pub(super) fn insert(&mut self, thing: K, held: &TaskCount) {
        self.insert_hashed(thing.hash(), thing, held);
    }

    fn insert_hashed(&mut self, hash: u64, thing: K, held: &TaskCount) {
        if self.cut.is_some_and(|cut| hash >= cut) {
            return self.cut_off(held);
        }
        let cost = entry_cost(&thing);
        let known = self.entries.entry((hash, thing)).or_insert_with(|| {
            self.cost += cost;
            TaskCount {
                at: held.at,
                ..TaskCount::default()
            }
        });
        known.tasks.union_with(&held.tasks);
        known.count = known.count.saturating_add(held.count);
        known.at = known.at.min(held.at);
        while self.cost > self.budget {
            let last = self.entries.last_key_value();
            let hash = last.map_or(0, |((hash, _), _)| *hash);
            self.cut_from(hash);
        }
    }

    /// Merges the keys of another map into this one.
    pub(super) fn absorb(&mut self, other: Self) {
        if let Some(cut) = other.cut {
            self.cut_from(cut);
        }
        self.others.union_with(&other.others);
        self.others_count = self.others_count.saturating_add(other.others_count);
        for ((hash, thing), held) in other.entries {
            self.insert_hashed(hash, thing, &held);
        }
    }

    /// The kept keys with their tasks, in no meaningful order.
    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = (&K, &TaskCount)> {
        self.entries.iter().map(|((_, thing), held)| (thing, held))
    }

    /// Like [`Self::entries`], taken out of the map.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (K, TaskCount)> {
        let entries = self.entries.into_iter();
        entries.map(|((_, thing), held)| (thing, held))
    }

    /// Drops every key with this hash or a higher one. The tasks and counts of dropped keys are only added up.
    fn cut_from(&mut self, hash: u64) {
        self.cut = Some(self.cut.map_or(hash, |cut| cut.min(hash)));
        while let Some(last) = self.entries.last_entry() {
            if last.key().0 < hash {
                return;
            }
            let ((_, thing), held) = last.remove_entry();
            self.cost -= entry_cost(&thing);
            self.cut_off(&held);
        }
    }

    fn cut_off(&mut self, held: &TaskCount) {
        self.others.union_with(&held.tasks);
        self.others_count = self.others_count.saturating_add(held.count);
    }

    /// Drops keys until about `keep` of them are left.
    fn keep(&mut self, keep: usize) {
        if let Some(((hash, _), _)) = self.entries.iter().nth(keep) {
            let hash = *hash;
            self.cut_from(hash);
        }
    }

    /// Encodes the map by `write` in at most `bytes_max` bytes. Keys are dropped until it fits.
    pub(super) fn within(
        mut self,
        bytes_max: usize,
        write: impl Fn(&Self, bool) -> Vec<u8>,
    ) -> Vec<u8> {
        loop {
            let bytes = write(&self, true);
            let entries = self.entries.len();
            if bytes.len() <= bytes_max {
                return bytes;
            }
            if entries == 0 {
                // Not even the set of the other tasks fits. It is written as all sources.
                return write(&self, false);
            }
            let share = entries.saturating_mul(bytes_max) / bytes.len();
            self.keep((share * 7 / 8).min(entries - 1));
        }
    }

    /// Writes the dropped hash, and the count and the tasks of dropped keys. Unless `named`, the tasks are written as
    /// all sources of the payload, which takes one byte.
    pub(super) fn write_rest(&self, writer: &mut Writer, named: bool) {
        match self.cut {
            None => writer.number(0),
            Some(cut) => {
                writer.number(1);
                writer.number(cut);
            }
        }
        writer.number(self.others_count);
        if named {
            writer.set(&self.others);
        } else {
            writer.all_sources();
        }
    }

    /// Reads the encoding of [`Capped::write_rest`], and then the keys, each by `read`.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        mut read: impl FnMut(&mut Reader<'_>) -> Result<(K, TaskCount), Rejected>,
    ) -> Result<Self, Rejected> {
        let cut = match reader.number()? {
            0 => None,
            1 => Some(reader.number()?),
            _ => {
                return Err(Rejected(
                    "the merged answer has an invalid mark of omitted classes",
                ));
            }
        };
        let mut capped = Self {
            cut,
            others_count: reader.number()?,
            others: reader.set()?,
            ..Self::default()
        };
        let mut cost = 0;
        for _ in 0..reader.count()? {
            let (thing, held) = read(reader)?;
            cost += entry_cost(&thing);
            if cost > BUDGET_BYTES {
                return Err(Rejected("the merged answer exceeds its size limit"));
            }
            if held.tasks.is_empty() {
                return Err(Rejected("a class of equal answers has no tasks"));
            }
            capped.insert(thing, &held);
        }
        Ok(capped)
    }
}

fn entry_cost(thing: &impl CappedKey) -> usize {
    ENTRY_BYTES + thing.cost()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sdm_idset::TaskId;

    use super::*;

    /// A thing with a chosen hash, the first number; the second number tells things with equal hashes apart, and gives
    /// the cost.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Chosen(u64, u8);

    impl CappedKey for Chosen {
        fn cost(&self) -> usize {
            usize::from(self.1) * 100
        }

        fn hash(&self) -> u64 {
            self.0
        }
    }

    const BUDGET: usize = 5000;

    fn of(task: u32, thing: &Chosen) -> Capped<Chosen> {
        let mut capped = Capped {
            budget: BUDGET,
            ..Capped::default()
        };
        let held = TaskCount {
            tasks: IdSet::single(TaskId(task)),
            count: 1,
            at: task.into(),
        };
        capped.insert(thing.clone(), &held);
        capped
    }

    /// The expected result, computed from all things at once.
    fn model(things: &[Chosen]) -> (Vec<(Chosen, IdSet)>, IdSet) {
        let mut distinct = things.to_vec();
        distinct.sort();
        distinct.dedup();
        let mut cost = 0;
        let cut = distinct.iter().find(|thing| {
            cost += entry_cost(*thing);
            cost > BUDGET
        });
        let cut = cut.map_or(u64::MAX, |thing| thing.0);
        let who = |want: &dyn Fn(&Chosen) -> bool| {
            let tasks = (0..).zip(things).filter(|(_, thing)| want(thing));
            tasks.map(|(task, _)| TaskId(task)).collect::<IdSet>()
        };
        let kept = distinct.into_iter().filter(|thing| thing.0 < cut);
        (
            kept.map(|thing| (thing.clone(), who(&|t| *t == thing)))
                .collect(),
            who(&|thing| thing.0 >= cut),
        )
    }

    proptest! {
        #[test]
        fn any_merge_order_keeps_the_same_entries(
            things in proptest::collection::vec((0u64..24, 0u8..20), 1..60),
            picks in proptest::collection::vec((any::<u16>(), any::<u16>()), 60),
        ) {
            let things: Vec<Chosen> = things.into_iter().map(|(a, b)| Chosen(a, b)).collect();
            let mut parts: Vec<_> = (0..).zip(&things).map(|(task, thing)| of(task, thing)).collect();
            for (a, b) in picks {
                if parts.len() > 1 {
                    let from = parts.swap_remove(usize::from(a) % parts.len());
                    let into = usize::from(b) % parts.len();
                    parts[into].absorb(from);
                }
            }
            prop_assert_eq!(parts.len(), 1);
            let whole = parts.remove(0);
            let (kept, others) = model(&things);
            let held: Vec<_> = whole.entries().map(|(t, h)| (t.clone(), h.tasks.clone())).collect();
            prop_assert_eq!(held, kept);
            prop_assert_eq!(&whole.others, &others);
            prop_assert_eq!(whole.others_count, others.len());
            prop_assert!(whole.cost <= BUDGET);
        }
    }
}
