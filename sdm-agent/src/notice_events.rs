//! The protocol's events for notices of the ledger.

use roaring::RoaringBitmap;
use sdm_runtime::ids::Ids;
use sdm_runtime::wire::IdForm;
use sdm_runtime::wire::event::Event;
use sdm_runtime::wire::groups::Group;

use crate::ledger::{EqualElements, Notice};
use crate::snapshot::wire_attributes;

/// Maximum number of groups of elements in one event, so that no message gets too large.
const GROUPS_MAX: usize = 1000;

/// The protocol's events for a notice: as many as its groups need. Text ids have no range sets, so an event with text
/// ids has at most [`GROUPS_MAX`] elements.
pub(crate) fn events(notice: Notice, form: IdForm) -> Vec<Event> {
    let (groups_max, ids_max) = match form {
        IdForm::Numbers => (GROUPS_MAX, usize::MAX),
        IdForm::Texts => (1, GROUPS_MAX),
    };
    let groups = |all: Vec<EqualElements>| -> Vec<Vec<Group>> {
        let groups = all.into_iter().flat_map(|alike| {
            let attributes = wire_attributes(&alike.attributes);
            parts(alike.ids, ids_max).into_iter().map(move |ids| Group {
                ids: Ids::Numbers(ids),
                attributes: attributes.clone(),
            })
        });
        let groups: Vec<Group> = groups.collect();
        groups.chunks(groups_max).map(<[Group]>::to_vec).collect()
    };
    let of = |job: Option<u32>| job.map_or_else(String::new, |job| job.to_string());
    match notice {
        Notice::New(it, parent, all) => {
            let event = |part| Event::New(it, parent.to_string(), part);
            groups(all).into_iter().map(event).collect()
        }
        Notice::Changed(it, job, all) => {
            let event = |part| Event::Change(it, of(job), part);
            groups(all).into_iter().map(event).collect()
        }
        Notice::Removed(it, job, ids) => {
            let event = |ids| Event::Remove(it, of(job), Ids::Numbers(ids));
            parts(ids, ids_max).into_iter().map(event).collect()
        }
    }
}

/// Splits a set into sets of at most `ids_max` elements.
fn parts(ids: RoaringBitmap, ids_max: usize) -> Vec<RoaringBitmap> {
    if usize::try_from(ids.len()).is_ok_and(|count| count <= ids_max) {
        return vec![ids];
    }
    let all: Vec<u32> = ids.iter().collect();
    let parts = all.chunks(ids_max);
    parts.map(|part| part.iter().copied().collect()).collect()
}
