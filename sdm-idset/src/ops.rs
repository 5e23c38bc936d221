//! Operations on two sets: comparison, union, intersection, difference.

use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Sub, SubAssign};

use roaring::{MultiOps, RoaringBitmap};

use crate::set::Layout;
use crate::{IdSet, TaskId};

impl IdSet {
    /// True if every element of `self` is in `other` (`sdm_set_is_subset`).
    #[must_use]
    pub fn is_subset(&self, other: &IdSet) -> bool {
        match (&self.layout, &other.layout) {
            (Layout::Empty, _) => true,
            (_, Layout::Empty) => false,
            (Layout::Bits(own), Layout::Bits(other)) => own.bits.is_subset(&other.bits),
            (Layout::Run(own), Layout::Bits(other)) => {
                other.bits.contains_range(own.first..=own.last)
            }
            (_, Layout::Run(_)) => {
                let within = |id: Option<TaskId>| id.is_some_and(|id| other.contains(id));
                within(self.first()) && within(self.last())
            }
        }
    }

    /// True if the sets share no element.
    #[must_use]
    pub fn is_disjoint(&self, other: &IdSet) -> bool {
        match (&self.layout, &other.layout) {
            (Layout::Bits(own), Layout::Bits(other)) => own.bits.is_disjoint(&other.bits),
            _ => self.intersection_len(other) == 0,
        }
    }

    /// Adds the elements of `other` (`sdm_set_union`).
    pub fn union_with(&mut self, other: &IdSet) {
        match &other.layout {
            Layout::Empty => {}
            Layout::Run(run) => self.insert_range(run.first..=run.last),
            Layout::Bits(_) if self.is_empty() => self.clone_from(other),
            Layout::Bits(other) => {
                *self.bits_mut() |= &other.bits;
                self.changed_by(&other.bits);
            }
        }
    }

    /// Keeps only elements that are also in `other` (`sdm_set_intersect`).
    pub fn intersect_with(&mut self, other: &IdSet) {
        if let (Layout::Bits(own), Layout::Bits(other)) = (&mut self.layout, &other.layout) {
            own.bits &= &other.bits;
            self.changed_by(&other.bits);
        } else {
            *self = self.intersection(other);
        }
    }

    /// Removes the elements of `other` (`sdm_set_diff`).
    pub fn subtract(&mut self, other: &IdSet) {
        match (&mut self.layout, &other.layout) {
            (Layout::Empty, _) | (_, Layout::Empty) => {}
            (Layout::Run(own), Layout::Run(other)) => match own.without(*other) {
                (Some(_), Some(_)) => {
                    self.bits_mut().remove_range(other.first..=other.last);
                    self.changed_by(&RoaringBitmap::new());
                }
                (left, right) => {
                    self.layout = left.or(right).map_or(Layout::Empty, Layout::Run);
                }
            },
            (Layout::Bits(own), Layout::Run(run)) => {
                own.bits.remove_range(run.first..=run.last);
                self.changed_by(&RoaringBitmap::new());
            }
            (_, Layout::Bits(other)) => {
                *self.bits_mut() -= &other.bits;
                self.changed_by(&other.bits);
            }
        }
    }

    /// The union of two sets.
    #[must_use]
    pub fn union(&self, other: &IdSet) -> IdSet {
        Self::union_all([self, other])
    }

    /// Returns the ids in both sets.
    #[must_use]
    pub fn intersection(&self, other: &IdSet) -> IdSet {
        match (&self.layout, &other.layout) {
            (Layout::Empty, _) | (_, Layout::Empty) => Self::new(),
            (Layout::Run(own), Layout::Run(other)) => match own.meet(*other) {
                Some(run) => Self::from_range(run.first..=run.last),
                None => Self::new(),
            },
            (Layout::Bits(own), Layout::Bits(other)) => Self::from_bits(&own.bits & &other.bits),
            (Layout::Bits(_), Layout::Run(_)) if self.is_subset(other) => self.clone(),
            (Layout::Run(_), Layout::Bits(_)) if other.is_subset(self) => other.clone(),
            _ => Self::from_bits(&*self.bits() & &*other.bits()),
        }
    }

    /// Returns the ids in `self` that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &IdSet) -> IdSet {
        if let (Layout::Bits(own), Layout::Bits(other)) = (&self.layout, &other.layout) {
            return Self::from_bits(&own.bits - &other.bits);
        }
        let mut left = self.clone();
        left.subtract(other);
        left.compact();
        left
    }

    /// Number of ids in both sets, without building their intersection.
    #[must_use]
    pub fn intersection_len(&self, other: &IdSet) -> u64 {
        match (&self.layout, &other.layout) {
            (Layout::Empty, _) | (_, Layout::Empty) => 0,
            (Layout::Bits(own), Layout::Bits(other)) => own.bits.intersection_len(&other.bits),
            (Layout::Run(own), Layout::Run(other)) => match own.meet(*other) {
                Some(run) => u64::from(run.last - run.first) + 1,
                None => 0,
            },
            (Layout::Run(run), Layout::Bits(bits)) | (Layout::Bits(bits), Layout::Run(run)) => {
                bits.bits.range_cardinality(run.first..=run.last)
            }
        }
    }

    /// The union of many sets. Faster than successive unions.
    #[must_use]
    pub fn union_all<'a>(sets: impl IntoIterator<Item = &'a IdSet>) -> IdSet {
        let mut sets = sets.into_iter();
        let mut joined = Self::new();
        for set in sets.by_ref() {
            if !joined.joins(set) {
                let rest: Vec<_> = std::iter::once(set).chain(sets).map(Self::bits).collect();
                let rest = rest.iter().map(|bits| &**bits);
                return Self::from_bits(std::iter::once(&*joined.bits()).chain(rest).union());
            }
        }
        joined
    }

    /// Tries to add `other` in place, without building bitmaps. Returns false if that is impossible; the set is
    /// unchanged then.
    fn joins(&mut self, other: &IdSet) -> bool {
        match (&self.layout, &other.layout) {
            (_, Layout::Empty) => true,
            (Layout::Empty, Layout::Run(run)) => self.insert_run(*run),
            (Layout::Run(own), Layout::Run(run)) => {
                let joined = own.join(*run);
                if let Some(run) = joined {
                    self.layout = Layout::Run(run);
                }
                joined.is_some()
            }
            _ => false,
        }
    }
}

