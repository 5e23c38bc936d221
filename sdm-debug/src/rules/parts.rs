//! Parts of answers, each with the tasks that have it. A part that is equal in many answers is kept once, whatever
//! else differs in them.

use std::cmp::Ordering;

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::capped::{BUDGET_BYTES, Capped, CappedKey, TaskCount};
use super::coding::{Reader, Writer};
use crate::wire;

/// A part with its encoding, which is made or read once. Equal parts have equal encodings, by which they are compared.
#[derive(Clone, Debug)]
pub(super) struct Part<T> {
    pub(super) bytes: Vec<u8>,
    pub(super) value: T,
}

impl<T> Ord for Part<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl<T> PartialOrd for Part<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Part<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Part<T> {}

impl<T: Clone> CappedKey for Part<T> {
    fn cost(&self) -> usize {
        self.bytes.len()
    }

    fn hash(&self) -> u64 {
        xxh3_64(&self.bytes)
    }
}

pub(super) fn insert<T: Clone + Serialize>(
    parts: &mut Capped<Part<T>>,
    tasks: &IdSet,
    part: Option<T>,
) {
    let Some(value) = part else { return };
    let held = TaskCount {
        tasks: tasks.clone(),
        count: tasks.len(),
        at: 0,
    };
    let bytes = wire::encode(&value);
    parts.insert(Part { bytes, value }, &held);
}

/// The parts, ordered by the first task of each.
pub(super) fn ordered<T: Clone>(parts: Capped<Part<T>>) -> Vec<(IdSet, Part<T>)> {
    let classes = parts.into_entries().map(|(part, held)| (held.tasks, part));
    let mut classes: Vec<_> = classes.collect();
    classes.sort_by_key(|(tasks, _)| tasks.first());
    classes
}

/// The values of the parts, ordered by the first task of each.
pub(super) fn classes<T: Clone>(parts: Capped<Part<T>>) -> Vec<(IdSet, T)> {
    let parts = ordered(parts).into_iter();
    parts.map(|(tasks, part)| (tasks, part.value)).collect()
}

pub(super) fn write_kind<T: Clone>(parts: &Capped<Part<T>>, named: bool) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new() };
    parts.write_rest(&mut writer, named);
    writer.size(parts.entries().len());
    for (part, held) in parts.entries() {
        writer.size(part.bytes.len());
        writer.fixed(&part.bytes);
        writer.set(&held.tasks);
    }
    writer.out
}

/// Reads the parts of one kind. Those that are not bounded are rejected.
pub(super) fn read_kind<T: Clone + DeserializeOwned>(
    reader: &mut Reader<'_>,
    is_bounded: fn(&T) -> bool,
) -> Result<Capped<Part<T>>, Rejected> {
    Capped::read(reader, |reader| {
        let bytes = reader.bytes()?;
        let value = Some(bytes).filter(|bytes| bytes.len() <= BUDGET_BYTES);
        let value = value.and_then(|bytes| wire::decode(bytes).ok());
        let value = value.filter(is_bounded).ok_or(Rejected(
            "a part of the merged answer is too long or invalid",
        ))?;
        let bytes = bytes.to_vec();
        let part = Part { bytes, value };
        let tasks = reader.set()?;
        let held = TaskCount {
            count: tasks.len(),
            tasks,
            at: 0,
        };
        Ok((part, held))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::{Deserialize, Deserializer};

    use super::*;
    use crate::rules::rule_numbers::RULE_PROBE;

    thread_local! {
        static DECODED: Cell<u32> = const { Cell::new(0) };
    }

    /// A number that counts how often it is decoded.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    struct Counted(u64);

    impl<'de> Deserialize<'de> for Counted {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            DECODED.set(DECODED.get() + 1);
            u64::deserialize(from).map(Self)
        }
    }

    #[test]
    fn merged_part_is_decoded_once() {
        let tasks = IdSet::all_below(3);
        let mut parts = Capped::default();
        insert(&mut parts, &tasks, Some(Counted(7)));
        let mut writer = Writer::new(RULE_PROBE);
        writer.fixed(&parts.within(1 << 10, write_kind));
        let mut reader = Reader::new(RULE_PROBE, &writer.out, &tasks).unwrap();
        let read = read_kind::<Counted>(&mut reader, |_| true).unwrap();
        assert_eq!(classes(read), [(tasks, Counted(7))]);
        assert_eq!(DECODED.get(), 1);
    }
}
