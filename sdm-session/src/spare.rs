//! Numbers for tasks that programs start themselves (`MPI_Comm_spawn`): the tree knows them from the beginning, so that whoever
//! becomes one is reached like all others; nobody else hears of those that nobody has become.

use std::collections::BTreeSet;

use sdm_core::message::{PlanEntry, ReachChange};
use sdm_core::node::Delivery;
use sdm_debug::Event;
use sdm_idset::IdSet;

use super::api::{SessionEvent, SessionMember};

/// How many each host has. As a set they are one range, however many they are.
const EACH_HOST: u32 = 1 << 16;

/// Gives the first server of each host some of these numbers, behind those of all tasks.
pub(super) fn make_room(servers: &mut [PlanEntry]) {
    let mut next = IdSet::union_all(servers.iter().map(|it| &it.tasks))
        .last()
        .map_or(0, |last| last.0 + 1);
    // As a launcher would number them: where the first task is comes first.
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

/// The numbers of a session's tasks that nobody has become.
#[derive(Default)]
pub(super) struct Spare(IdSet);

impl Spare {
    /// Takes them out of what these members are said to have; the `known` tasks are there from the beginning.
    pub(super) fn take_out_of(members: &mut [SessionMember], known: &IdSet) -> Self {
        let all = IdSet::union_all(members.iter().map(|it| &it.tasks));
        for member in members {
            member.tasks.intersect_with(known);
        }
        Self(all.difference(known))
    }

    /// What is delivered, without those; nothing where it is about nobody else.
    pub(super) fn leave_out(&self, delivery: Delivery) -> Option<Delivery> {
        match delivery {
            Delivery::Reach(change) if !self.0.is_empty() => {
                let tasks = change.tasks.difference(&self.0);
                (!tasks.is_empty()).then(|| Delivery::Reach(ReachChange { tasks, ..change }))
            }
            other => Some(other),
        }
    }

    /// The tasks that have come into being, as this says.
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
