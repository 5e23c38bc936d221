//! Iteration over a set: by id, by run of consecutive ids, by stride.

use std::fmt;
use std::ops::RangeInclusive;

use crate::set::Layout;
use crate::{IdSet, TaskId};

impl IdSet {
    /// The elements in ascending order (`sdm_set_first`, `sdm_set_next`, `sdm_set_done`).
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            inner: match &self.layout {
                Layout::Bits(bits) => IterInner::Bits(bits.bits.iter()),
                _ => IterInner::Run(self.run()),
            },
        }
    }

    /// The maximal runs of consecutive ids, ascending. Preferable to iteration over the ids.
    #[must_use]
    pub fn ranges(&self) -> Ranges<'_> {
        Ranges {
            inner: match &self.layout {
                Layout::Bits(bits) => RangesInner::Bits(bits.bits.iter()),
                _ => RangesInner::Run(Some(self.run()).filter(|run| !run.is_empty())),
            },
        }
    }

    /// The range from the smallest to the largest id; an empty range for the empty set.
    #[expect(clippy::reversed_empty_ranges)]
    fn run(&self) -> RangeInclusive<u32> {
        match (self.first(), self.last()) {
            (Some(first), Some(last)) => first.0..=last.0,
            _ => 1..=0,
        }
    }

    /// Splits the set into evenly spaced pieces, ascending, as the text form and the wire form write it.
    ///
    /// The rule is greedy and deterministic. First, two or more consecutive ids form a piece of step 1, as
    /// long as possible. Between such pieces, three or more ids at one distance form a piece, as long as
    /// possible, from the left. Every other id is a piece of its own.
    #[must_use]
    pub fn strides(&self) -> Strides<'_> {
        Strides {
            ranges: self.ranges(),
            lone: None,
            run: None,
        }
    }
}

impl<'a> IntoIterator for &'a IdSet {
    type Item = TaskId;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterator over the ids of a set, ascending; from the back, descending.
#[derive(Clone)]
pub struct Iter<'a> {
    inner: IterInner<'a>,
}

#[derive(Clone)]
enum IterInner<'a> {
    Run(RangeInclusive<u32>),
    Bits(roaring::bitmap::Iter<'a>),
}

impl Iterator for Iter<'_> {
    type Item = TaskId;

    fn next(&mut self) -> Option<TaskId> {
        let id = match &mut self.inner {
            IterInner::Run(run) => run.next(),
            IterInner::Bits(bits) => bits.next(),
        };
        id.map(TaskId)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.inner {
            IterInner::Run(run) => run.size_hint(),
            IterInner::Bits(bits) => bits.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<TaskId> {
        let id = match &mut self.inner {
            IterInner::Run(run) => run.next_back(),
            IterInner::Bits(bits) => bits.next_back(),
        };
        id.map(TaskId)
    }
}

/// Iterator over the maximal runs of consecutive ids in a set, ascending.
#[derive(Clone)]
pub struct Ranges<'a> {
    inner: RangesInner<'a>,
}

#[derive(Clone)]
enum RangesInner<'a> {
    Run(Option<RangeInclusive<u32>>),
    Bits(roaring::bitmap::Iter<'a>),
}

impl Iterator for Ranges<'_> {
    type Item = RangeInclusive<u32>;

    fn next(&mut self) -> Option<RangeInclusive<u32>> {
        match &mut self.inner {
            RangesInner::Run(run) => run.take(),
            RangesInner::Bits(bits) => bits.next_range(),
        }
    }
}

/// Evenly spaced ids: `first`, `first + step`, ... `last`.
///
/// A single id has step 1. Always `first <= last`, `step >= 1`, and `last` is one of the ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stride {
    first: u32,
    last: u32,
    step: u32,
}

impl Stride {
    /// A stride from `first` to at most `end` with distance `step`; `None` if `first > end` or `step` is 0.
    #[must_use]
    pub fn new(first: TaskId, end: TaskId, step: u32) -> Option<Stride> {
        let reach = end.0.checked_sub(first.0)?;
        let last = first.0 + (reach - reach.checked_rem(step)?);
        // One id has one form.
        let step = if last == first.0 { 1 } else { step };
        Some(Stride {
            first: first.0,
            last,
            step,
        })
    }

    /// The smallest id.
    #[must_use]
    pub fn first(self) -> TaskId {
        TaskId(self.first)
    }

    /// The largest id.
    #[must_use]
    pub fn last(self) -> TaskId {
        TaskId(self.last)
    }

    /// Distance of neighbouring ids, at least 1.
    #[must_use]
    pub fn step(self) -> u32 {
        self.step
    }

    /// Number of ids; at least 1.
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from((self.last - self.first) / self.step) + 1
    }

    /// The ids in ascending order.
    pub fn ids(self) -> impl Iterator<Item = TaskId> {
        let step = usize::try_from(self.step).expect("a usize holds a u32");
        (self.first..=self.last).step_by(step).map(TaskId)
    }

    fn lone(id: u32) -> Stride {
        Stride {
            first: id,
            last: id,
            step: 1,
        }
    }
}

