//! The choices of a seed: tree, network, kinds and rate of faults, user actions.

use std::time::Duration;

use sdm_core::ServerId;
use sdm_core::config::Config;
use sdm_core::topology::Topology;
use sdm_idset::{IdSet, TaskId};

use crate::fault_kinds::Fault;
use crate::rng::{Rng, mix};

/// The random parameters of one run. Times are in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Swarm {
    pub(crate) servers: u32,
    /// Number of tasks of each server: 1, or more as in node mode. If servers have different numbers of tasks, their
    /// maximum.
    pub(crate) tasks_each: u32,
    /// The first task of each server, and at the end the number of all tasks. A server has the tasks from its own
    /// entry up to the next one.
    pub(crate) first_tasks: Vec<u32>,
    pub(crate) topology: Topology,
    /// True if host names are so long that a plan is sent in several parts.
    pub(crate) long_names: bool,
    pub(crate) config: Config,
    /// Minimum and maximum time of bytes in transit.
    pub(crate) delay_us: (u64, u64),
    /// Of so many writes one is cut into pieces that arrive separately; 0 for none.
    pub(crate) cut_one_in: u64,
    /// Capacity of a pipe in bytes; a writer waits when it is full.
    pub(crate) pipe_bytes: usize,
    pub(crate) fault_weights: [u32; Fault::COUNT],
    /// The mean time between faults.
    pub(crate) fault_gap_us: u64,
    /// Duration of the phase with faults.
    pub(crate) safety_us: u64,
    /// The mean time between two actions of the user.
    pub(crate) user_gap_us: u64,
    /// The mean time between two spontaneous events.
    pub(crate) event_gap_us: u64,
    /// Maximum size of a bulk event, in bytes.
    pub(crate) bulk_bytes: u64,
    /// Maximum size of an answer, in bytes.
    pub(crate) answer_bytes: u64,
    /// True if the session itself fails: the master, the front-end or the link between them.
    pub(crate) session_dies: bool,
    /// True if the user ends the session during the phase with faults.
    pub(crate) ends_early: bool,
}

impl Swarm {
    pub(crate) fn draw(rng: &mut Rng, tasks: Option<u32>) -> Self {
        let tasks_each = rng.pick(&[1, 1, 1, 3]).unwrap_or(1);
        let servers = match tasks {
            Some(tasks) => tasks.max(1).div_ceil(tasks_each),
            None => u32::try_from(rng.skewed(1, 40)).unwrap_or(40),
        };
        let topology = match rng.below(6) {
            0 => Topology::Flat,
            1 => Topology::Kary(1 + u32::from(servers > 12)),
            2 => Topology::Kary(3),
            3 => Topology::ByHost(1 + u32::from(servers > 6)),
            _ => Topology::Binomial,
        };
        let delay_low = rng.skewed(10, 5_000);
        let calm = rng.one_in(10);
        Self {
            servers,
            tasks_each,
            first_tasks: (0..=servers).map(|server| server * tasks_each).collect(),
            topology,
            long_names: false,
            config: config(rng),
            delay_us: (delay_low, delay_low * rng.between(1, 30)),
            cut_one_in: rng.pick(&[0, 1, 3, 10]).unwrap_or(0),
            pipe_bytes: usize::try_from(rng.skewed(1 << 10, 1 << 18)).unwrap_or(1 << 10),
            fault_weights: if calm { [0; Fault::COUNT] } else { faults(rng) },
            fault_gap_us: rng.skewed(100_000, 10_000_000),
            safety_us: rng.skewed(2_000_000, 60_000_000),
            user_gap_us: rng.skewed(20_000, 3_000_000),
            event_gap_us: rng.skewed(5_000, 1_000_000),
            bulk_bytes: rng.skewed(1, 30_000),
            answer_bytes: if rng.one_in(8) {
                400_000
            } else {
                rng.skewed(1, 4_000)
            },
            session_dies: !calm && rng.one_in(8),
            ends_early: !calm && rng.one_in(10),
        }
    }

    /// Gives each server a random number of tasks, from 1 to a power of two of at most 32. Has no effect if servers
    /// have one task each.
    pub(crate) fn spread_tasks(&mut self, seed: u64) {
        if self.tasks_each == 1 {
            return;
        }
        self.tasks_each = 1 << (mix(seed) % 6);
        let mut next = 0;
        for (first, server) in self.first_tasks.iter_mut().zip(1..) {
            *first = next;
            let more = mix(seed ^ server) % u64::from(self.tasks_each);
            next += 1 + u32::try_from(more).unwrap_or(0);
        }
    }

    pub(crate) fn tasks(&self) -> u32 {
        self.first_tasks.last().copied().unwrap_or(0)
    }

    /// The tasks of a server.
    pub(crate) fn tasks_of(&self, server: ServerId) -> IdSet {
        let at = server.0 as usize;
        IdSet::from_range(self.first_tasks[at]..=self.first_tasks[at + 1] - 1)
    }

    /// The server of a task. For a task without a server it is the number after the last server.
    pub(crate) fn server_of(&self, task: TaskId) -> ServerId {
        let at = self.first_tasks.partition_point(|first| *first <= task.0);
        ServerId(u32::try_from(at - 1).unwrap_or(u32::MAX))
    }
}

fn config(rng: &mut Rng) -> Config {
    let ms = |value: u64| Duration::from_millis(value);
    let mut config = Config {
        event_window: ms(rng.below(20)),
        grace: ms(rng.between(50, 400)),
        partial: true,
        ..Config::default()
    };
    if rng.one_in(3) {
        config.ping_after = ms(rng.between(500, 2_000));
        config.pings_unanswered_max = 1 + u32::from(rng.one_in(2));
    }
    if rng.one_in(3) {
        config.bulk_window_bytes = u32::try_from(rng.skewed(1 << 12, 1 << 18)).unwrap_or(1 << 18);
    }
    if rng.one_in(5) {
        config.classes_max = 3;
    }
    config
}

/// Random weights of the kinds of faults. A run has only some of the kinds, so that rare combinations happen often.
fn faults(rng: &mut Rng) -> [u32; Fault::COUNT] {
    let mut weights = [0; Fault::COUNT];
    let quick_only = rng.one_in(2);
    for (weight, fault) in weights.iter_mut().zip(Fault::ALL) {
        if rng.one_in(2) && (fault.is_quick() || !quick_only) {
            *weight = u32::try_from(rng.between(1, 8)).unwrap_or(1);
        }
    }
    weights
}
