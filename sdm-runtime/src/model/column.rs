//! One attribute of all elements of a kind: a number for each id, stored by range, so that equal or regular numbers
//! cost nothing.
//!
//! The ids are divided into segments. A segment is either regular or packed. In a regular one the number rises by a
//! fixed step after each fixed number of ids. The step is 0 for equal numbers, and 1 after each id for the indices of
//! processes. It is 1 after every 12 ids for the nodes of processes of which each node has 12. A packed segment has
//! four bytes for each id.

use std::collections::{BTreeMap, HashMap};

use roaring::RoaringBitmap;

/// Maximum number of ids in a packed segment. One change copies up to this number.
const PACKED_MAX: usize = 1024;
/// A segment of at most this many ids is packed together with a neighbour that is short or packed, too.
const SHORT: u32 = 8;

/// Numbers by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    segments: BTreeMap<u32, Segment>,
}

#[derive(Clone, Debug)]
struct Segment {
    last: u32,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Steps(Steps),
    /// The number of each id is the base plus the entry here.
    Packed(i64, Vec<u32>),
}

/// Evenly rising numbers: an id has `cell + step * ((id - origin) / each)`, with integer division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps {
    origin: u32,
    each: u32,
    cell: i64,
    step: i32,
}

/// A run of ids from `first` to `last` with evenly rising numbers, in blocks of `each` ids. The ids of the first block
/// have the number `cell`. The number of each later block is `step` above that of the block before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) cell: i64,
    pub(super) step: i32,
    /// Number of consecutive ids with the same number, at least 1.
    pub(super) each: u32,
}

impl Steps {
    fn at(&self, id: u32) -> i64 {
        let blocks = i64::from((id - self.origin) / self.each);
        self.cell.wrapping_add(i64::from(self.step) * blocks)
    }

    /// The last id of the block that this id is in.
    fn block_end(&self, id: u32) -> u32 {
        let into = (id - self.origin) % self.each;
        id.saturating_add(self.each - 1 - into)
    }
}

impl Segment {
    fn alike(first: u32, last: u32, cell: i64) -> Self {
        let (origin, each, step) = (first, u32::MAX, 0);
        let body = Body::Steps(Steps {
            origin,
            each,
            cell,
            step,
        });
        Self { last, body }
    }

    fn at(&self, first: u32, id: u32) -> i64 {
        match &self.body {
            Body::Steps(steps) => steps.at(id),
            Body::Packed(base, cells) => base + i64::from(cells[(id - first) as usize]),
        }
    }

    /// Splits off the part that begins at `id`.
    fn split(&mut self, first: u32, id: u32) -> Self {
        let last = self.last;
        self.last = id - 1;
        let body = match &mut self.body {
            Body::Steps(steps) => Body::Steps(*steps),
            Body::Packed(base, cells) => {
                Body::Packed(*base, cells.split_off((id - first) as usize))
            }
        };
        Self { last, body }
    }

    fn is_short(&self, first: u32) -> bool {
        matches!(self.body, Body::Packed(..)) || self.last - first < SHORT
    }

    /// Appends the following segment, if both together can be stored as one. Returns true if it was appended.
    fn join(&mut self, first: u32, next_first: u32, next: &Segment) -> bool {
        if let (Body::Steps(own), Body::Steps(other)) = (&mut self.body, &next.body) {
            let cell = other.at(next_first);
            let is_flat = other.block_end(next_first) >= next.last || other.step == 0;
            let length = self.last - first + 1;
            if own.step == 0 && is_flat {
                let step = cell
                    .checked_sub(own.cell)
                    .and_then(|by| i32::try_from(by).ok());
                match step {
                    Some(0) => {
                        self.last = next.last;
                        return true;
                    }
                    Some(step) if next.last - next_first < length => {
                        (own.origin, own.each, own.step) = (first, length, step);
                        self.last = next.last;
                        return true;
                    }
                    _ => {}
                }
            } else if own.at(next_first) == cell {
                let fits = own.block_end(next_first);
                let same = own.step == other.step && own.each == other.each;
                if is_flat && fits >= next.last || same && fits == other.block_end(next_first) {
                    self.last = next.last;
                    return true;
                }
            }
        }
        self.pack(first, next_first, next)
    }

