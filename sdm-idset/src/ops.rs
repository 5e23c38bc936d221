//! Sets with sets: comparing, joining, intersecting, subtracting.

use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Sub, SubAssign};

use roaring::MultiOps;

use crate::IdSet;

impl IdSet {
    /// True where every element of `self` is one of `other` (`sdm_set_is_subset`).
    #[must_use]
    pub fn is_subset(&self, other: &IdSet) -> bool {
        self.bits.is_subset(&other.bits)
    }

    /// True where the two share no element.
    #[must_use]
    pub fn is_disjoint(&self, other: &IdSet) -> bool {
        self.bits.is_disjoint(&other.bits)
    }

    /// Adds the elements of `other` (`sdm_set_union`).
    pub fn union_with(&mut self, other: &IdSet) {
        self.bits |= &other.bits;
        self.changed_by(&other.bits);
    }

    /// Keeps only elements that `other` has too (`sdm_set_intersect`).
    pub fn intersect_with(&mut self, other: &IdSet) {
        self.bits &= &other.bits;
        self.changed_by(&other.bits);
    }

    /// Removes the elements of `other` (`sdm_set_diff`).
    pub fn subtract(&mut self, other: &IdSet) {
        self.bits -= &other.bits;
        self.changed_by(&other.bits);
    }

    /// The union of the two.
    #[must_use]
    pub fn union(&self, other: &IdSet) -> IdSet {
        IdSet::from_bits(&self.bits | &other.bits)
    }

    /// What both have.
    #[must_use]
    pub fn intersection(&self, other: &IdSet) -> IdSet {
        IdSet::from_bits(&self.bits & &other.bits)
    }

    /// What `self` has and `other` has not.
    #[must_use]
    pub fn difference(&self, other: &IdSet) -> IdSet {
        IdSet::from_bits(&self.bits - &other.bits)
    }

    /// How many elements both have; nothing is built for it.
    #[must_use]
    pub fn intersection_len(&self, other: &IdSet) -> u64 {
        self.bits.intersection_len(&other.bits)
    }

    /// The union of many sets at once; cheaper than one after the other.
    #[must_use]
    pub fn union_all<'a>(sets: impl IntoIterator<Item = &'a IdSet>) -> IdSet {
        IdSet::from_bits(sets.into_iter().map(|set| &set.bits).union())
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
    fn operators_are_the_named_operations() {
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
    fn what_becomes_empty_owns_nothing() {
        let mut a = set("0-9,20-40/2");
        a.intersect_with(&set("100-200"));
        assert_eq!(a.memory_bytes(), 0);
        let mut a = set("0-99999/2");
        a.subtract(&set("0-100000"));
        assert_eq!(a.memory_bytes(), 0);
        assert_eq!(IdSet::union_all([]).memory_bytes(), 0);
    }

    #[test]
    fn halves_join_to_a_small_whole() {
        let (even, odd) = (set("0-999998/2"), set("1-999999/2"));
        assert!(even.memory_bytes() > 100_000);
        assert!(even.is_disjoint(&odd));
        for whole in [even.union(&odd), IdSet::union_all([&even, &odd])] {
            assert_eq!(whole, IdSet::all_below(1_000_000));
            assert!(whole.memory_bytes() < 2048);
        }
    }
}
