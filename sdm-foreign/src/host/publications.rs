//! Values that processes have published, and lookups that wait for one. The node of the job's first rank keeps them
//! for all.

use std::collections::BTreeMap;

use sdm_foreign::peer_messages::{Entry, PublishedValue};

use crate::host::request::{Done, LookupCallback};
use crate::host::{DUPLICATE_KEY, NOT_FOUND, OUT_OF_RESOURCE, PARTIAL_SUCCESS, SUCCESS};

/// Maximum number of values that are kept.
const ENTRIES_MAX: usize = 1 << 16;
/// Maximum number of lookups that wait for a value.
const WAITING_MAX: usize = 1 << 16;

/// The origin of a lookup.
pub(crate) enum Looker {
    /// A process of this node, with the callback for the answer.
    Here(Done<LookupCallback>),
    /// Another node: a rank of that node, which gets the answer, and the number of its message.
    There(u32, u64),
}

impl Looker {
    fn is_again(&self, other: &Self) -> bool {
        matches!((self, other), (Self::There(a, b), Self::There(c, d)) if (a, b) == (c, d))
    }
}

/// Answer to a lookup: the status, and the entries found.
pub(crate) struct Found {
    pub(crate) to: Looker,
    pub(crate) status: i32,
    pub(crate) entries: Vec<Entry>,
}

/// Published values by key, each with the task that published it, and the waiting lookups.
#[derive(Default)]
pub(crate) struct Publications {
    entries: BTreeMap<String, (u32, PublishedValue)>,
    waiting: Vec<(Vec<String>, Looker)>,
}

impl Publications {
    /// Publishes entries. Returns the status, and the lookups that waited for them. Nothing is published if another
    /// value has one of the keys, or if there is no room for all entries. An equal entry that exists already, from a
    /// repeated request, counts as published.
    pub(crate) fn publish(&mut self, entries: Vec<Entry>) -> (i32, Vec<Found>) {
        let is_taken = |it: &Entry| {
            let known = self.entries.get(&it.key);
            known.is_some_and(|(owner, value)| *owner != it.owner || *value != it.value)
        };
        if entries.iter().any(is_taken) {
            return (DUPLICATE_KEY, Vec::new());
        }
        if self.entries.len() + entries.len() > ENTRIES_MAX {
            return (OUT_OF_RESOURCE, Vec::new());
        }
        let named = entries.into_iter().map(|it| (it.key, (it.owner, it.value)));
        self.entries.extend(named);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let found = waiting.filter_map(|(keys, looker)| self.look_up(keys, true, looker));
        (SUCCESS, found.collect())
    }

    /// Looks up published values. With `waits`, a lookup that misses a key returns `None`, and is remembered until all
    /// keys are published. If too many lookups wait, it is answered at once.
    pub(crate) fn look_up(
        &mut self,
        keys: Vec<String>,
        waits: bool,
        looker: Looker,
    ) -> Option<Found> {
        let known = keys.iter().filter_map(|key| {
            let (owner, value) = self.entries.get(key)?;
            Some(Entry {
                owner: *owner,
                key: key.clone(),
                value: value.clone(),
            })
        });
        let entries: Vec<_> = known.collect();
        if waits && entries.len() < keys.len() && self.waiting.len() < WAITING_MAX {
            self.waiting.retain(|(_, it)| !it.is_again(&looker));
            self.waiting.push((keys, looker));
            return None;
        }
        let status = match entries.len() {
            0 => NOT_FOUND,
            count if count < keys.len() => PARTIAL_SUCCESS,
            _ => SUCCESS,
        };
        Some(Found {
            to: looker,
            status,
            entries,
        })
    }

    /// Removes values that a process has published: those with these keys, or all where no key is given.
    pub(crate) fn unpublish(&mut self, owner: u32, keys: &[String]) {
        self.entries.retain(|key, (whose, _)| {
            !(*whose == owner && (keys.is_empty() || keys.iter().any(|it| it == key)))
        });
    }
}
