//! The simulated user, who gives commands, and tasks that emit spontaneous events.

use bytes::Bytes;
use sdm_core::message::{EndPolicy, Lane, SyncPolicy};
use sdm_core::node::Submission;
use sdm_core::{CommandId, ServerId};
use sdm_idset::{IdSet, TaskId};

use crate::spec::{RULE_SUM, Spec};
use crate::world::{World, WorldEvent};

/// Number of unfinished commands at which the user waits.
const UNFINISHED_MAX: usize = 40;

impl World {
    /// Performs a random action of the user, and schedules the next one.
    pub(crate) fn next_act(&mut self) {
        if !self.has_faults || self.is_over() {
            return;
        }
        let unfinished = self.ledger.incomplete();
        if self.rng.one_in(6) {
            if let Some(id) = self.rng.pick(&unfinished) {
                self.cancel(id);
            }
        } else if unfinished.len() < UNFINISHED_MAX {
            self.give_some_command();
        }
        let gap = self.rng.between(0, 2 * self.swarm.user_gap_us);
        self.at(self.now + gap, WorldEvent::User);
    }

    fn some_tasks(&mut self) -> IdSet {
        let count = self.swarm.tasks();
        match self.rng.below(8) {
            0..4 => IdSet::all_below(count),
            4 => IdSet::single(self.some_task()),
            5 => {
                let first = self.some_task().0;
                IdSet::from_range(first..=self.some_task().0.max(first))
            }
            // Some of these tasks are not in the session.
            6 => IdSet::from_range(count / 2..=count + 2),
            _ => {
                let tasks = (0..count).filter(|_| self.rng.one_in(2)).map(TaskId);
                let mut tasks: IdSet = tasks.collect();
                tasks.insert(self.some_task());
                tasks
            }
        }
    }

    fn some_task(&mut self) -> TaskId {
        let count = u64::from(self.swarm.tasks());
        TaskId(u32::try_from(self.rng.below(count)).unwrap_or(0))
    }

    fn small(&mut self, high: u64) -> u32 {
        u32::try_from(self.rng.skewed(1, high)).unwrap_or(1)
    }

    fn give_some_command(&mut self) {
        self.stdin_count += 1;
        let kind = self.rng.below(8);
        let mut spec = Spec {
            number: self.stdin_count,
            classes: if self.rng.one_in(2) {
                1
            } else {
                self.small(50)
            },
            answer_bytes: self.small(self.swarm.answer_bytes),
            // A task without a delay can answer at once.
            delay_us: if self.rng.one_in(3) {
                0
            } else {
                self.small(2_000_000)
            },
            hang_one_in: 0,
            fail_one_in: if self.rng.one_in(4) { self.small(8) } else { 0 },
            events: 0,
            sum: false,
            bulk: false,
        };
        let tasks = self.some_tasks();
        let time_out = SyncPolicy::TimeOut {
            ms: self.small(8_000),
        };
        let mut sync = time_out;
        let mut padding = 0;
        match kind {
            0 | 1 => {
                spec.hang_one_in = if self.rng.one_in(2) {
                    self.small(10)
                } else {
                    0
                }
            }
            2 => sync = SyncPolicy::WaitForAll,
            3 | 4 => {
                spec.sum = true;
                let all = [time_out, SyncPolicy::WaitForAll, SyncPolicy::DontWait];
                sync = self.rng.pick(&all).unwrap_or(time_out);
            }
            5 => {
                spec.bulk = true;
                sync = SyncPolicy::WaitForAll;
                padding = usize::try_from(self.rng.skewed(1, 30_000)).unwrap_or(1);
            }
            _ => {
                // A run, which is answered by a stop; sometimes only a cancel stops it.
                spec.events = self.small(5);
                spec.hang_one_in = if self.rng.one_in(2) {
                    self.small(10)
                } else {
                    0
                };
                sync = SyncPolicy::DontWait;
            }
        }
        self.give(spec, tasks, sync, padding);
    }

    /// Sends a command of the user. Returns its id; `None` if the front-end is gone.
    pub(crate) fn give(
        &mut self,
        spec: Spec,
        tasks: IdSet,
        sync: SyncPolicy,
        padding: usize,
    ) -> Option<CommandId> {
        let instant = self.instant(self.now);
        let over_by = match sync {
            SyncPolicy::TimeOut { ms } => {
                let grace = self.swarm.config.grace * self.height;
                let grace = u64::try_from(grace.as_micros()).unwrap_or(u64::MAX);
                Some(self.now + u64::from(ms) * 1_000 + grace + 1_000)
            }
            _ => None,
        };
        let submission = Submission {
            destination: tasks.clone(),
            lane: if spec.bulk { Lane::Bulk } else { Lane::Control },
            sync,
            rule: if spec.sum { RULE_SUM } else { 0 },
            rule_params: Bytes::new(),
            payload: spec.encode(padding),
        };
        let root = self.procs.get_mut(&ServerId::FRONT_END)?;
        let id = root.member.submit(instant, submission);
        self.log.note(
            self.now,
            format_args!("user: {id} {sync:?} to {tasks}: {spec:?}"),
        );
        self.ledger.open(id, &tasks, sync, Some(spec), over_by);
        self.drain(ServerId::FRONT_END);
        Some(id)
    }

    fn cancel(&mut self, id: CommandId) {
        let instant = self.instant(self.now);
        if let Some(root) = self.procs.get_mut(&ServerId::FRONT_END) {
            self.log.note(self.now, format_args!("user: cancel {id}"));
            self.ledger.cancel(id);
            root.member.cancel(instant, id);
            self.drain(ServerId::FRONT_END);
        }
    }

    /// Makes the user refuse or accept output.
    pub(crate) fn pause_delivery(&mut self, paused: bool) {
        let instant = self.instant(self.now);
        if let Some(root) = self.procs.get_mut(&ServerId::FRONT_END) {
            root.member.pause_delivery(instant, paused);
            self.drain(ServerId::FRONT_END);
        }
    }

    /// The user ends the session.
    pub(crate) fn finish(&mut self) {
        let instant = self.instant(self.now);
        if let Some(root) = self.procs.get_mut(&ServerId::FRONT_END) {
            self.log.note(self.now, format_args!("user: the end"));
            root.was_told_to_end = true;
            root.member.finish(instant, EndPolicy::KillStarted);
            self.drain(ServerId::FRONT_END);
        }
    }

    /// Lets some task emit an event, and schedules the next one.
    pub(crate) fn schedule_event(&mut self) {
        if !self.has_faults || self.is_over() {
            return;
        }
        let lane = if self.rng.one_in(2) {
            Lane::Bulk
        } else {
            Lane::Control
        };
        let bytes_max = if lane == Lane::Bulk {
            self.swarm.bulk_bytes
        } else {
            100
        };
        let bytes = usize::try_from(self.rng.below(bytes_max + 1)).unwrap_or(0);
        if self.rng.one_in(10) {
            for task in &IdSet::all_below(self.swarm.tasks()) {
                self.emit_event(lane, task, bytes);
            }
        } else {
            let task = self.some_task();
            self.emit_event(lane, task, bytes);
        }
        let gap = self.rng.between(0, 2 * self.swarm.event_gap_us);
        self.at(self.now + gap, WorldEvent::Chatter);
    }
}
