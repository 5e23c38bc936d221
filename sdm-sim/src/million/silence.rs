//! Many servers that do not answer, each for a reason of its own.

use std::time::Duration;

use sdm_core::limits::MISSING_REASONS_MAX;
use sdm_core::message::SyncPolicy;
use sdm_core::topology::Topology;
use sdm_debug::rules::RULE_HASH;
use sdm_idset::IdSet;

use super::{Crowd, Meters};

#[test]
fn five_thousand_silent_children_are_all_named() {
    let meters = Meters {
        heap: || 0,
        clock: || Duration::ZERO,
    };
    let count = 5000;
    let (mut crowd, _) = Crowd::new(count, meters);
    crowd.topology = Topology::Flat;
    crowd.start();
    crowd.servers_hang = true;
    let all = IdSet::all_below(count);
    let sync = SyncPolicy::TimeOut { ms: 1000 };
    crowd.give("nobody answers", &all, sync, RULE_HASH, |_| None);
    let missing = &crowd.missing;
    assert_eq!(missing.len(), MISSING_REASONS_MAX, "reasons");
    let own = |why: &str| why.starts_with("no answer from server ");
    assert!(
        missing[..MISSING_REASONS_MAX - 1]
            .iter()
            .all(|(_, why)| own(why))
    );
    let named: u64 = missing.iter().map(|(tasks, _)| tasks.len()).sum();
    let sets = missing.iter().map(|(tasks, _)| tasks);
    assert_eq!(named, u64::from(count), "each is named once");
    assert_eq!(IdSet::union_all(sets), all);
}