    fn pack(&mut self, first: u32, next_first: u32, next: &Segment) -> bool {
        let total = (next.last - first) as usize + 1;
        if !self.is_short(first) || !next.is_short(next_first) || total > PACKED_MAX {
            return false;
        }
        let base = match &self.body {
            Body::Steps(steps) => steps.at(first).saturating_sub(1 << 31),
            Body::Packed(base, _) => *base,
        };
        let offset = |cell: i64| cell.checked_sub(base).and_then(|by| u32::try_from(by).ok());
        if let Body::Packed(_, cells) = &mut self.body
            && next_first == next.last
        {
            let added = offset(next.at(next_first, next_first));
            cells.extend(added);
            self.last = next_first - u32::from(added.is_none());
            return added.is_some();
        }
        let added = (next_first..=next.last).map(|id| offset(next.at(next_first, id)));
        let Some(added) = added.collect::<Option<Vec<u32>>>() else {
            return false;
        };
        if let Body::Steps(steps) = self.body {
            let own = (first..=self.last).map(|id| offset(steps.at(id)));
            let Some(own) = own.collect() else {
                return false;
            };
            self.body = Body::Packed(base, own);
        }
        if let Body::Packed(_, cells) = &mut self.body {
            cells.extend(added);
        }
        self.last = next.last;
        true
    }
}

impl Column {
    /// The number of an id; `None` if the id has no number.
    pub(super) fn at(&self, id: u32) -> Option<i64> {
        let (first, segment) = self.segments.range(..=id).next_back()?;
        (id <= segment.last).then(|| segment.at(*first, id))
    }

    /// True if no id has a number.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Number of segments of the column.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Removes the numbers of the ids from `first` to `last`.
    pub(super) fn erase(&mut self, first: u32, last: u32) {
        if let Some((&start, segment)) = self.segments.range_mut(..first).next_back()
            && segment.last >= first
        {
            let tail = segment.split(start, first);
            self.segments.insert(first, tail);
        }
        while let Some((&start, _)) = self.segments.range(first..=last).next() {
            let segment = self.segments.remove(&start);
            if let Some(mut segment) = segment.filter(|segment| segment.last > last) {
                let tail = segment.split(start, last + 1);
                self.segments.insert(last + 1, tail);
            }
        }
    }

    /// Sets the number of the ids from `first` to `last`.
    pub(super) fn write(&mut self, first: u32, last: u32, cell: i64) {
        let before = self.segments.range_mut(..=first).next_back();
        let before = before.map(|(start, segment)| (*start, segment));
        let mut tidied = None;
        if let Some((start, segment)) = before
            && segment.last >= first
        {
            if let Body::Packed(base, cells) = &mut segment.body
                && first == last
                && let Some(offset) = cell.checked_sub(*base)
                && let Ok(offset) = u32::try_from(offset)
            {
                cells[(first - start) as usize] = offset;
                return;
            }
            tidied = Some(start);
        }
        self.erase(first, last);
        self.segments
            .insert(first, Segment::alike(first, last, cell));
        if let Some(start) = tidied.filter(|start| *start < first) {
            self.tidy(start);
        }
        self.tidy(first);
        if let Some(after) = last.checked_add(1) {
            self.tidy(after);
        }
    }

    /// Sets the numbers of ascending ranges of ids, given as first id, last id and number. Returns false if
    /// more than `pieces_max` segments exist before the last one is added: the remaining ids then get no number.
    pub(super) fn fill(&mut self, spans: &[(u32, u32, i64)], pieces_max: usize) -> bool {
        let mut open: Option<(u32, Segment)> = None;
        for (first, last, cell) in spans {
            let next = Segment::alike(*first, *last, *cell);
            if let Some((start, segment)) = &mut open
                && segment.last + 1 == *first
                && segment.join(*start, *first, &next)
            {
                continue;
            }
            if let Some((start, segment)) = open.replace((*first, next)) {
                if self.segments.len() >= pieces_max {
                    return false;
                }
                self.put(start, segment);
            }
        }
        if let Some((start, segment)) = open {
            self.put(start, segment);
        }
        true
    }

    fn put(&mut self, first: u32, segment: Segment) {
        let last = segment.last;
        self.erase(first, last);
        self.segments.insert(first, segment);
        self.tidy(first);
        if let Some(after) = last.checked_add(1) {
            self.tidy(after);
        }
    }

    /// Joins the segment that begins at this id with the one before, if both together can be stored as one.
    fn tidy(&mut self, id: u32) {
        let mut near = self.segments.range_mut(..=id).rev();
        let Some((&next_first, next)) = near.next().filter(|(first, _)| **first == id) else {
            return;
        };
        if let Some((&first, segment)) = near.next()
            && segment.last + 1 == next_first
            && segment.join(first, next_first, next)
        {
            self.segments.remove(&next_first);
        }
    }

