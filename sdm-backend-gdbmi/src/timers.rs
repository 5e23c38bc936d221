//! Deadlines of several objects, ordered by time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Deadlines of objects, at most one for each key.
pub(crate) struct Timers<K> {
    due: BTreeSet<(Instant, K)>,
    of: BTreeMap<K, Instant>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
            of: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Sets the deadline of an object, in place of an earlier deadline; `None` removes it.
    pub(crate) fn set(&mut self, key: K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.of.insert(key, at),
            None => self.of.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, key));
        }
        self.due.extend(at.map(|at| (at, key)));
    }

    /// The earliest deadline; `None` if there is none.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes the passed deadlines and returns their keys, earliest first.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<K> {
        let mut due = Vec::new();
        while let Some((_, key)) = self.due.first().filter(|(at, _)| *at <= now) {
            due.push(*key);
            self.set(due[due.len() - 1], None);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timer_fires_at_its_last_set_time() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut timers = Timers::default();
        assert_eq!((timers.first(), timers.take_due(at(9))), (None, vec![]));
        timers.set(1, Some(at(5)));
        timers.set(2, Some(at(3)));
        timers.set(3, Some(at(3)));
        assert_eq!(timers.first(), Some(at(3)));
        timers.set(2, Some(at(7)));
        timers.set(3, None);
        assert_eq!(timers.first(), Some(at(5)));
        assert_eq!(timers.take_due(at(4)), []);
        timers.set(4, Some(at(6)));
        assert_eq!(timers.take_due(at(6)), [1, 4]);
        assert_eq!(timers.take_due(at(6)), []);
        timers.set(1, Some(at(6)));
        assert_eq!(timers.take_due(at(8)), [1, 2]);
        assert_eq!(timers.first(), None);
    }
}
