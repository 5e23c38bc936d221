//! One run: a phase with faults, then repair and recovery, then the end.

use std::collections::BTreeSet;

use sdm_core::message::{Lane, SyncPolicy};
use sdm_core::{CommandId, ServerId};
use sdm_idset::IdSet;

use crate::ledger::{Checked, Violation, violated};
use crate::net::Who;
use crate::spec::Spec;
use crate::world::{World, WorldEvent};

const SECOND: u64 = 1_000_000;
/// Time that recovery may take, in microseconds: silence is detected, lost tasks are waited for, orphans give up.
const SETTLE_US: u64 = 90 * SECOND;
/// Time that commands to the survivors may take, in microseconds.
const ANSWER_US: u64 = 40 * SECOND;
/// Time that the end of the session may take, in microseconds.
const END_US: u64 = 60 * SECOND;

/// Options of a run beside the seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of tasks; `None` to draw it from the seed.
    pub tasks: Option<u32>,
    /// Number of log lines to keep.
    pub log_lines: usize,
}

/// The result of a run without a violation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Hash of the log, which is equal for equal seed, options and code.
    pub hash: u64,
    /// Number of lines in the log.
    pub lines: u64,
    /// Number of servers at the start, and after the recovery.
    pub servers: (u32, u32),
    /// Maximum number of queued bytes in one member.
    pub peak_queue_bytes: usize,
}

/// The result of a run with a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The first violation.
    pub violation: Violation,
    /// The last lines of the log, as many as requested.
    pub lines: Vec<String>,
}

/// Runs one seed.
///
/// # Errors
/// The first law that was violated.
pub fn run(seed: u64, options: Options) -> Result<Report, Box<Broken>> {
    let mut world = World::new(seed, options.tasks, options.log_lines);
    let mut left = 0;
    let result = world.live(&mut left);
    world.check(result);
    if world.violation.is_none() {
        let shown = world.terminals.finish(world.now, &mut world.log);
        world.check(shown);
    }
    match world.violation.take() {
        None => Ok(Report {
            hash: world.log.hash(),
            lines: world.log.count(),
            servers: (world.swarm.servers, left),
            peak_queue_bytes: world.peak_queue_bytes,
        }),
        Some(violation) => Err(Box::new(Broken {
            violation,
            lines: world.log.take_lines(),
        })),
    }
}

impl World {
    fn live(&mut self, left: &mut u32) -> Checked {
        let safety = self.swarm.safety_us;
        self.at(0, WorldEvent::User);
        self.at(0, WorldEvent::Chatter);
        let first = self.rng.below(2 * self.swarm.fault_gap_us);
        self.at(first, WorldEvent::Fault);
        if self.swarm.session_dies {
            let when = self.rng.below(safety);
            self.at(when, WorldEvent::StrikeTop);
        }
        if self.swarm.ends_early {
            let when = self.rng.below(safety);
            self.run_until(when);
            self.finish();
        }
        self.run_until(safety);
        self.heal();
        self.run_until(self.now + SETTLE_US);
        *left = u32::try_from(self.servers().len()).unwrap_or(u32::MAX);
        if self.violation.is_some() {
            return Ok(());
        }
        if self.top_is_struck && !self.has_begun() {
            // The user abandons a session whose master never arrived.
            self.finish();
        }
        self.check_commands_over()?;
        if self.swarm.ends_early || self.top_is_struck {
            return self.check_gone();
        }
        self.check_tree()?;
        self.check_survivors_answer()?;
        self.check_gone()
    }

    /// True once the master has joined the front-end, and also if the front-end is gone.
    pub(crate) fn has_begun(&self) -> bool {
        let root = self.procs.get(&ServerId::FRONT_END);
        root.is_none_or(|root| {
            root.member
                .node()
                .children()
                .all(|(_, link)| link.is_some())
        })
    }

    fn check_commands_over(&mut self) -> Checked {
        if self.is_over() {
            return Ok(());
        }
        let Some(&id) = self.ledger.incomplete().first() else {
            return Ok(());
        };
        for proc in self.procs.values() {
            let text = proc.member.node().describe(id);
            self.log.note(self.now, format_args!("{text}"));
        }
        violated("not complete", self.ledger.describe(id))
    }

