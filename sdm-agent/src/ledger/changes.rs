//! Differences between the reported elements and the present ones.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use sdm_runtime::attribute as id;
use sdm_runtime::wire::event::Kind;

use crate::snapshot::Attributes;

/// Elements that have the same values.
#[derive(Clone, Debug, PartialEq)]
pub struct EqualElements {
    /// Ids of the elements.
    pub ids: RoaringBitmap,
    /// Pairs of attribute id and value, by ascending attribute id.
    pub attributes: Vec<(String, String)>,
}

/// A change to report to the client; changes are reported in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// New elements: their kind, the id of their parent, and the elements grouped by attributes.
    New(Kind, u32, Vec<EqualElements>),
    /// Changed attributes; for processes, with the id of their job.
    Changed(Kind, Option<u32>, Vec<EqualElements>),
    /// Removed elements; for processes, with the id of their job.
    Removed(Kind, Option<u32>, RoaringBitmap),
}

/// An element that was reported, with its attributes as reported.
pub(super) struct ReportedElement {
    pub(super) id: u32,
    pub(super) attributes: Attributes,
}

/// Differences among elements of one kind; elements with equal changes are grouped.
#[derive(Default)]
pub(super) struct Changes {
    /// Estimated size of the events for these changes, in bytes.
    bytes: usize,
    new: BTreeMap<Vec<(String, String)>, RoaringBitmap>,
    changed: BTreeMap<Vec<(String, String)>, RoaringBitmap>,
    pub(super) removed: RoaringBitmap,
}

impl Changes {
    /// Applies `change` and returns the estimated size of the events that it adds, in bytes.
    pub(super) fn counted(&mut self, change: impl FnOnce(&mut Self)) -> usize {
        let before = self.bytes;
        change(self);
        self.bytes - before
    }

    pub(super) fn add(&mut self, attributes: Attributes, last: &mut u32) -> ReportedElement {
        *last += 1;
        let list: Vec<_> = attributes.clone().into_iter().collect();
        self.bytes += bytes_of(&list);
        self.new.entry(list).or_default().insert(*last);
        ReportedElement {
            id: *last,
            attributes,
        }
    }

    /// Adds a reported element as it was reported.
    pub(super) fn again(&mut self, told: &ReportedElement) {
        let list: Vec<_> = told.attributes.clone().into_iter().collect();
        self.new.entry(list).or_default().insert(told.id);
    }

    pub(super) fn update(&mut self, told: &mut ReportedElement, now: Attributes) {
        let known = &told.attributes;
        let differs = |(id, value): &(&String, &String)| known.get(*id) != Some(*value);
        let pair = |(id, value): (&String, &String)| (id.clone(), value.clone());
        let mut list: Vec<_> = now.iter().filter(differs).map(pair).collect();
        // An attribute that has lost its value gets the default.
        let gone = known
            .keys()
            .filter(|id| !now.contains_key(*id) && *id != id::JOB_SUB_ID);
        list.extend(gone.map(|id| (id.clone(), default(id).to_owned())));
        list.sort();
        if list.is_empty() {
            return;
        }
        self.bytes += bytes_of(&list);
        self.changed.entry(list).or_default().insert(told.id);
        let submission = told.attributes.remove(id::JOB_SUB_ID);
        told.attributes = now;
        if let Some(submission) = submission {
            told.attributes
                .insert(id::JOB_SUB_ID.to_owned(), submission);
        }
    }

    /// Notices of the changes, one for each group of equal elements. `parent` is the parent of new elements, `of` the
    /// job of processes.
    pub(super) fn into_notices(
        self,
        kind: Kind,
        parent: Option<u32>,
        of: Option<u32>,
    ) -> Vec<Notice> {
        let groups = |map: BTreeMap<_, _>| -> Vec<EqualElements> {
            let mut groups: Vec<EqualElements> = map
                .into_iter()
                .map(|(attributes, ids)| EqualElements { ids, attributes })
                .collect();
            groups.sort_by_key(|group| group.ids.min());
            groups
        };
        let mut notices = Vec::new();
        push_removed(&mut notices, kind, of, self.removed);
        if let Some(parent) = parent.filter(|_| !self.new.is_empty()) {
            notices.push(Notice::New(kind, parent, groups(self.new)));
        }
        if !self.changed.is_empty() {
            notices.push(Notice::Changed(kind, of, groups(self.changed)));
        }
        notices
    }
}

pub(super) fn push_removed(
    notices: &mut Vec<Notice>,
    kind: Kind,
    of: Option<u32>,
    ids: RoaringBitmap,
) {
    if !ids.is_empty() {
        notices.push(Notice::Removed(kind, of, ids));
    }
}

/// The default value of an attribute; empty if it has none.
fn default(id: &str) -> &'static str {
    let mut known = id::ANNOUNCED.iter();
    known.find(|it| it.0 == id).map_or("", |it| it.4)
}

/// Estimated size on the wire of a group of elements with these values, in bytes.
fn bytes_of(list: &[(String, String)]) -> usize {
    let pair = |(id, value): &(String, String)| id.len() + value.len() + 11;
    40 + list.iter().map(pair).sum::<usize>()
}
