//! Assignment of ranks to servers, where a launcher starts a process for each rank and servers have several
//! ranks.

use std::collections::BTreeMap;

use sdm_bootstrap::joined::Joined;
use sdm_idset::{IdSet, TaskId};

/// The ranks whose processes have connected to a server.
#[derive(Debug, Default)]
pub(super) struct JoinedRanks {
    by_server: BTreeMap<u32, IdSet>,
    all: IdSet,
    /// Ranks of servers that have not announced themselves.
    unserved: IdSet,
}

impl JoinedRanks {
    /// Adds a rank with its server; `is_known` tells whether that server has announced itself. Returns
    /// false if the rank was added before.
    pub(super) fn join(&mut self, joined: Joined, is_known: bool) -> bool {
        let rank = TaskId(joined.rank);
        if self.all.contains(rank) {
            return false;
        }
        self.all.extend([rank]);
        self.by_server
            .entry(joined.server)
            .or_default()
            .extend([rank]);
        if !is_known {
            self.unserved.extend([rank]);
        }
        true
    }

    /// Notes that a server has announced itself.
    pub(super) fn serve(&mut self, server: u32) {
        if let Some(ranks) = self.by_server.get(&server) {
            self.unserved.subtract(ranks);
        }
    }

    /// Number of ranks that have arrived, whose servers have announced themselves.
    pub(super) fn count(&self) -> u64 {
        self.all.len() - self.unserved.len()
    }

    /// True if a rank has arrived, and its server has announced itself.
    pub(super) fn contains(&self, rank: u32) -> bool {
        let rank = TaskId(rank);
        self.all.contains(rank) && !self.unserved.contains(rank)
    }

    /// The ranks of a server.
    pub(super) fn of(&self, server: u32) -> IdSet {
        self.by_server.get(&server).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_counted_after_its_server_has_announced_itself() {
        let joined = |rank, server| Joined {
            rank,
            server,
            pid: 7,
        };
        let mut ranks = JoinedRanks::default();
        assert!(ranks.join(joined(1, 1), false));
        assert!(ranks.join(joined(0, 1), false));
        assert!(ranks.join(joined(2, 3), true));
        assert_eq!((ranks.count(), ranks.contains(1)), (1, false));
        ranks.serve(1);
        assert_eq!((ranks.count(), ranks.contains(1)), (3, true));
        assert!(!ranks.join(joined(0, 3), true), "it is there");
        assert_eq!(ranks.of(1).to_string(), "0-1");
        assert_eq!(ranks.of(9), IdSet::new());
    }
}