    /// The numbers of the ids from `first` to `last`, as regular pieces. Ids without a number are left out.
    pub(super) fn pieces(&self, first: u32, last: u32) -> impl Iterator<Item = Piece> {
        let start = self.segments.range(..=first).next_back();
        let start = start.map_or(first, |(start, _)| *start);
        let within = self.segments.range(start..=last);
        let within = within.filter(move |(_, segment)| segment.last >= first);
        within.flat_map(move |(&start, segment)| {
            let (first, last) = (start.max(first), segment.last.min(last));
            Pieces {
                start,
                segment,
                next: Some(first),
                last,
            }
        })
    }

    /// Ranges of equal numbers within the ids from `first` to `last`: first id, last id and number. Ids without a
    /// number are left out.
    pub(super) fn runs(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, u32, i64)> {
        self.pieces(first, last).flat_map(|piece| {
            let each = if piece.step == 0 {
                u32::MAX
            } else {
                piece.each
            };
            let blocks = (piece.last - piece.first) / each;
            (0..=blocks).map(move |block| {
                let first = piece.first + block * each;
                let last = first.saturating_add(each - 1).min(piece.last);
                (
                    first,
                    last,
                    piece.cell + i64::from(piece.step) * i64::from(block),
                )
            })
        })
    }

    /// Groups these ids by their numbers; the group of `None` has no numbers.
    pub(super) fn groups(&self, ids: &RoaringBitmap) -> Vec<(Option<i64>, RoaringBitmap)> {
        let mut groups: Vec<(Option<i64>, RoaringBitmap)> = Vec::new();
        let mut index = HashMap::new();
        let mut add = |cell: Option<i64>, first: u32, last: u32| {
            let at = *index.entry(cell).or_insert_with(|| {
                groups.push((cell, RoaringBitmap::new()));
                groups.len() - 1
            });
            groups[at].1.insert_range(first..=last);
        };
        for (first, last) in ranges(ids) {
            let mut next = Some(first);
            for (from, to, cell) in self.runs(first, last) {
                if let Some(gap) = next.filter(|next| *next < from) {
                    add(None, gap, from - 1);
                }
                add(Some(cell), from, to);
                next = to.checked_add(1);
            }
            if let Some(gap) = next.filter(|next| *next <= last) {
                add(None, gap, last);
            }
        }
        groups
    }

    /// Those of `ids` whose number is not `cell`. `None` stands for no number, in `cell` and for an id.
    pub(super) fn others(&self, ids: &RoaringBitmap, cell: Option<i64>) -> RoaringBitmap {
        if ids.len() == 1 {
            let is_other = ids.min().is_some_and(|id| self.at(id) != cell);
            return if is_other {
                ids.clone()
            } else {
                RoaringBitmap::new()
            };
        }
        let mut others = ids.clone();
        for (each, same) in self.groups(ids) {
            if each == cell {
                others -= same;
            }
        }
        others
    }

    /// The numbers of the column, one for each range of ids with the same number.
    pub(super) fn cells(&self) -> impl Iterator<Item = i64> {
        self.runs(0, u32::MAX).map(|(_, _, cell)| cell)
    }
}

/// The ranges of a set, in order.
pub(super) fn ranges(ids: &RoaringBitmap) -> impl Iterator<Item = (u32, u32)> {
    let mut iter = ids.iter();
    std::iter::from_fn(move || {
        iter.next_range()
            .map(|range| (*range.start(), *range.end()))
    })
}

/// Iterator over the regular pieces of a part of a segment.
struct Pieces<'a> {
    start: u32,
    segment: &'a Segment,
    next: Option<u32>,
    last: u32,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let first = self.next.filter(|next| *next <= self.last)?;
        let cell = self.segment.at(self.start, first);
        let (last, step, each) = match &self.segment.body {
            Body::Steps(steps) if steps.step == 0 => (self.last, 0, 1),
            // The rest of a block that is entered in its middle is a piece of its own.
            Body::Steps(steps) if !(first - steps.origin).is_multiple_of(steps.each) => {
                (steps.block_end(first).min(self.last), 0, 1)
            }
            Body::Steps(steps) => (self.last, steps.step, steps.each),
            Body::Packed(_, cells) => {
                let at = (first - self.start) as usize;
                let same = cells[at..].iter().take_while(|cell| **cell == cells[at]);
                let same = u32::try_from(same.count()).unwrap_or(1);
                ((first + (same - 1)).min(self.last), 0, 1)
            }
        };
        self.next = last.checked_add(1);
        Some(Piece {
            first,
            last,
            cell,
            step,
            each,
        })
    }
}

#[cfg(test)]
mod tests;
