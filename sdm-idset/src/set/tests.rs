//! Tests of sets: memory use, positions, extreme ids, reversed ranges, and the debug text.

use super::*;

#[test]
fn empty_sets_own_no_memory() {
    let mut set = IdSet::all_below(1_000_000);
    assert_eq!(IdSet::new().memory_bytes(), 0);
    set.clear();
    assert_eq!(set.memory_bytes(), 0);
    let mut set = IdSet::single(TaskId(7));
    assert!(set.remove(TaskId(7)));
    assert_eq!(set, IdSet::new());
    assert_eq!(set.memory_bytes(), 0);
}

#[test]
fn contiguous_million_is_small_for_any_insertion_order() {
    let small = 2048;
    assert!(IdSet::all_below(1_000_000).memory_bytes() < small);

    let collected: IdSet = (0..1_000_000).map(TaskId).collect();
    assert!(collected.memory_bytes() < small);

    let mut blocks = IdSet::new();
    for start in (0..1_000_000).step_by(1000) {
        blocks.insert_range(start..=start + 999);
    }
    assert!(blocks.memory_bytes() < small);

    // Shuffled by a multiplier prime to a million: every id once.
    let mut singles = IdSet::new();
    for index in 0..1_000_000_u64 {
        let id = u32::try_from(index * 7_919 % 1_000_000).unwrap();
        assert!(singles.insert(TaskId(id)));
    }
    singles.compact();
    assert!(singles.memory_bytes() < small);
    assert_eq!(singles, collected);

    let mut joined = IdSet::new();
    for start in (0..1_000_000).step_by(1000).rev() {
        joined.union_with(&IdSet::from_range(start..=start + 999));
    }
    joined.compact();
    assert!(joined.memory_bytes() < small);
    assert_eq!(joined, collected);
}

#[test]
fn shrinking_set_never_exceeds_bitmap_size() {
    let mut set = IdSet::all_below(1_000_000);
    let mut most = 0;
    for index in 0..1_000_000_u64 {
        let id = u32::try_from(index * 7_919 % 1_000_000).unwrap();
        assert!(set.remove(TaskId(id)));
        if index % 4096 == 0 {
            most = most.max(set.memory_bytes());
        }
    }
    assert!(set.is_empty());
    assert!(most < 300_000, "{most} bytes at the most");
}

#[test]
fn nth_and_index_of_are_inverse() {
    let set: IdSet = "3,10-12,65535-65537,200000-200100/50".parse().unwrap();
    for (index, id) in (0..).zip(&set) {
        assert_eq!(set.nth(index), Some(id));
        assert_eq!(set.index_of(id), Some(index));
    }
    assert_eq!(set.nth(set.len()), None);
    assert_eq!(set.nth(u64::MAX), None);
    assert_eq!(set.index_of(TaskId(4)), None);
}

#[test]
fn zero_and_u32_max_are_valid_ids() {
    let mut set = IdSet::from_range(u32::MAX - 1..=u32::MAX);
    assert!(set.insert(TaskId(0)));
    assert!(!set.insert(TaskId(u32::MAX)));
    assert_eq!(set.len(), 3);
    assert_eq!(set.last(), Some(TaskId(u32::MAX)));
    assert_eq!(set.to_string(), "0,4294967294-4294967295");
    let whole = IdSet::from_range(0..=u32::MAX);
    assert_eq!(whole.len(), 1 << 32);
    assert!(whole.memory_bytes() < 8 << 20);
}

#[test]
fn reversed_ranges_are_empty() {
    #[expect(clippy::reversed_empty_ranges)]
    let range = 5..=4;
    assert!(IdSet::from_range(range.clone()).is_empty());
    let mut set = IdSet::new();
    set.insert_range(range);
    assert!(set.is_empty());
    assert!(IdSet::all_below(0).is_empty());
}

#[test]
fn debug_text_is_short() {
    assert_eq!(format!("{:?}", IdSet::new()), "{}");
    let few: IdSet = "0-3,7".parse().unwrap();
    assert_eq!(format!("{few:?}"), "{0-3,7}");
    let many: IdSet = (0..100_000)
        .filter(|id| id % 7 == 0 || id % 5 == 0)
        .map(TaskId)
        .collect();
    let text = format!("{many:?}");
    assert!(
        text.ends_with(&format!(",... {} ids}}", many.len())),
        "{text}"
    );
    assert!(text.len() < 2000, "{text}");
}
