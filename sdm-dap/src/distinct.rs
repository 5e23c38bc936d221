//! An index of equal things by hash, as each stop of a big job brings thousands of classes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The positions of things in a list, by hash.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distinct(HashMap<u64, Vec<usize>>);

impl Distinct {
    /// The position of the thing with this hash for which `is_it` is true; `None` if there is none.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let places = self.0.get(&hash)?;
        places.iter().copied().find(|place| is_it(*place))
    }

    /// Adds the position of a thing with this hash.
    pub(crate) fn add(&mut self, hash: u64, place: usize) {
        self.0.entry(hash).or_default().push(place);
    }
}

/// The hash of a value, or of the parts in which values mostly differ.
pub(crate) fn hash_of(thing: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}
