//! Reserved task numbers for processes that programs spawn (`MPI_Comm_spawn`). The tree knows the numbers
//! from the beginning, so that a spawned process is reached like all others. The front-end does not see
//! unused numbers.

use std::collections::BTreeSet;

use sdm_core::message::{PlanEntry, ReachChange};
use sdm_core::node::Delivery;
use sdm_debug::Event;
use sdm_idset::IdSet;

use super::api::{SessionEvent, SessionMember};

/// Number of task numbers reserved per host. The numbers are consecutive, so that a set stores them as one range.
const EACH_HOST: u32 = 1 << 16;

/// Assigns reserved numbers to the first server of each host, after the numbers of all tasks.
pub(super) fn make_room(servers: &mut [PlanEntry]) {
    let mut next = IdSet::union_all(servers.iter().map(|it| &it.tasks))
        .last()
        .map_or(0, |last| last.0 + 1);
    // In the order of a launcher: by the first task of each host.
    servers.sort_by_key(|it| it.tasks.first());
    let mut hosts = BTreeSet::new();
    for server in servers.iter_mut().filter(|it| !it.tasks.is_empty()) {
        if hosts.insert(server.host.clone())
            && let Some(end) = next.checked_add(EACH_HOST)
        {
            server.tasks.union_with(&IdSet::from_range(next..=end - 1));
            next = end;
        }
    }
    servers.sort_by_key(|it| it.server);
}

/// The reserved task numbers that are unused.
#[derive(Default)]
pub(super) struct Spare(IdSet);

impl Spare {
    /// Removes reserved numbers from these members; the `known` tasks exist from the beginning.
    pub(super) fn take_out_of(members: &mut [SessionMember], known: &IdSet) -> Self {
        let all = IdSet::union_all(members.iter().map(|it| &it.tasks));
        for member in members {
            member.tasks.intersect_with(known);
        }
        Self(all.difference(known))
    }

    /// Removes the reserved numbers from the tasks of a change of reachability; `None` if no task remains. Other
    /// deliveries stay unchanged.
    pub(super) fn leave_out(&self, delivery: Delivery) -> Option<Delivery> {
        match delivery {
            Delivery::Reach(change) if !self.0.is_empty() => {
                let tasks = change.tasks.difference(&self.0);
                (!tasks.is_empty()).then(|| Delivery::Reach(ReachChange { tasks, ..change }))
            }
            other => Some(other),
        }
    }

    /// The spawned tasks that an event announces. Their numbers are no longer reserved.
    pub(super) fn joined(&mut self, event: &SessionEvent) -> IdSet {
        let SessionEvent::Events(events) = event else {
            return IdSet::new();
        };
        let joined = events.iter();
        let joined = joined.filter(|(_, event)| matches!(event, Event::Joined(_)));
        let joined = IdSet::union_all(joined.map(|(tasks, _)| tasks)).intersection(&self.0);
        self.0.subtract(&joined);
        joined
    }
}
