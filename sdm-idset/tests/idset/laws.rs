//! Tests that `IdSet` behaves like `BTreeSet<u32>`.

use std::collections::BTreeSet;

use crate::sets::{any_set, ids_of};
use proptest::prelude::*;
use sdm_idset::{IdSet, Stride, TaskId};

proptest! {
    #[test]
    fn queries_agree_with_the_model((model, set) in any_set(), probes in prop::collection::vec(any::<u32>(), 8)) {
        prop_assert_eq!(ids_of(&set), model.clone());
        prop_assert_eq!(set.len(), model.len() as u64);
        prop_assert_eq!(set.is_empty(), model.is_empty());
        prop_assert_eq!(set.first().map(|id| id.0), model.first().copied());
        prop_assert_eq!(set.last().map(|id| id.0), model.last().copied());
        let near = model.iter().flat_map(|id| [id.saturating_sub(1), *id, id + 1]);
        for probe in probes.into_iter().chain(near.take(300)) {
            let there = model.contains(&probe);
            prop_assert_eq!(set.contains(TaskId(probe)), there);
            let below = there.then(|| model.range(..probe).count() as u64);
            prop_assert_eq!(set.index_of(TaskId(probe)), below);
            if let Some(index) = below {
                prop_assert_eq!(set.nth(index), Some(TaskId(probe)));
            }
        }
        prop_assert_eq!(set.nth(set.len()), None);
    }

    #[test]
    fn operations_on_two_sets_agree_with_the_model((model_a, a) in any_set(), (model_b, b) in any_set()) {
        let union: BTreeSet<u32> = model_a.union(&model_b).copied().collect();
        let both: BTreeSet<u32> = model_a.intersection(&model_b).copied().collect();
        let rest: BTreeSet<u32> = model_a.difference(&model_b).copied().collect();

        prop_assert_eq!(ids_of(&a.union(&b)), union.clone());
        prop_assert_eq!(ids_of(&a.intersection(&b)), both.clone());
        prop_assert_eq!(ids_of(&a.difference(&b)), rest.clone());
        prop_assert_eq!(a.intersection_len(&b), both.len() as u64);
        prop_assert_eq!(a.is_disjoint(&b), both.is_empty());
        prop_assert_eq!(a.is_subset(&b), rest.is_empty());
        prop_assert_eq!(a == b, model_a == model_b);

        let mut c = a.clone();
        c.union_with(&b);
        prop_assert_eq!(ids_of(&c), union);
        let mut c = a.clone();
        c.intersect_with(&b);
        prop_assert_eq!(ids_of(&c), both);
        let mut c = a.clone();
        c.subtract(&b);
        prop_assert_eq!(ids_of(&c), rest);
    }

    #[test]
    fn sets_obey_set_algebra((_, a) in any_set(), (_, b) in any_set(), (_, c) in any_set()) {
        prop_assert_eq!(&a | &b, &b | &a);
        prop_assert_eq!(&a & &b, &b & &a);
        prop_assert_eq!(&(&a | &b) | &c, &a | &(&b | &c));
        prop_assert_eq!(&a & &(&b | &c), &(&a & &b) | &(&a & &c));
        prop_assert_eq!(&(&a - &b) - &c, &a - &(&b | &c));
        prop_assert_eq!(&(&a - &b) | &(&a & &b), a.clone());
        prop_assert_eq!(IdSet::union_all([&a, &b, &c]), &(&a | &b) | &c);
        prop_assert!((&a & &b).is_subset(&a));
        prop_assert!(a.is_subset(&(&a | &b)));
        prop_assert!((&a - &b).is_disjoint(&b));
        prop_assert!((&a - &a).is_empty());
    }

    #[test]
    fn single_changes_agree_with_the_model((mut model, mut set) in any_set(), changes in prop::collection::vec((0..300_u32, any::<bool>()), 0..200)) {
        for (id, insert) in changes {
            if insert {
                prop_assert_eq!(set.insert(TaskId(id)), model.insert(id));
            } else {
                prop_assert_eq!(set.remove(TaskId(id)), model.remove(&id));
            }
        }
        prop_assert_eq!(ids_of(&set), model);
    }

    #[test]
    fn equality_does_not_depend_on_layout((model, set) in any_set()) {
        let mut compact = set.clone();
        compact.compact();
        prop_assert_eq!(&compact, &set);
        let collected: IdSet = model.into_iter().map(TaskId).collect();
        prop_assert_eq!(collected, compact);
    }

    #[test]
    fn ranges_are_maximal_and_complete((model, set) in any_set()) {
        let mut before = None;
        let mut ids = Vec::new();
        for range in set.ranges() {
            prop_assert!(range.start() <= range.end());
            prop_assert!(before.is_none_or(|end: u32| end + 1 < *range.start()));
            before = Some(*range.end());
            ids.extend(range);
        }
        prop_assert!(ids.into_iter().eq(model));
    }

    #[test]
    fn strides_cover_exactly_the_set((model, set) in any_set()) {
        let ids = set.strides().flat_map(Stride::ids).map(|id| id.0);
        prop_assert!(ids.eq(model.iter().copied()));
        let mut back = IdSet::new();
        for stride in set.strides() {
            prop_assert_eq!(stride.count(), stride.ids().count() as u64);
            prop_assert_eq!(Stride::new(stride.first(), stride.last(), stride.step()), Some(stride));
            back.insert_stride(stride);
        }
        prop_assert_eq!(back, set);
    }

    #[test]
    fn long_strides_are_inserted_at_every_offset(first in 0..70_000_u32, step in 1..40_u32, count in 1..20_000_u32, high in any::<bool>()) {
        // At the upper end the last id is the last u32.
        let first = if high { u32::MAX - (count - 1) * step } else { first };
        let last = first + (count - 1) * step;
        let mut set = IdSet::single(TaskId(first / 2));
        set.insert_stride(Stride::new(TaskId(first), TaskId(last), step).unwrap());
        let mut model: BTreeSet<u32> = (0..count).map(|index| first + index * step).collect();
        model.insert(first / 2);
        prop_assert_eq!(ids_of(&set), model);
    }
}
