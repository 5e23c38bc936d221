//! Notices of the model for listeners ("PTP runtime platform, Events"): new, changed and removed elements, errors and
//! messages.

use roaring::RoaringBitmap;

use super::error::ModelError;
use super::value::Value;
use crate::wire::event::{Failure, Kind};

/// A resource manager of a model. Its number is not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManagerId(pub(super) u32);

/// A group of elements with equal values of some attributes: the values in the order of the attributes, and the
/// elements. A value is `None` if the elements do not have the attribute.
pub type Alike = (Vec<Option<Value>>, RoaringBitmap);

/// A change of elements of one kind below one parent.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The resource manager.
    pub manager: ManagerId,
    /// Kind of the elements.
    pub kind: Kind,
    /// The number of the elements' parent; `None` for resource managers. For a listener of a node's children it is
    /// still the job of the processes.
    pub parent: Option<u32>,
    /// The change.
    pub what: What,
}

/// A change of elements.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// New elements.
    New(RoaringBitmap),
    /// Ids of changed attributes, each with its elements. The model has the new values.
    Changed(Vec<(String, RoaringBitmap)>),
    /// For the listener of one element: its changed attributes with their new values; `None` for a removed attribute.
    Attributes(u32, Vec<(String, Option<Value>)>),
    /// Removed elements.
    Removed(RoaringBitmap),
    /// Error in an event of the agent.
    Error(ModelError),
    /// A text of the agent for the user: its level (FATAL, ERROR, WARNING, INFO) and the text.
    Message(String, Failure),
    /// With a reason: the elements may be out of date from now on. Without one: all old elements were removed, and
    /// the present ones are new.
    Stale(Option<String>),
    /// Notices were dropped because the listener did not poll for too long; it must read the model again.
    Missed,
}

/// The kinds of elements that can be children of an element of this kind.
pub(super) fn children(kind: Kind) -> &'static [Kind] {
    match kind {
        Kind::ResourceManager => &[Kind::Machine, Kind::Queue, Kind::Job],
        Kind::Machine => &[Kind::Node],
        Kind::Queue => &[Kind::Job],
        Kind::Job => &[Kind::Process],
        Kind::Node | Kind::Process => &[],
    }
}

impl Notice {
    /// A copy of the notice without its change; the caller sets another change.
    pub(super) fn head(&self) -> Self {
        Self {
            what: What::Missed,
            ..*self
        }
    }

    /// Estimated memory of the notice, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let more = match &self.what {
            What::New(ids) | What::Removed(ids) => ids.serialized_size(),
            What::Changed(attributes) => {
                let each = attributes.iter();
                each.map(|(id, ids)| id.len() + ids.serialized_size()).sum()
            }
            What::Attributes(_, values) => {
                let length = |value: &Value| match value {
                    Value::Array(items) => items.iter().map(|item| 32 + item.len()).sum(),
                    Value::Enumerated(text) | Value::String(text) => text.len(),
                    _ => 0,
                };
                let each = values.iter();
                each.map(|(id, value)| 64 + id.len() + value.as_ref().map_or(0, length))
                    .sum()
            }
            What::Message(level, failure) => level.len() + failure.code.len() + failure.text.len(),
            What::Stale(why) => why.as_ref().map_or(0, String::len),
            What::Error(_) | What::Missed => 0,
        };
        more + 256
    }

    /// The elements that the notice is about; empty for a notice about the manager as a whole.
    #[must_use]
    pub fn ids(&self) -> RoaringBitmap {
        match &self.what {
            What::New(ids) | What::Removed(ids) => ids.clone(),
            What::Changed(attributes) => {
                let mut all = RoaringBitmap::new();
                attributes.iter().for_each(|(_, ids)| all |= ids);
                all
            }
            What::Attributes(id, _) => std::iter::once(*id).collect(),
            _ => RoaringBitmap::new(),
        }
    }
}
