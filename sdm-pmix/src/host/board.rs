//! What processes have published, and who waits for something to be.

use std::collections::BTreeMap;
use std::ffi::CString;

use crate::ffi::{Proc, Published, key_of};
use crate::host::request::{Done, LookupCallback};
use crate::host::value::Owned;

const SUCCESS: i32 = 0;
const NOT_FOUND: i32 = -46;
const DUPLICATE_KEY: i32 = -53;
const PARTIAL_SUCCESS: i32 = -52;
const OUT_OF_RESOURCE: i32 = -29;
/// The most values that are kept.
const ENTRIES_MAX: usize = 1 << 16;

/// What processes have published, by name.
#[derive(Default)]
pub(crate) struct Board {
    entries: BTreeMap<String, (Proc, Owned)>,
    waiting: Vec<(Vec<String>, Done<LookupCallback>)>,
}

impl Board {
    /// Keeps these; gives the status to be told. None is kept where one is there already.
    pub(crate) fn publish(&mut self, process: Proc, entries: Vec<(String, Owned)>) -> i32 {
        if entries
            .iter()
            .any(|(key, _)| self.entries.contains_key(key))
        {
            return DUPLICATE_KEY;
        }
        if self.entries.len() + entries.len() > ENTRIES_MAX {
            return OUT_OF_RESOURCE;
        }
        let owned = entries.into_iter();
        self.entries
            .extend(owned.map(|(key, value)| (key, (process, value))));
        for (keys, done) in std::mem::take(&mut self.waiting) {
            self.look_up(keys, true, done);
        }
        SUCCESS
    }

    /// Answers with those that are there; where it `waits`, once all are.
    pub(crate) fn look_up(&mut self, keys: Vec<String>, waits: bool, done: Done<LookupCallback>) {
        let known: Vec<_> = keys
            .iter()
            .filter_map(|key| Some((key, self.entries.get(key)?)))
            .collect();
        if waits && known.len() < keys.len() {
            self.waiting.push((keys, done));
            return;
        }
        let found: Vec<_> = known
            .into_iter()
            .map(|(key, (owner, value))| Published {
                owner: *owner,
                key: key_of(&CString::new(key.as_str()).unwrap_or_default()),
                value: value.value(),
            })
            .collect();
        let status = match found.len() {
            0 => NOT_FOUND,
            count if count < keys.len() => PARTIAL_SUCCESS,
            _ => SUCCESS,
        };
        done.tell(status, &found);
    }

    /// Takes back what this process has published: these, or all where none is named.
    pub(crate) fn unpublish(&mut self, process: &Proc, keys: &[String]) {
        let is_its =
            |owner: &Proc| owner.rank == process.rank && owner.namespace() == process.namespace();
        self.entries.retain(|key, (owner, _)| {
            !(is_its(owner) && (keys.is_empty() || keys.iter().any(|it| it == key)))
        });
    }
}
