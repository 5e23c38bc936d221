//! A run of consecutive ids, which is the layout of most sets, and operations on two runs.

/// The ids `first..=last`, at least one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Run {
    pub(crate) fn single(id: u32) -> Self {
        Self {
            first: id,
            last: id,
        }
    }

    /// The union if both runs overlap or are adjacent, otherwise `None`.
    pub(crate) fn join(self, other: Self) -> Option<Self> {
        let apart = self.first.max(other.first) > self.last.min(other.last).saturating_add(1);
        (!apart).then(|| Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        })
    }

    /// The intersection of both runs; `None` if it is empty.
    pub(crate) fn meet(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }

    /// The parts of `self` below and above `other`; `None` for an empty part.
    pub(crate) fn without(self, other: Self) -> (Option<Self>, Option<Self>) {
        let below = (self.first < other.first).then(|| Self {
            first: self.first,
            last: self.last.min(other.first - 1),
        });
        let above = (self.last > other.last).then(|| Self {
            first: self.first.max(other.last + 1),
            last: self.last,
        });
        (below, above)
    }
}
