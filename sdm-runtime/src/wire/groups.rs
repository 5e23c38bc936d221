//! Groups of elements that have the same attributes: `ngroups { RANGESET nattrs key=value * nattrs }`.

use std::collections::BTreeMap;

use super::{Attribute, MessageError, bad, pair, text};
use crate::ids::{IDS_MAX, Ids, RangeError};

/// Elements that have the same attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The elements.
    pub ids: Ids,
    /// The attributes that all elements of the group have.
    pub attributes: Vec<Attribute>,
}

/// Groups for one attribute, one for each distinct value.
#[must_use]
pub fn by_value(key: &str, values: impl IntoIterator<Item = (u32, String)>) -> Vec<Group> {
    let mut sets: BTreeMap<String, roaring::RoaringBitmap> = BTreeMap::new();
    for (id, value) in values {
        sets.entry(value).or_default().insert(id);
    }
    let groups = sets.into_iter().map(|(value, ids)| Group {
        ids: Ids::Numbers(ids),
        attributes: vec![(key.to_owned(), value)],
    });
    groups.collect()
}

pub(super) fn encode(groups: &[Group], args: &mut Vec<String>) {
    args.push(groups.len().to_string());
    for group in groups {
        args.push(group.ids.to_string());
        args.push(group.attributes.len().to_string());
        args.extend(group.attributes.iter().map(text));
    }
}

pub(super) fn decode(args: &mut std::vec::IntoIter<String>) -> Result<Vec<Group>, MessageError> {
    let mut groups = Vec::new();
    let mut elements = 0;
    for _ in 0..count(args, 2)? {
        let ids: Ids = next(args)?.parse()?;
        elements += ids.len();
        if elements > IDS_MAX {
            return Err(RangeError::TooMany.into());
        }
        let attributes = count(args, 1)?;
        let attributes = args.take(attributes).map(pair).collect::<Result<_, _>>()?;
        groups.push(Group { ids, attributes });
    }
    match args.len() {
        0 => Ok(groups),
        more => Err(MessageError::TooMany("an event", more)),
    }
}

pub(super) fn next(args: &mut std::vec::IntoIter<String>) -> Result<String, MessageError> {
    args.next()
        .ok_or(MessageError::Missing("an event", "an argument"))
}

/// Reads the number of items that follow, each of at least `each` arguments. A number for which there are too few
/// arguments is an error.
pub(super) fn count(
    args: &mut std::vec::IntoIter<String>,
    each: usize,
) -> Result<usize, MessageError> {
    let text = next(args)?;
    let count = text
        .parse()
        .ok()
        .filter(|count| *count <= args.len() / each);
    count.ok_or_else(|| bad("count of the arguments that follow", &text))
}
