//! The elements of one kind that a resource manager has: their ids, parents and attributes.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::column::{Column, ranges};

/// Maximum number of column segments for the attributes of one kind: they take some hundred MB at most.
pub(super) const SEGMENTS_MAX: usize = 1 << 22;

/// Elements of a kind, their parents, and their attributes by the definition's index.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) ids: RoaringBitmap,
    pub(super) families: BTreeMap<u32, RoaringBitmap>,
    pub(super) parents: Column,
    pub(super) columns: BTreeMap<usize, Column>,
    /// Number of segments of all columns together.
    pieces: usize,
}

impl Table {
    /// Ranges that contain the elements `ids`, all of which must exist, and no other elements of this kind. One range
    /// if no other element is between the first and the last; otherwise the ranges of `ids`.
    pub(super) fn spans(&self, ids: &RoaringBitmap) -> Vec<(u32, u32)> {
        match (ids.min(), ids.max()) {
            (Some(first), Some(last)) if ids.len() == self.ids.range_cardinality(first..=last) => {
                vec![(first, last)]
            }
            _ => ranges(ids).collect(),
        }
    }

    /// The stored number that encodes the value of an attribute of an element; `None` if the element has no value.
    pub(super) fn cell(&self, attribute: usize, id: u32) -> Option<i64> {
        self.columns
            .get(&attribute)
            .and_then(|column| column.at(id))
    }

    /// Sets or removes the number of these elements for an attribute. Returns false if the limit of segments would be
    /// exceeded; then only some of them have it.
    pub(super) fn set(&mut self, attribute: usize, ids: &RoaringBitmap, cell: Option<i64>) -> bool {
        let spans = self.spans(ids);
        let column = self.columns.entry(attribute).or_default();
        let others = self.pieces - column.len();
        let mut is_room = true;
        for (first, last) in spans {
            is_room = others + column.len() < SEGMENTS_MAX;
            match cell {
                Some(cell) if is_room => column.write(first, last, cell),
                Some(_) => break,
                None => column.erase(first, last),
            }
        }
        self.pieces = others + column.len();
        if column.is_empty() {
            self.columns.remove(&attribute);
        }
        is_room
    }

    /// Sets the numbers of new elements for an attribute that none of them has yet. Returns false if the limit of
    /// segments would be exceeded; then none of them has the attribute.
    pub(super) fn fill<'a>(
        &mut self,
        attribute: usize,
        new: &RoaringBitmap,
        set: impl Iterator<Item = (&'a RoaringBitmap, i64)>,
    ) -> bool {
        let mut spans = Vec::new();
        for (ids, cell) in set {
            if let (1, Some(id)) = (ids.len(), ids.min()) {
                spans.push((id, id, cell));
                continue;
            }
            let own = self.spans(ids).into_iter();
            spans.extend(own.map(|(first, last)| (first, last, cell)));
        }
        // In sorted order, equal or evenly rising values become one piece from the start.
        spans.sort_unstable();
        let all = self.spans(new);
        let column = self.columns.entry(attribute).or_default();
        let others = self.pieces - column.len();
        let is_room = column.fill(&spans, SEGMENTS_MAX.saturating_sub(others));
        if !is_room {
            for (first, last) in all {
                column.erase(first, last);
            }
        }
        self.pieces = others + column.len();
        is_room
    }

    /// Removes empty columns, and recounts the segments of the remaining ones.
    fn count(&mut self) {
        self.columns.retain(|_, column| !column.is_empty());
        self.pieces = self.columns.values().map(Column::len).sum();
    }

    /// Groups the elements `ids` by their numbers for an attribute.
    pub(super) fn groups(
        &self,
        attribute: usize,
        ids: &RoaringBitmap,
    ) -> Vec<(Option<i64>, RoaringBitmap)> {
        match self.columns.get(&attribute) {
            Some(column) => column.groups(ids),
            None => vec![(None, ids.clone())],
        }
    }

    /// Those of the elements `ids` whose number for an attribute is not `cell`.
    pub(super) fn others(
        &self,
        attribute: usize,
        ids: &RoaringBitmap,
        cell: Option<i64>,
    ) -> RoaringBitmap {
        match (self.columns.get(&attribute), cell) {
            (Some(column), _) => column.others(ids, cell),
            (None, Some(_)) => ids.clone(),
            (None, None) => RoaringBitmap::new(),
        }
    }

    /// Adds new elements below a parent, without attributes.
    pub(super) fn add(&mut self, parent: u32, ids: &RoaringBitmap) {
        self.ids |= ids;
        self.ids.optimize();
        let family = self.families.entry(parent).or_default();
        *family |= ids;
        family.optimize();
        for (first, last) in self.spans(ids) {
            for column in self.columns.values_mut() {
                column.erase(first, last);
            }
            self.parents.write(first, last, i64::from(parent));
        }
        self.count();
    }

    /// Removes elements, and the attribute values of all unused ids around them.
    pub(super) fn remove(&mut self, ids: &RoaringBitmap) {
        for (parent, gone) in self.by_parent(ids) {
            if let Some(family) = self.families.get_mut(&parent) {
                *family -= gone;
                if family.is_empty() {
                    self.families.remove(&parent);
                }
            }
        }
        self.ids -= ids;
        let mut cleared = None;
        for (first, last) in ranges(ids).filter(|_| !self.ids.is_empty()) {
            if cleared.is_some_and(|cleared| cleared >= last) {
                continue;
            }
            let below = u32::try_from(self.ids.rank(first)).unwrap_or(u32::MAX);
            let before = below.checked_sub(1).and_then(|at| self.ids.select(at));
            let after = self.ids.select(below);
            let first = before.map_or(0, |id| id + 1);
            let last = after.map_or(u32::MAX, |id| id - 1);
            cleared = Some(last);
            self.parents.erase(first, last);
            for column in self.columns.values_mut() {
                column.erase(first, last);
            }
        }
        if self.ids.is_empty() {
            *self = Self::default();
        }
        self.count();
    }

    /// The elements `ids`, grouped by parent.
    pub(super) fn by_parent(&self, ids: &RoaringBitmap) -> Vec<(u32, RoaringBitmap)> {
        let groups = self.parents.groups(ids).into_iter();
        let known = |(parent, ids): (Option<i64>, _)| Some((u32::try_from(parent?).ok()?, ids));
        groups.filter_map(known).collect()
    }

    /// The children of any of these parents.
    pub(super) fn below(&self, parents: &RoaringBitmap) -> RoaringBitmap {
        let mut all = RoaringBitmap::new();
        if parents.len() < self.families.len() as u64 {
            let families = parents
                .iter()
                .filter_map(|parent| self.families.get(&parent));
            families.for_each(|family| all |= family);
        } else {
            let families = self.families.iter();
            let families = families.filter(|(parent, _)| parents.contains(**parent));
            families.for_each(|(_, family)| all |= family);
        }
        all
    }
}
