//! Errors in the events of a resource manager's agent.

use roaring::RoaringBitmap;

use super::column::ranges;
use super::definitions::DefinitionError;
use super::table::SEGMENTS_MAX;
use super::value::ValueError;
use crate::ids::IDS_MAX;
use crate::wire::event::Kind;

/// Maximum size of all distinct texts of one resource manager's attribute values together, in bytes. String ids do not
/// count.
pub const TEXTS_BYTES_MAX: usize = 256 << 20;
/// Maximum number of string ids of one resource manager.
pub const NAMES_MAX: u32 = 1 << 20;
/// Error in a part of an agent's event. That part has no effect; the rest of the event does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// New elements whose parent does not exist, or cannot have children of this kind.
    #[error(
        "new elements of kind {kind}: their parent `{parent}` does not exist or cannot contain them",
        kind = .0,
        parent = .1
    )]
    NoParent(&'static str, String),
    /// The elements do not exist, or the named job does not have these processes.
    #[error("{kind} {id} does not exist", kind = .0, id = .1)]
    Unknown(&'static str, String),
    /// New elements with ids that are in use, or reserved.
    #[error("{kind} {id} already exists, or its id is reserved", kind = .0, id = .1)]
    Taken(&'static str, String),
    /// A value that the attribute's definition does not allow.
    #[error("{kind} {id}: attribute {name}: {fault}", kind = .0, id = .1, name = .2, fault = .3)]
    Value(&'static str, String, String, ValueError),
    /// An attempt to set the element's id as an attribute.
    #[error("{kind} {id}: an element's id cannot be set as an attribute", kind = .0, id = .1)]
    Id(&'static str, String),
    /// A state to which the element's state has no transition.
    #[error("{kind} {ids}: the state cannot change to {to} from {from}")]
    Transition {
        /// Kind of the elements.
        kind: &'static str,
        /// The elements, as text.
        ids: String,
        /// The state of the elements, which stays.
        from: &'static str,
        /// The state that was to follow.
        to: &'static str,
    },
    /// A state that only the model sets.
    #[error("node {0}: state {1} is derived from the node's processes and cannot be set")]
    Internal(String, &'static str),
    /// A definition is broken.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// There are too many elements of a kind.
    #[error("the resource manager has more than {IDS_MAX} elements of kind {0}")]
    TooMany(&'static str),
    /// The attribute values of a kind's elements need too many segments of storage; the excess values are dropped.
    #[error(
        "the attribute values of elements of kind {0} need more than {SEGMENTS_MAX} segments: some values were dropped"
    )]
    TooVaried(&'static str),
    /// There are too many string ids.
    #[error(
        "the resource manager has more than {NAMES_MAX} elements whose ids are texts: further ones were ignored"
    )]
    TooManyNames,
    /// The texts of all attribute values of the manager together exceed [`TEXTS_BYTES_MAX`].
    #[error("the resource manager's texts exceed {TEXTS_BYTES_MAX} bytes")]
    TooManyTexts,
    /// Number of further errors in an event that are not reported one by one.
    #[error("number of further errors in this event: {0}")]
    More(usize),
}

/// Name of a kind of element.
#[must_use]
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Job => "job",
        Kind::Machine => "machine",
        Kind::Node => "node",
        Kind::Process => "process",
        Kind::Queue => "queue",
        Kind::ResourceManager => "resource manager",
    }
}

/// The first ranges of a set.
pub(super) fn brief(ids: &RoaringBitmap) -> String {
    let first = ranges(ids).take(5).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    let text = first.collect::<Vec<_>>().join(",");
    match ranges(ids).nth(5) {
        Some(_) => format!("{text},... ({} of them)", ids.len()),
        None => text,
    }
}
