//! Parts of answers, each with the tasks that have it. A part that is equal in many answers is kept once, whatever
//! else differs in them.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::capped::{BUDGET_BYTES, Capped, CappedKey, Held};
use super::coding::{Reader, Writer};
use crate::wire;

/// A part in its encoded form. Equal parts have equal encodings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Encoded(pub(super) Vec<u8>);

impl CappedKey for Encoded {
    fn cost(&self) -> usize {
        self.0.len()
    }

    fn hash(&self) -> u64 {
        xxh3_64(&self.0)
    }
}

pub(super) fn insert(parts: &mut Capped<Encoded>, tasks: &IdSet, part: Option<impl Serialize>) {
    let Some(part) = part else { return };
    let held = Held {
        tasks: tasks.clone(),
        count: tasks.len(),
        at: 0,
    };
    parts.insert(Encoded(wire::encode(&part)), &held);
}

/// Decodes the parts, ordered by the first task of each.
pub(super) fn classes<T: DeserializeOwned>(parts: &Capped<Encoded>) -> Vec<(IdSet, T)> {
    let value = |(part, held): (&Encoded, &Held)| {
        let value = wire::decode(&part.0).ok()?;
        Some((held.tasks.clone(), value))
    };
    let mut classes: Vec<(IdSet, T)> = parts.entries().filter_map(value).collect();
    classes.sort_by_key(|(tasks, _)| tasks.first());
    classes
}

pub(super) fn write_kind(parts: &Capped<Encoded>, named: bool) -> Vec<u8> {
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

pub(super) fn read_kind(
    reader: &mut Reader<'_>,
    is_part: fn(&[u8]) -> bool,
) -> Result<Capped<Encoded>, Rejected> {
    Capped::read(reader, |reader| {
        let part = reader.bytes()?;
        if part.len() > BUDGET_BYTES || !is_part(part) {
            return Err(Rejected(
                "a part of the merged answer is too long or invalid",
            ));
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

pub(super) fn is<T: DeserializeOwned>(bytes: &[u8]) -> bool {
    wire::decode::<T>(bytes).is_ok()
}
