//! The set itself, over roaring bitmaps.

use std::fmt;
use std::ops::RangeInclusive;

use roaring::{MultiOps, RoaringBitmap};

/// Names one debugged process for the whole session; given by the session and never reused.
///
/// The first job's tasks get their MPI rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of tasks ("PTP new SDM, Set Operations").
///
/// Empty sets allocate nothing.
#[derive(Clone, PartialEq, Default)]
pub struct IdSet {
    pub(crate) bits: RoaringBitmap,
}

impl Eq for IdSet {}

impl IdSet {
    /// The empty set (`sdm_set_new`).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of all ids below `count`: `0..count`.
    #[must_use]
    pub fn all_below(count: u32) -> Self {
        let mut bits = RoaringBitmap::new();
        bits.insert_range(0..count);
        Self { bits }
    }

    /// The set that holds just `id`.
    #[must_use]
    pub fn single(id: TaskId) -> Self {
        Self::from_range(id.0..=id.0)
    }

    /// The set of all ids of an inclusive range; empty where start > end.
    #[must_use]
    pub fn from_range(range: RangeInclusive<u32>) -> Self {
        let mut bits = RoaringBitmap::new();
        bits.insert_range(range);
        Self { bits }
    }

    /// Adds `id`; true where it was not there before (`sdm_set_add_element`).
    pub fn insert(&mut self, id: TaskId) -> bool {
        self.bits.insert(id.0)
    }

    /// Adds every id of an inclusive range (`sdm_set_add_all` with `0..=id`).
    pub fn insert_range(&mut self, range: RangeInclusive<u32>) {
        self.bits.insert_range(range);
    }

    /// Removes `id`; true where it was there (`sdm_set_remove_element`).
    pub fn remove(&mut self, id: TaskId) -> bool {
        self.bits.remove(id.0)
    }

    /// Removes every element (`sdm_set_clear`).
    pub fn clear(&mut self) {
        self.bits = RoaringBitmap::new();
    }

    /// How many elements there are (`sdm_set_size`).
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bits.len()
    }

    /// True where there is no element (`sdm_set_is_empty`).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// True where `id` is an element (`sdm_set_contains`).
    #[must_use]
    pub fn contains(&self, id: TaskId) -> bool {
        self.bits.contains(id.0)
    }

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
    }

    /// Keeps only elements that `other` has too (`sdm_set_intersect`).
    pub fn intersect_with(&mut self, other: &IdSet) {
        self.bits &= &other.bits;
    }

    /// Removes the elements of `other` (`sdm_set_diff`).
    pub fn subtract(&mut self, other: &IdSet) {
        self.bits -= &other.bits;
    }

    /// The union of the two.
    #[must_use]
    pub fn union(&self, other: &IdSet) -> IdSet {
        IdSet {
            bits: &self.bits | &other.bits,
        }
    }

    /// What both have.
    #[must_use]
    pub fn intersection(&self, other: &IdSet) -> IdSet {
        IdSet {
            bits: &self.bits & &other.bits,
        }
    }

    /// What `self` has and `other` has not.
    #[must_use]
    pub fn difference(&self, other: &IdSet) -> IdSet {
        IdSet {
            bits: &self.bits - &other.bits,
        }
    }

    /// The union of many sets at once.
    #[must_use]
    pub fn union_all<'a>(sets: impl IntoIterator<Item = &'a IdSet>) -> IdSet {
        IdSet {
            bits: sets.into_iter().map(|set| &set.bits).union(),
        }
    }

    /// The smallest element (`sdm_set_first`).
    #[must_use]
    pub fn first(&self) -> Option<TaskId> {
        self.bits.min().map(TaskId)
    }

    /// The largest element.
    #[must_use]
    pub fn last(&self) -> Option<TaskId> {
        self.bits.max().map(TaskId)
    }

    /// The elements, rising (`sdm_set_first`, `sdm_set_next`, `sdm_set_done`).
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            inner: self.bits.iter(),
        }
    }

    /// The maximal runs of neighbouring elements, rising; walk these, not the elements.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u32>> + '_ {
        let mut iter = self.bits.iter();
        std::iter::from_fn(move || iter.next_range())
    }
}

impl fmt::Debug for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromIterator<TaskId> for IdSet {
    fn from_iter<I: IntoIterator<Item = TaskId>>(ids: I) -> Self {
        Self {
            bits: ids.into_iter().map(|id| id.0).collect(),
        }
    }
}

impl Extend<TaskId> for IdSet {
    fn extend<I: IntoIterator<Item = TaskId>>(&mut self, ids: I) {
        self.bits.extend(ids.into_iter().map(|id| id.0));
    }
}

impl<'a> IntoIterator for &'a IdSet {
    type Item = TaskId;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Walks the elements of a set, rising.
pub struct Iter<'a> {
    inner: roaring::bitmap::Iter<'a>,
}

impl Iterator for Iter<'_> {
    type Item = TaskId;

    fn next(&mut self) -> Option<TaskId> {
        self.inner.next().map(TaskId)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}