/// Writes the text form: `7`, `0-3`, `12-20/2`.
impl fmt::Display for Stride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last > self.first {
            write!(f, "-{}", self.last)?;
        }
        if self.step > 1 {
            write!(f, "/{}", self.step)?;
        }
        Ok(())
    }
}

/// Iterator over the evenly spaced pieces of a set; see [`IdSet::strides`].
#[derive(Clone)]
pub struct Strides<'a> {
    ranges: Ranges<'a>,
    /// Ids without direct neighbours that may still grow to a longer piece; `None` if there are none.
    lone: Option<Stride>,
    /// The run of consecutive ids after `lone`; `None` if there is none.
    run: Option<Stride>,
}

impl Strides<'_> {
    /// Takes the piece in `lone`, which no longer grows; `None` if there is none. If it has only two ids, it returns
    /// them one by one.
    fn take_lone(&mut self) -> Option<Stride> {
        let piece = self.lone.take()?;
        if piece.count() != 2 {
            return Some(piece);
        }
        self.lone = Some(Stride::lone(piece.last));
        Some(Stride::lone(piece.first))
    }

    /// Adds a lone id. Returns the piece that this id completes; `None` if it completes none.
    fn add_lone(&mut self, id: u32) -> Option<Stride> {
        let Some(piece) = self.lone else {
            self.lone = Some(Stride::lone(id));
            return None;
        };
        let distance = id - piece.last;
        let grows_to = |first, step| Stride {
            first,
            last: id,
            step,
        };
        match piece.count() {
            1 => self.lone = Some(grows_to(piece.first, distance)),
            _ if distance == piece.step => self.lone = Some(grows_to(piece.first, distance)),
            2 => {
                self.lone = Some(grows_to(piece.last, distance));
                return Some(Stride::lone(piece.first));
            }
            _ => return self.lone.replace(Stride::lone(id)),
        }
        None
    }
}

impl Iterator for Strides<'_> {
    type Item = Stride;

    fn next(&mut self) -> Option<Stride> {
        loop {
            if self.run.is_some() {
                return self.take_lone().or_else(|| self.run.take());
            }
            let Some(range) = self.ranges.next() else {
                return self.take_lone();
            };
            let (first, last) = range.into_inner();
            if first < last {
                self.run = Some(Stride {
                    first,
                    last,
                    step: 1,
                });
            } else if let Some(done) = self.add_lone(first) {
                return Some(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_across_bitmap_blocks_is_one_range() {
        let set = IdSet::from_range(65_000..=1_000_000);
        assert_eq!(set.ranges().collect::<Vec<_>>(), [65_000..=1_000_000]);
        let set: IdSet = (131_060..=131_080).map(TaskId).collect();
        assert_eq!(set.ranges().collect::<Vec<_>>(), [131_060..=131_080]);
    }

    #[test]
    fn ids_are_divided_greedily_into_strides() {
        let check = |ids: &[u32], expect: &str| {
            let set: IdSet = ids.iter().copied().map(TaskId).collect();
            let text: Vec<String> = set.strides().map(|stride| stride.to_string()).collect();
            assert_eq!(text.join(" "), expect, "{ids:?}");
        };
        check(&[], "");
        check(&[5], "5");
        check(&[5, 6], "5-6");
        check(&[5, 7], "5 7");
        check(&[5, 7, 9], "5-9/2");
        check(&[0, 2, 5], "0 2 5");
        check(&[0, 2, 5, 8], "0 2-8/3");
        check(&[0, 2, 4, 7, 10], "0-4/2 7 10");
        check(&[0, 2, 4, 7, 10, 13], "0-4/2 7-13/3");
        check(&[0, 2, 4, 5], "0 2 4-5");
        check(&[0, 2, 4, 6, 7], "0-4/2 6-7");
        check(&[0, 1, 3, 5, 7], "0-1 3-7/2");
        check(&[0, 1, 3, 5, 7, 8, 10], "0-1 3 5 7-8 10");
        check(&[0, u32::MAX], "0 4294967295");
    }

    #[test]
    fn stride_yields_its_ids_and_a_reversed_one_is_refused() {
        let new = |first, end, step| Stride::new(TaskId(first), TaskId(end), step);
        let stride = new(12, 21, 2).unwrap();
        assert_eq!(stride.last(), TaskId(20));
        assert_eq!(stride.count(), 5);
        let ids: Vec<u32> = stride.ids().map(|id| id.0).collect();
        assert_eq!(ids, [12, 14, 16, 18, 20]);
        assert_eq!(new(3, 5, 9), new(3, 3, 1));
        assert_eq!(new(5, 4, 1), None);
        assert_eq!(new(5, 6, 0), None);
        assert_eq!(new(0, u32::MAX, 1).unwrap().count(), 1 << 32);
    }

    #[test]
    fn iterator_yields_ids_from_both_ends() {
        let set: IdSet = "1,3,5-7".parse().unwrap();
        let back: Vec<u32> = set.iter().rev().map(|id| id.0).collect();
        assert_eq!(back, [7, 6, 5, 3, 1]);
        assert_eq!(set.iter().size_hint(), (5, Some(5)));
    }
}
