//! The ranks that an error is attributed to, with their calls.

use std::collections::BTreeMap;

use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

use super::Step;
use super::collective_groups::CollectiveGroup;
use super::motion::{SamePlace, groups};
use super::verdict::Verdict;
use super::wait::{WaitKind, place};

/// Ranks that an error is attributed to, with the call that they are in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guilty {
    /// The ranks to which the error is attributed.
    pub tasks: IdSet,
    /// The runtime's function, or the user's function outside of a runtime. Empty for ranks that the last sample does
    /// not have.
    pub call: String,
    /// The communicator of a collective operation; empty if unknown, and for other calls.
    pub communicator: String,
    /// The user's frame: `exchange () at halo.c:60`.
    pub place: String,
}

/// The ranks to blame. If no particular rank is to blame, the ranks that hold others up, or else the ranks between
/// which the error is.
pub(super) fn guilty(
    (samples, still, polls): (&[Probes], &[SamePlace], &BTreeMap<String, IdSet>),
    verdict: &Verdict,
    gatherings: &[CollectiveGroup],
) -> Vec<Guilty> {
    let named = match (verdict.suspects.is_empty(), verdict.step) {
        (false, _) => &verdict.suspects,
        (true, Step::HeldUp) => &verdict.held_up_by,
        (true, _) => &verdict.between,
    };
    let communicator = |tasks: &IdSet| {
        let known = gatherings.iter().find(|one| tasks.is_subset(&one.tasks));
        let known = known.map(|one| match &one.communicator {
            None => sdm_mpi::COMM_WORLD.to_owned(),
            Some(name) => name.clone(),
        });
        known.unwrap_or_default()
    };
    let mut list = Vec::new();
    let mut rest = named.clone();
    let known = still.iter().map(|group| SamePlace {
        tasks: group.tasks.intersection(named),
        wait: group.wait.clone(),
    });
    let known: Vec<SamePlace> = known.collect();
    let found = IdSet::union_all(known.iter().map(|group| &group.tasks));
    let others = groups(samples, &named.difference(&found));
    for group in known.into_iter().chain(others) {
        if group.tasks.is_empty() {
            continue;
        }
        rest.subtract(&group.tasks);
        let mut polls = polls.iter();
        let polled = polls.find(|(_, tasks)| group.tasks.is_subset(tasks));
        let polled = polled.map(|(call, _)| call);
        list.push(Guilty {
            communicator: communicator(&group.tasks),
            // A rank that polls was seen between two polls.
            call: match group.wait.kind {
                _ if polled.is_some() => polled.cloned().unwrap_or_default(),
                WaitKind::Running => group.wait.frame.function.clone(),
                _ => group.wait.call.clone(),
            },
            place: place(&group.wait.frame),
            tasks: group.tasks,
        });
    }
    if !rest.is_empty() {
        list.push(Guilty {
            tasks: rest,
            call: String::new(),
            communicator: String::new(),
            place: String::new(),
        });
    }
    list
}
