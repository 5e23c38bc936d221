//! Merging of events of many tasks, so that equal ones are shown once.
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use sdm_idset::IdSet;

/// Maximum number of blocks that are searched for an equal one.
const LOOK_BACK_MAX: usize = 256;

/// Blocks of tasks with equal events, in order. The events of one task keep their order.
#[derive(Debug)]
pub struct Merged<T> {
    blocks: VecDeque<(IdSet, T)>,
}

impl<T: PartialEq> Default for Merged<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PartialEq> Merged<T> {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            blocks: VecDeque::new(),
        }
    }

    /// Adds an event of some tasks. The tasks join an equal block only if neither that block nor a later
    /// one contains any of them.
    pub fn push(&mut self, tasks: IdSet, what: T) {
        for (known, equal) in self.blocks.iter_mut().rev().take(LOOK_BACK_MAX) {
            if !known.is_disjoint(&tasks) {
                break;
            }
            if *equal == what {
                known.union_with(&tasks);
                return;
            }
        }
        self.blocks.push_back((tasks, what));
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// True if nothing was added since the last take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Takes all blocks. The largest set is first if no task is in two of them; otherwise they keep their
    /// order.
    pub fn take_biggest_first(&mut self) -> Vec<(IdSet, T)> {
        let mut blocks = self.take();
        let mut seen = IdSet::new();
        let once = blocks.iter().all(|(tasks, _)| {
            let new = seen.is_disjoint(tasks);
            seen.union_with(tasks);
            new
        });
        if once {
            blocks.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
        }
        blocks
    }

    /// Takes all blocks, in order.
    pub fn take(&mut self) -> Vec<(IdSet, T)> {
        std::mem::take(&mut self.blocks).into()
    }
}

/// The positions of a list's entries by their hash: each stop of a big job brings thousands of classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distinct(HashMap<u64, Vec<usize>>);

impl Distinct {
    /// The position of the entry with this hash for which `is_it` is true; `None` without such an entry.
    pub fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let places = self.0.get(&hash)?;
        places.iter().copied().find(|place| is_it(*place))
    }

    /// Adds the position of an entry with this hash.
    pub fn add(&mut self, hash: u64, place: usize) {
        self.0.entry(hash).or_default().push(place);
    }
}

/// The hash of a value, or of the parts in which values mostly differ.
pub fn hash_of(thing: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// Adds `tasks` to the entry that equals `what`, or adds a new entry.
pub fn join<T: PartialEq>(entries: &mut Vec<(IdSet, T)>, tasks: &IdSet, what: T) {
    match entries.iter_mut().find(|(_, known)| *known == what) {
        Some((set, _)) => set.union_with(tasks),
        None => entries.push((tasks.clone(), what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pushed: &[(&str, char)], expect: &str) {
        let mut merged = Merged::new();
        for (set, what) in pushed {
            merged.push(set.parse().unwrap(), *what);
        }
        let text: Vec<_> = merged
            .take_biggest_first()
            .iter()
            .map(|(set, what)| format!("{set}:{what}"))
            .collect();
        assert_eq!(text.join(" "), expect);
    }

    #[test]
    fn equal_items_merge_without_reordering_a_task() {
        check(&[("0", 'a'), ("1", 'a')], "0-1:a");
        check(&[("0", 'a'), ("0", 'b'), ("1", 'a')], "0-1:a 0:b");
        check(&[("0", 'a'), ("0", 'b'), ("0", 'a')], "0:a 0:b 0:a");
        check(&[("0", 'a'), ("0-1", 'b'), ("1", 'a')], "0:a 0-1:b 1:a");
        check(&[("0", 'a'), ("1-3", 'b')], "1-3:b 0:a");
    }
}
