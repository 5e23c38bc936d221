//! Task ids, and the set of them with its memory layouts: one run, or a roaring bitmap.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use roaring::RoaringBitmap;

use crate::run::Run;
use crate::{Stride, dense};

/// The largest id that the text form and the wire form can contain.
///
/// A dozen bytes can encode every other id up to this limit, so the limit bounds the memory of one decoded
/// set: 2 MiB. Sets in memory accept any `u32`. A session assigns no larger id than this one.
pub const ID_MAX: u32 = (1 << 24) - 1;

/// Minimum number of single changes between two examinations of the layout.
const CHANGES_MIN: usize = 1024;
const CHANGES_MIN_U32: u32 = 1024;
/// Weight of one set operation in single changes, in addition to the size of the other set.
const SET_OPERATION_CHANGES: usize = 64;
/// The layout is examined again after one change per this number of bytes of the set.
const BYTES_PER_CHANGE: usize = 16;
/// Strides with more ids than this are built as a separate set and united with the set. The ids of shorter strides are
/// inserted one by one.
const STRIDE_INSERTS_MAX: u64 = 32;
/// Maximum distance of ids that count as dense, which a bitmap stores as bits.
const DENSE_STEP_MAX: u32 = 15;
/// Maximum number of strides that `Debug` prints.
const DEBUG_STRIDES_MAX: usize = 64;

/// The id of one debugged process for the whole session. The session assigns ids, and never reuses one.
///
/// Tasks of the first job have their MPI rank as id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The largest id that a session assigns (`sdm_set_max`).
    pub const MAX: TaskId = TaskId(ID_MAX);
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of tasks ("PTP new SDM, Set Operations").
///
/// The empty set and a set of one run of consecutive ids need no heap memory; most sets of a tree are such
/// runs. In other sets, runs need little memory, however the set was built. The layout is examined again
/// after a number of changes that grows with the set, so single inserts and removes stay cheap.
///
/// Sets are equal if they have the same ids, whatever their layout. Therefore their bytes are never
/// compared or hashed.
///
/// Large because it has the operations of `std`'s sets, and those for text and bytes. Each group of operations has
/// its own file.
#[derive(Clone, Default)]
pub struct IdSet {
    pub(crate) layout: Layout,
}

/// The memory layout of a set. A set of one run can also be stored as bits.
#[derive(Clone, Default)]
pub(crate) enum Layout {
    #[default]
    Empty,
    Run(Run),
    /// A bitmap, which is never empty.
    Bits(Box<Bits>),
}

#[derive(Clone)]
pub(crate) struct Bits {
    pub(crate) bits: RoaringBitmap,
    /// Number of changes left before the layout is examined again.
    changes_left: u32,
    /// True if the layout is known to be the smallest one for the present ids. An encoder can also find this out and
    /// set it.
    is_compact: bool,
}

impl Bits {
    /// The bitmap, if its layout is known to be the smallest one; otherwise `None`.
    pub(crate) fn compact(&self) -> Option<&RoaringBitmap> {
        self.is_compact.then_some(&self.bits)
    }
}

