//! Tests of columns: a column has the same numbers as a map after the same changes, and stores regular numbers in few
//! segments.

use proptest::prelude::*;

use super::*;

fn held(column: &Column) -> BTreeMap<u32, i64> {
    let each = column.runs(0, u32::MAX);
    each.flat_map(|(first, last, cell)| (first..=last).map(move |id| (id, cell)))
        .collect()
}

proptest! {
    /// After any sequence of writes and erasures, a column has the same number for each id as a map.
    #[test]
    fn column_agrees_with_a_map(
        changes in prop::collection::vec(
            (0_u32..300, 0_u32..40, prop::option::weighted(0.85, prop_oneof![
                4 => 0_i64..4, 2 => -9_000_000_000_i64..9_000_000_000, 1 => Just(i64::MIN), 1 => Just(i64::MAX)
            ])),
            0..200,
        )
    ) {
        let mut column = Column::default();
        let mut map = BTreeMap::new();
        for (at, more, cell) in changes {
            let last = at + more * u32::from(more % 3 != 0);
            match cell {
                Some(cell) => {
                    column.write(at, last, cell);
                    map.extend((at..=last).map(|id| (id, cell)));
                }
                None => {
                    column.erase(at, last);
                    map.retain(|id, _| !(at..=last).contains(id));
                }
            }
            prop_assert_eq!(&held(&column), &map);
            prop_assert_eq!(column.at(at), map.get(&at).copied());
        }
        let runs: Vec<_> = column.runs(0, u32::MAX).collect();
        let mut filled = Column::default();
        filled.write(50, 60, 1);
        filled.erase(50, 60);
        prop_assert!(filled.fill(&runs, 1000));
        prop_assert_eq!(&held(&filled), &map);
        let all: RoaringBitmap = (0..400).collect();
        for (cell, ids) in column.groups(&all) {
            for id in ids {
                prop_assert_eq!(map.get(&id).copied(), cell);
            }
        }
    }
}

#[test]
fn evenly_rising_values_form_one_segment() {
    let mut column = Column::default();
    for id in 0..10_000_u32 {
        column.write(id, id, i64::from(id) + 7);
    }
    assert_eq!(column.segments.len(), 1);
    let mut column = Column::default();
    for node in 0..1000_u32 {
        column.write(node * 12, node * 12 + 11, i64::from(node));
    }
    assert_eq!(column.segments.len(), 1);
    assert_eq!(column.pieces(0, u32::MAX).count(), 1);
    column.write(u32::MAX, u32::MAX, 3);
    column.write(0, u32::MAX, 3);
    assert_eq!(column.segments.len(), 1);
}

#[test]
fn irregular_values_are_stored_in_packed_segments() {
    let mut column = Column::default();
    let pid = |id: u32| i64::from(id.wrapping_mul(2_654_435_761) >> 10);
    for id in 0..100_000_u32 {
        column.write(id, id, pid(id));
    }
    assert!(column.segments.len() <= 100_000 / PACKED_MAX + 1);
    assert!((0..100_000).all(|id| column.at(id) == Some(pid(id))));
}