impl BitOr for &IdSet {
    type Output = IdSet;

    fn bitor(self, other: &IdSet) -> IdSet {
        self.union(other)
    }
}

impl BitAnd for &IdSet {
    type Output = IdSet;

    fn bitand(self, other: &IdSet) -> IdSet {
        self.intersection(other)
    }
}

impl Sub for &IdSet {
    type Output = IdSet;

    fn sub(self, other: &IdSet) -> IdSet {
        self.difference(other)
    }
}

impl BitOrAssign<&IdSet> for IdSet {
    fn bitor_assign(&mut self, other: &IdSet) {
        self.union_with(other);
    }
}

impl BitAndAssign<&IdSet> for IdSet {
    fn bitand_assign(&mut self, other: &IdSet) {
        self.intersect_with(other);
    }
}

impl SubAssign<&IdSet> for IdSet {
    fn sub_assign(&mut self, other: &IdSet) {
        self.subtract(other);
    }
}

#[cfg(test)]
mod tests {
    use crate::IdSet;

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    #[test]
    fn operators_equal_the_named_methods() {
        let (a, b) = (set("0-9,20-40/2"), set("5-24"));
        assert_eq!(&a | &b, set("0-24,26-40/2"));
        assert_eq!(&a & &b, set("5-9,20-24/2"));
        assert_eq!(&a - &b, set("0-4,26-40/2"));
        let mut c = a.clone();
        c |= &b;
        assert_eq!(c, a.union(&b));
        let mut c = a.clone();
        c &= &b;
        assert_eq!(c, a.intersection(&b));
        let mut c = a.clone();
        c -= &b;
        assert_eq!(c, a.difference(&b));
        assert_eq!(a.intersection_len(&b), 8);
    }

    #[test]
    fn emptied_set_owns_no_memory() {
        let mut a = set("0-9,20-40/2");
        a.intersect_with(&set("100-200"));
        assert_eq!(a.memory_bytes(), 0);
        let mut a = set("0-99999/2");
        a.subtract(&set("0-100000"));
        assert_eq!(a.memory_bytes(), 0);
        assert_eq!(IdSet::union_all([]).memory_bytes(), 0);
    }

    #[test]
    fn union_of_halves_is_compact() {
        let (even, odd) = (set("0-999998/2"), set("1-999999/2"));
        assert!(even.memory_bytes() > 100_000);
        assert!(even.is_disjoint(&odd));
        for whole in [even.union(&odd), IdSet::union_all([&even, &odd])] {
            assert_eq!(whole, IdSet::all_below(1_000_000));
            assert!(whole.memory_bytes() < 2048);
        }
    }

    /// Every set of ids below 5, with and without 7, in any layout.
    fn all_small() -> Vec<IdSet> {
        let of = |mask: u32| (0..8).filter(move |id| mask >> id & 1 == 1);
        let mut sets = Vec::new();
        for mask in (0..32).chain(128..160) {
            let collected: IdSet = of(mask).map(crate::TaskId).collect();
            let mut inserted = IdSet::new();
            for id in of(mask).rev() {
                inserted.insert(crate::TaskId(id));
            }
            let mut removed = IdSet::all_below(8);
            for id in of(!mask & 255) {
                removed.remove(crate::TaskId(id));
            }
            assert_eq!(collected, inserted);
            assert_eq!(inserted, removed);
            sets.extend([collected, inserted, removed]);
        }
        sets
    }

    #[test]
    fn operations_agree_with_bit_masks_for_every_layout_pair() {
        let mask = |set: &IdSet| set.iter().fold(0_u32, |mask, id| mask | 1 << id.0);
        let sets = all_small();
        for a in &sets {
            for b in &sets {
                let (x, y) = (mask(a), mask(b));
                let check = |op: fn(&mut IdSet, &IdSet), new: IdSet, expect: u32| {
                    let mut changed = a.clone();
                    op(&mut changed, b);
                    assert_eq!(mask(&changed), expect, "{a} {b}");
                    assert_eq!(changed, new, "{a} {b}");
                    assert_eq!(changed.is_empty(), expect == 0);
                    assert_eq!(changed.ranges().count(), new.ranges().count());
                };
                check(IdSet::union_with, a.union(b), x | y);
                check(IdSet::intersect_with, a.intersection(b), x & y);
                check(IdSet::subtract, a.difference(b), x & !y);
                assert_eq!(a.is_subset(b), x & !y == 0, "{a} {b}");
                assert_eq!(a.is_disjoint(b), x & y == 0, "{a} {b}");
                assert_eq!(a.intersection_len(b), u64::from((x & y).count_ones()));
                assert_eq!(a == b, x == y, "{a} {b}");
                let three = [a, b, &sets[10]];
                assert_eq!(mask(&IdSet::union_all(three)), x | y | mask(&sets[10]));
            }
        }
    }
}
