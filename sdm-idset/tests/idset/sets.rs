//! Strategies for realistic sets: runs, strides, single ids and noise, near block boundaries and at the
//! ends.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sdm_idset::{ID_MAX, IdSet, TaskId};

/// Ids that are likely to be close to each other and to multiples of 65 536.
fn id() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0..200_u32,
        2 => 65_400..65_700_u32,
        1 => 131_000..131_100_u32,
        1 => ID_MAX - 50..=ID_MAX,
        1 => 0..=ID_MAX,
    ]
}

/// A piece of a set, in ascending order.
fn piece() -> impl Strategy<Value = Vec<u32>> {
    let evenly = |first: u32, count: u32, step: u32| -> Vec<u32> {
        (0..count)
            .map(|index| first + index * step)
            .filter(|id| *id <= ID_MAX)
            .collect()
    };
    prop_oneof![
        3 => id().prop_map(|id| vec![id]),
        3 => (id(), 1..300_u32).prop_map(move |(first, count)| evenly(first, count, 1)),
        3 => (id(), 1..100_u32, 2..40_u32).prop_map(move |(first, count, step)| evenly(first, count, step)),
        1 => (id(), 4_000..9_000_u32, 1..4_u32).prop_map(move |(first, count, step)| evenly(first, count, step)),
        1 => (id(), prop::collection::vec(any::<bool>(), 500)).prop_map(|(first, bits)| {
            (first..=ID_MAX).zip(bits).filter(|(_, there)| *there).map(|(id, _)| id).collect()
        }),
    ]
}

/// The ids of a set, and the set itself. The set is built in one of three ways, so that its layout differs.
pub(crate) fn any_set() -> impl Strategy<Value = (BTreeSet<u32>, IdSet)> {
    (prop::collection::vec(piece(), 0..8), 0..3).prop_map(|(pieces, how)| {
        let model: BTreeSet<u32> = pieces.iter().flatten().copied().collect();
        let set = match how {
            0 => model.iter().copied().map(TaskId).collect(),
            1 => {
                let mut set = IdSet::new();
                for id in pieces.into_iter().flatten() {
                    set.insert(TaskId(id));
                }
                set
            }
            _ => {
                let mut set = IdSet::new();
                for ids in pieces {
                    let ids: IdSet = ids.into_iter().map(TaskId).collect();
                    for range in ids.ranges() {
                        set.insert_range(range);
                    }
                }
                set
            }
        };
        (model, set)
    })
}

/// The ids of a set, one by one.
pub(crate) fn ids_of(set: &IdSet) -> BTreeSet<u32> {
    set.iter().map(|id| id.0).collect()
}