impl PartialEq for IdSet {
    fn eq(&self, other: &Self) -> bool {
        if let (Layout::Bits(own), Layout::Bits(other)) = (&self.layout, &other.layout) {
            return own.bits == other.bits;
        }
        // One of them at least is a run or empty: as many ids between the same ends are the same.
        (self.first(), self.last(), self.len()) == (other.first(), other.last(), other.len())
    }
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
        match count.checked_sub(1) {
            Some(last) => Self::from_range(0..=last),
            None => Self::new(),
        }
    }

    /// The set with only `id`.
    #[must_use]
    pub fn single(id: TaskId) -> Self {
        Self::from_range(id.0..=id.0)
    }

    /// The set of all ids of an inclusive range. Empty if start > end.
    #[must_use]
    pub fn from_range(range: RangeInclusive<u32>) -> Self {
        let (first, last) = range.into_inner();
        Self {
            layout: match first <= last {
                true => Layout::Run(Run { first, last }),
                false => Layout::Empty,
            },
        }
    }

    /// Creates a set from a bitmap, and gives it its smallest layout.
    pub(crate) fn from_bits(bits: RoaringBitmap) -> Self {
        let mut set = Self {
            layout: Layout::Bits(Box::new(Bits {
                bits,
                changes_left: 0,
                is_compact: false,
            })),
        };
        set.compact();
        set
    }

    /// Creates a set from a bitmap whose containers already have their smallest layout.
    pub(crate) fn from_compact(bits: RoaringBitmap) -> Self {
        let mut set = Self {
            layout: Layout::Bits(Box::new(Bits {
                bits,
                changes_left: 0,
                is_compact: true,
            })),
        };
        set.compact();
        set
    }

    /// The set as a bitmap, for changes. [`IdSet::changed`] must be called afterwards.
    pub(crate) fn bits_mut(&mut self) -> &mut RoaringBitmap {
        if !matches!(self.layout, Layout::Bits(_)) {
            let bits = self.bits().into_owned();
            self.layout = Layout::Bits(Box::new(Bits {
                bits,
                changes_left: CHANGES_MIN_U32,
                is_compact: false,
            }));
        }
        match &mut self.layout {
            Layout::Bits(bits) => &mut bits.bits,
            Layout::Empty | Layout::Run(_) => unreachable!("it was made bits above"),
        }
    }

    /// The set as a roaring bitmap.
    pub(crate) fn bits(&self) -> Cow<'_, RoaringBitmap> {
        let mut bits = RoaringBitmap::new();
        match &self.layout {
            Layout::Empty => {}
            Layout::Run(run) => {
                bits.insert_range(run.first..=run.last);
            }
            Layout::Bits(own) => return Cow::Borrowed(&own.bits),
        }
        Cow::Owned(bits)
    }

    /// Adds `id`. Returns true if it was not in the set (`sdm_set_add_element`).
    pub fn insert(&mut self, id: TaskId) -> bool {
        if self.insert_run(Run::single(id.0)) {
            return true;
        }
        if self.contains(id) {
            return false;
        }
        self.bits_mut().insert(id.0);
        self.changed(1);
        true
    }

    /// Adds every id of an inclusive range (`sdm_set_add_all` with `0..=id`). Adds nothing if start > end.
    pub fn insert_range(&mut self, range: RangeInclusive<u32>) {
        let (first, last) = range.into_inner();
        if first <= last && !self.insert_run(Run { first, last }) {
            self.bits_mut().insert_range(first..=last);
            self.changed(SET_OPERATION_CHANGES);
        }
    }

    /// Adds a run if the set grows by it and then is a single run. Otherwise returns false without a change.
    pub(crate) fn insert_run(&mut self, run: Run) -> bool {
        let joined = match &self.layout {
            Layout::Empty => Some(run),
            Layout::Run(own) => own.join(run).filter(|joined| joined != own),
            Layout::Bits(_) => None,
        };
        if let Some(joined) = joined {
            self.layout = Layout::Run(joined);
        }
        joined.is_some()
    }

    /// Adds every id of a stride.
    pub fn insert_stride(&mut self, stride: Stride) {
        if stride.step() == 1 {
            self.insert_range(stride.first().0..=stride.last().0);
        } else if stride.count() <= STRIDE_INSERTS_MAX {
            self.extend(stride.ids());
        } else {
            let piece = if stride.step() > DENSE_STEP_MAX {
                dense::of_sparse_stride(stride)
            } else {
                dense::of_stride(stride)
            };
            if self.is_empty() {
                *self = Self::from_compact(piece);
                return;
            }
            let weight = weight_of(&piece);
            *self.bits_mut() |= piece;
            self.changed(weight);
        }
    }

    /// Removes `id`. Returns true if it was in the set (`sdm_set_remove_element`).
    pub fn remove(&mut self, id: TaskId) -> bool {
        if !self.contains(id) {
            return false;
        }
        if let Layout::Run(run) = self.layout
            && (run.first == id.0 || run.last == id.0)
        {
            let (left, right) = run.without(Run::single(id.0));
            self.layout = left.or(right).map_or(Layout::Empty, Layout::Run);
            return true;
        }
        self.bits_mut().remove(id.0);
        self.changed(1);
        true
    }

    /// Removes all ids (`sdm_set_clear`), and releases the memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Number of ids (`sdm_set_size`).
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.layout {
            Layout::Empty => 0,
            Layout::Run(run) => u64::from(run.last - run.first) + 1,
            Layout::Bits(bits) => bits.bits.len(),
        }
    }

    /// True if the set has no element (`sdm_set_is_empty`).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.layout, Layout::Empty)
    }

    /// True if `id` is in the set (`sdm_set_contains`).
    #[must_use]
    pub fn contains(&self, id: TaskId) -> bool {
        match &self.layout {
            Layout::Empty => false,
            Layout::Run(run) => run.first <= id.0 && id.0 <= run.last,
            Layout::Bits(bits) => bits.bits.contains(id.0),
        }
    }

    /// The smallest element (`sdm_set_first`); `None` for the empty set.
    #[must_use]
    pub fn first(&self) -> Option<TaskId> {
        match &self.layout {
            Layout::Empty => None,
            Layout::Run(run) => Some(TaskId(run.first)),
            Layout::Bits(bits) => bits.bits.min().map(TaskId),
        }
    }

    /// The largest element; `None` for the empty set.
    #[must_use]
    pub fn last(&self) -> Option<TaskId> {
        match &self.layout {
            Layout::Empty => None,
            Layout::Run(run) => Some(TaskId(run.last)),
            Layout::Bits(bits) => bits.bits.max().map(TaskId),
        }
    }

    /// The element with exactly `index` smaller ones; `None` if `index >= len()`.
    #[must_use]
    pub fn nth(&self, index: u64) -> Option<TaskId> {
        let index = u32::try_from(index).ok()?;
        match &self.layout {
            Layout::Empty => None,
            Layout::Run(run) => (index <= run.last - run.first).then(|| TaskId(run.first + index)),
            Layout::Bits(bits) => bits.bits.select(index).map(TaskId),
        }
    }

    /// Number of ids smaller than `id`; `None` if the set does not contain `id`. The inverse of [`IdSet::nth`].
    #[must_use]
    pub fn index_of(&self, id: TaskId) -> Option<u64> {
        self.contains(id).then(|| match &self.layout {
            Layout::Empty => 0,
            Layout::Run(run) => u64::from(id.0 - run.first),
            Layout::Bits(bits) => bits.bits.rank(id.0) - 1,
        })
    }

    /// Approximate number of heap bytes of the set. Its computation is fast; it serves limits and benchmarks.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        // One block's header is a key, a tag and a vector.
        const BLOCK_BYTES: u64 = 40;
        let Layout::Bits(bits) = &self.layout else {
            return 0;
        };
        let of = bits.bits.statistics();
        // The statistics reckon four bytes for an array's element, which is a `u16`.
        size_of::<Bits>() as u64
            + u64::from(of.n_containers) * BLOCK_BYTES
            + of.n_bytes_array_containers / 2
            + of.n_bytes_run_containers
            + u64::from(of.n_bitset_containers) * (1 << 13)
    }

    /// Converts the set to its smallest layout. This is useful before a set that was built in many steps is stored for
    /// long.
    pub fn compact(&mut self) {
        let Layout::Bits(own) = &mut self.layout else {
            return;
        };
        let ends = own.bits.min().zip(own.bits.max());
        let Some((first, last)) = ends else {
            self.layout = Layout::Empty;
            return;
        };
        if own.bits.len() == u64::from(last - first) + 1 {
            self.layout = Layout::Run(Run { first, last });
            return;
        }
        if !std::mem::replace(&mut own.is_compact, true) {
            own.bits.optimize();
        }
        let changes = (own.bits.serialized_size() / BYTES_PER_CHANGE).max(CHANGES_MIN);
        own.changes_left = u32::try_from(changes).unwrap_or(u32::MAX);
    }

    /// Counts changes, and compacts the set after a sufficient number of them.
    fn changed(&mut self, weight: usize) {
        let Layout::Bits(own) = &mut self.layout else {
            return;
        };
        if own.bits.is_empty() {
            self.clear();
            return;
        }
        own.is_compact = false;
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        match own.changes_left.checked_sub(weight) {
            Some(left) => own.changes_left = left,
            None => self.compact(),
        }
    }

    /// Counts a set operation with `other` as changes.
    pub(crate) fn changed_by(&mut self, other: &RoaringBitmap) {
        self.changed(weight_of(other));
    }
}

/// Weight of an operation with `other`, in single changes.
fn weight_of(other: &RoaringBitmap) -> usize {
    SET_OPERATION_CHANGES + other.serialized_size() / BYTES_PER_CHANGE
}

impl fmt::Debug for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, stride) in self.strides().enumerate() {
            if index == DEBUG_STRIDES_MAX {
                write!(f, ",... {} ids", self.len())?;
                break;
            }
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{stride}")?;
        }
        f.write_str("}")
    }
}

impl FromIterator<TaskId> for IdSet {
    fn from_iter<I: IntoIterator<Item = TaskId>>(ids: I) -> Self {
        Self::from_bits(ids.into_iter().map(|id| id.0).collect())
    }
}

impl Extend<TaskId> for IdSet {
    fn extend<I: IntoIterator<Item = TaskId>>(&mut self, ids: I) {
        for id in ids {
            self.insert(id);
        }
    }
}

#[cfg(test)]
mod tests;