    /// Ends the session if it still runs, and checks that every process then ends.
    fn check_gone(&mut self) -> Checked {
        if !self.is_over() {
            self.finish();
        }
        // A member that was never reached waits until its deadline.
        self.run_until(self.now.max(self.start_deadline) + END_US);
        let left: Vec<ServerId> = self.procs.keys().copied().collect();
        if left.is_empty() {
            return Ok(());
        }
        violated("does not end", format!("{left:?} still run"))
    }

    /// Checks that each living member has exactly one parent that knows it, and that the root knows which tasks live
    /// and which are lost.
    fn check_tree(&mut self) -> Checked {
        let mut servers = self
            .procs
            .iter()
            .filter(|(id, _)| **id != ServerId::FRONT_END);
        if servers.any(|(_, proc)| proc.member.node().parent_link().is_none()) {
            // A member that was abandoned before it was reached waits until its deadline.
            self.run_until(self.now.max(self.start_deadline) + END_US);
        }
        let mut held = BTreeSet::new();
        for (parent, proc) in &self.procs {
            for (child, link) in proc.member.node().children() {
                let Some(link) = link else {
                    let text = format!("{parent} still looks for {child}");
                    return violated("tree after healing", text);
                };
                let seen = self.peer_of(*parent, link).map(|(_, who)| who);
                let below = self.procs.get(&child).and_then(|below| {
                    let up = below.member.node().parent_link()?;
                    Some(self.peer_of(child, up)?.1)
                });
                let right = seen == Some(Who::Server(child)) && below == Some(Who::Server(*parent));
                if !right || !held.insert(child) {
                    let text = format!("{parent} holds {child}, whose parent is {below:?}");
                    return violated("one parent at a time", text);
                }
            }
        }
        for id in self.procs.keys().filter(|id| **id != ServerId::FRONT_END) {
            if !held.contains(id) {
                return violated("tree after healing", format!("nobody holds {id}"));
            }
        }
        let living = self.living_tasks();
        let dead = IdSet::all_below(self.swarm.tasks()).difference(&living);
        let root = self
            .procs
            .get(&ServerId::FRONT_END)
            .expect("the session is not over");
        let reach = root.member.node().reach();
        if reach != living {
            let text = format!("the root reaches {reach}, {living} live");
            return violated("reach after healing", text);
        }
        let told = (self.ledger.unreachable(), self.ledger.lost().clone());
        if told != (dead.clone(), dead.clone()) {
            let text = format!(
                "{dead} are dead, told: lost {}, unreachable {}",
                told.1, told.0
            );
            return violated("reach after healing", text);
        }
        Ok(())
    }

    fn check_survivors_answer(&mut self) -> Checked {
        let all = IdSet::all_below(self.swarm.tasks());
        let living = self.living_tasks();
        let mut given: Vec<CommandId> = Vec::new();
        for (nth, sync) in [
            SyncPolicy::TimeOut { ms: 20_000 },
            SyncPolicy::WaitForAll,
            SyncPolicy::DontWait,
        ]
        .into_iter()
        .enumerate()
        {
            let spec = Spec {
                number: 1_000_000 + u32::try_from(nth).unwrap_or(0),
                classes: 2,
                answer_bytes: 30,
                delay_us: 500_000,
                hang_one_in: 0,
                fail_one_in: 0,
                events: 2,
                sum: nth == 1,
                bulk: false,
            };
            given.extend(self.give(spec, all.clone(), sync, 0));
        }
        for task in &living {
            self.emit_event(Lane::Bulk, task, 100);
        }
        let gaps = self.ledger.gaps;
        self.run_until(self.now + ANSWER_US);
        if self.violation.is_some() {
            return Ok(());
        }
        self.check_commands_over()?;
        for id in given {
            if self.ledger.answered(id) != living {
                let text = format!("{living} live; {}", self.ledger.describe(id));
                return violated("survivors answer", text);
            }
        }
        for task in &living {
            let (seen, said) = self.ledger.bulk_progress(task);
            if seen != said {
                let text = format!("task {task}: bulk event {seen} of {said} was the last to come");
                return violated("survivors are heard", text);
            }
        }
        let calm = self.swarm.fault_weights.iter().all(|weight| *weight == 0);
        if calm && gaps > 0 {
            return violated("events", format!("{gaps} were lost without any fault"));
        }
        Ok(())
    }
}
