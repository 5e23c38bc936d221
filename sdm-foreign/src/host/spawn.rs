//! Jobs that processes and tools start. The node that receives the request leads. First each node of the new job
//! reserves task numbers for its processes. Then all nodes receive the job's description, and it is started once
//! all of them have it.

use std::collections::{BTreeMap, BTreeSet};

use sdm_foreign::peer_messages::{Note, Question, Reply};
use sdm_foreign::wire::frame;
use sdm_foreign::{FromHost, HostProgram, Share, SpawnedJob};
use sdm_idset::IdSet;

use super::peer_requests::Requester;
use super::placement::{Placed, PlacingError, SpawnSpec, place};
use super::request::{Done, SpawnCallback};
use super::{Host, NOT_FOUND, OUT_OF_RESOURCE, SUCCESS, UNREACHABLE};
use crate::ffi::Proc;

/// Status of libpmix for a program that cannot be started.
const JOB_FAILED_TO_START: i32 = -181;
const SIGKILL: i32 = nix::libc::SIGKILL;
/// Maximum number of finished starts that are remembered, in case a node asks again for one of them.
const OVER_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Each node reserves task numbers.
    Reserving,
    /// All nodes receive the job's description.
    Telling,
    Starting,
}

/// A job that is being started from here.
struct Spawn {
    done: Done<SpawnCallback>,
    by: Option<u32>,
    wish: SpawnSpec,
    plan: Vec<Placed>,
    /// The first task number that each node has reserved, by node.
    firsts: BTreeMap<u32, u32>,
    job: Option<SpawnedJob>,
    phase: Phase,
    /// The nodes that have not answered.
    waiting: BTreeSet<u32>,
    /// Status of the first failure; `None` while there is none.
    failed: Option<i32>,
}

/// The origin of a request to start this node's processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    /// A job that is being started from here.
    Here(u64),
    /// Another node: a rank of that node, which gets the answer, and the number of its message.
    Node(u32, u64),
}

/// Processes that a server of this node is starting.
struct Start {
    starter: Starter,
    namespace: String,
    peer: u64,
}

/// Jobs that are being started.
#[derive(Default)]
pub(crate) struct Spawns {
    next: u64,
    open: BTreeMap<u64, Spawn>,
    starts: BTreeMap<u64, Start>,
    /// Status of finished starts for other nodes, by namespace.
    over: BTreeMap<String, i32>,
}

impl Host {
    /// Starts programs as one job, on request of a process or a tool.
    pub(super) fn spawn(&mut self, by: &Proc, wish: SpawnSpec, done: Done<SpawnCallback>) {
        let by = self.serving.as_ref().and_then(|it| it.task_of(by));
        if by.is_none() {
            // The requester is a tool, which gets the new processes' output.
            self.want_output();
        }
        let plan = match self.plan(&wish) {
            Ok(plan) if !plan.is_empty() => plan,
            Ok(_) => return done.answer(JOB_FAILED_TO_START, ""),
            Err(error) => {
                if let Some(rank) = by {
                    let bytes =
                        format!("cannot start the requested programs: {error}\n").into_bytes();
                    self.tell_all(&FromHost::Log {
                        rank: Some(rank),
                        is_error: true,
                        bytes,
                    });
                }
                return done.answer(NOT_FOUND, "");
            }
        };
        let number = self.spawns.next;
        self.spawns.next += 1;
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for placed in &plan {
            let count = counts.entry(placed.node).or_default();
            *count = count.saturating_add(placed.count);
        }
        let spawn = Spawn {
            done,
            by,
            wish,
            plan,
            firsts: BTreeMap::new(),
            job: None,
            phase: Phase::Reserving,
            waiting: counts.keys().copied().collect(),
            failed: None,
        };
        self.spawns.open.insert(number, spawn);
        for (node, count) in counts {
            if Some(node) == self.own_node() {
                let first = self.reserve(count);
                self.hear_of_spawn(number, node, Some(Reply::Reserved { first }));
            } else {
                self.ask_node(number, node, Question::Reserve { count });
            }
        }
    }

    /// The placement of a requested job's processes on nodes.
    fn plan(&self, wish: &SpawnSpec) -> Result<Vec<Placed>, PlacingError> {
        let Some(serving) = &self.serving else {
            return Ok(Vec::new());
        };
        let job = &serving.job;
        let target = wish.target.as_ref();
        let all = target.map_or(&*job.namespace, |(namespace, _)| namespace);
        let all: Vec<u32> = serving.nodes_of(all).into_iter().collect();
        let names: Vec<&str> = job.nodes.iter().map(|node| node.name.as_str()).collect();
        let wanted = wish.programs.iter();
        let wanted: Vec<_> = wanted.map(|(it, at)| (it.count, at.clone())).collect();
        place(&names, job.own, &all, &wanted)
    }

    fn own_node(&self) -> Option<u32> {
        self.serving.as_ref().map(|it| it.job.own)
    }

    fn ask_node(&mut self, number: u64, node: u32, question: Question) {
        let nodes = self.serving.as_ref().map(|it| &it.job.nodes);
        let rank = nodes.and_then(|it| it.get(node as usize)?.ranks.first());
        let asker = Requester::Spawn(number, node);
        let is_asked = rank.is_some_and(|rank| self.try_ask(rank.0, question, asker));
        if !is_asked {
            self.hear_of_spawn(number, node, None);
        }
    }

    /// Reserves consecutive task numbers for processes of this node. Returns the first one; `None` if no server has
    /// enough free numbers.
    pub(super) fn reserve(&mut self, count: u32) -> Option<u32> {
        self.peers.iter_mut().find_map(|peer| {
            let first = peer.spare.first()?.0;
            let tasks = IdSet::from_range(first..=first.checked_add(count.checked_sub(1)?)?);
            if !tasks.is_subset(&peer.spare) {
                return None;
            }
            peer.spare.subtract(&tasks);
            if let Some(ranks) = &mut peer.ranks {
                ranks.union_with(&tasks);
            }
            Some(first)
        })
    }

    /// Handles the answer of a node to a request of the present phase; `None` if the node cannot be asked.
    pub(super) fn hear_of_spawn(&mut self, number: u64, node: u32, reply: Option<Reply>) {
        let Some(spawn) = self.spawns.open.get_mut(&number) else {
            return;
        };
        if !spawn.waiting.remove(&node) {
            return;
        }
        let is_on_it = spawn.plan.iter().any(|it| it.node == node);
        let failed = match (spawn.phase, reply) {
            (Phase::Reserving, Some(Reply::Reserved { first: Some(first) })) => {
                spawn.firsts.insert(node, first);
                None
            }
            (Phase::Reserving, Some(Reply::Reserved { first: None })) => Some(OUT_OF_RESOURCE),
            // A lost node without processes of the new job does not matter to it.
            (Phase::Telling, _) if !is_on_it => None,
            (Phase::Telling | Phase::Starting, Some(Reply::Done { status })) => {
                (status != SUCCESS).then_some(status)
            }
            _ => Some(UNREACHABLE),
        };
        spawn.failed = spawn.failed.or(failed);
        self.go_on_spawning(number);
    }

    /// Begins the next phase once all nodes have answered.
    fn go_on_spawning(&mut self, number: u64) {
        let open = &self.spawns.open;
        let Some(spawn) = open.get(&number).filter(|it| it.waiting.is_empty()) else {
            return;
        };
        match (spawn.failed, spawn.phase) {
            (Some(status), _) => self.fail_spawn(number, status),
            (None, Phase::Reserving) => self.tell_of_spawn(number),
            (None, Phase::Telling) => self.start_all(number),
            (None, Phase::Starting) => {
                if let Some(spawn) = self.spawns.open.remove(&number) {
                    let namespace = spawn.job.map(|it| it.namespace);
                    spawn.done.answer(SUCCESS, &namespace.unwrap_or_default());
                }
            }
        }
    }

    /// Ends the start of a job that has failed on some node, and kills its processes that already run.
    fn fail_spawn(&mut self, number: u64, status: i32) {
        let Some(spawn) = self.spawns.open.remove(&number) else {
            return;
        };
        if let (Phase::Starting, Some(job)) = (spawn.phase, &spawn.job) {
            self.signal_all(&job.tasks(), SIGKILL);
        }
        spawn.done.answer(status, "");
    }

    /// Registers the job here, and sends its description to all other nodes.
    fn tell_of_spawn(&mut self, number: u64) {
        let (Some(serving), Some(spawn)) = (&mut self.serving, self.spawns.open.get_mut(&number))
        else {
            return;
        };
        let job = SpawnedJob {
            namespace: format!("{}.{}.{number}", serving.job.namespace, serving.job.own),
            shares: shares(&spawn.plan, &spawn.firsts),
            parent: spawn.by,
            is_held: spawn.wish.is_held,
            target: spawn.wish.target.clone(),
        };
        spawn.phase = Phase::Telling;
        if let Err(error) = serving.adopt(&job) {
            crate::messages::say(&format!("{error:#}"));
            return self.fail_spawn(number, JOB_FAILED_TO_START);
        }
        let others = serving.nodes_elsewhere();
        spawn.waiting = others.iter().copied().collect();
        spawn.job = Some(job.clone());
        for node in others {
            self.ask_node(number, node, Question::Know(job.clone()));
        }
        self.go_on_spawning(number);
    }

    fn start_all(&mut self, number: u64) {
        let Some(spawn) = self.spawns.open.get_mut(&number) else {
            return;
        };
        let Some(job) = spawn.job.clone() else {
            return;
        };
        spawn.phase = Phase::Starting;
        spawn.waiting = job.nodes();
        let by = spawn.by;
        let mut programs: BTreeMap<u32, Vec<HostProgram>> = BTreeMap::new();
        for placed in &spawn.plan {
            let mut program = spawn.wish.programs[placed.program].0.clone();
            program.count = placed.count;
            programs.entry(placed.node).or_default().push(program);
        }
        for (node, programs) in programs {
            if Some(node) == self.own_node() {
                self.start(Starter::Here(number), &job.namespace, by, programs);
            } else {
                let question = Question::Start {
                    namespace: job.namespace.clone(),
                    by,
                    programs,
                };
                self.ask_node(number, node, question);
            }
        }
    }

    /// Handles the request of another node to start this node's processes of a job.
    pub(super) fn start_for(
        &mut self,
        (to, number): (u32, u64),
        namespace: &str,
        by: Option<u32>,
        programs: Vec<HostProgram>,
    ) {
        let starter = Starter::Node(to, number);
        if let Some(status) = self.spawns.over.get(namespace) {
            let reply = Reply::Done { status: *status };
            return self.send_letter((to, number, Note::Reply(reply)));
        }
        // A question that is not answered yet may come again.
        if !self.spawns.starts.values().any(|it| it.starter == starter) {
            self.start(starter, namespace, by, programs);
        }
    }

    /// Makes a server of this node start its processes of a job.
    fn start(
        &mut self,
        starter: Starter,
        namespace: &str,
        by: Option<u32>,
        programs: Vec<HostProgram>,
    ) {
        let number = self.spawns.next;
        self.spawns.next += 1;
        let message = self.message(number, namespace, by, programs);
        let tasks = match &message {
            Ok(FromHost::Spawn { tasks, .. }) => tasks.clone(),
            _ => IdSet::new(),
        };
        let peer = self.peers.iter_mut().find(|it| it.has_any(&tasks));
        let start = Start {
            starter,
            namespace: namespace.to_owned(),
            peer: peer.as_ref().map_or(u64::MAX, |it| it.id),
        };
        self.spawns.starts.insert(number, start);
        match (message, peer) {
            (Ok(message), Some(peer)) => {
                if !peer.send_all(&[message]) {
                    let id = peer.id;
                    self.forget(id);
                }
            }
            (Err(error), _) => {
                crate::messages::say(&format!("{error:#}"));
                self.end_spawn(number, false);
            }
            (Ok(_), None) => self.end_spawn(number, false),
        }
    }

    /// The message to a server with the processes that it is to start.
    fn message(
        &self,
        number: u64,
        namespace: &str,
        by: Option<u32>,
        programs: Vec<HostProgram>,
    ) -> anyhow::Result<FromHost> {
        let none = || anyhow::anyhow!("the spawned job {namespace} is unknown");
        let serving = self.serving.as_ref().ok_or_else(none)?;
        let mut known = serving.offspring.iter();
        let job = known.find(|it| it.namespace == namespace);
        let job = job.ok_or_else(none)?;
        let message = FromHost::Spawn {
            number,
            by,
            tasks: job.tasks_on(serving.job.own),
            ranks: job.ranks_on(serving.job.own),
            size: job.count(),
            programs,
            environment: serving.environment_of(job)?,
        };
        frame(&message)?;
        Ok(message)
    }

    /// Handles the result of a start by a server of this node: all programs run, or the start has failed.
    pub(super) fn end_spawn(&mut self, number: u64, is_started: bool) {
        let Some(start) = self.spawns.starts.remove(&number) else {
            return;
        };
        let status = if is_started {
            SUCCESS
        } else {
            JOB_FAILED_TO_START
        };
        let reply = Reply::Done { status };
        match start.starter {
            Starter::Here(spawn) => {
                if let Some(own) = self.own_node() {
                    self.hear_of_spawn(spawn, own, Some(reply));
                }
            }
            Starter::Node(to, letter) => {
                let over = &mut self.spawns.over;
                while over.len() >= OVER_MAX {
                    over.pop_first();
                }
                over.insert(start.namespace, status);
                self.send_letter((to, letter, Note::Reply(reply)));
            }
        }
    }

    /// Fails the starts that a disconnected server was to make.
    pub(super) fn forget_starter(&mut self, peer: u64) {
        let starts = self.spawns.starts.iter();
        let its = starts.filter(|(_, it)| it.peer == peer);
        let its: Vec<u64> = its.map(|(number, _)| *number).collect();
        for number in its {
            self.end_spawn(number, false);
        }
    }

    /// Registers a job that is about to be started from another node. Returns the status for the answer.
    pub(super) fn know(&mut self, job: &SpawnedJob) -> i32 {
        let Some(serving) = &mut self.serving else {
            return UNREACHABLE;
        };
        if serving.offspring.contains(job) {
            return SUCCESS;
        }
        match serving.adopt(job) {
            Ok(()) => SUCCESS,
            Err(error) => {
                crate::messages::say(&format!("{error:#}"));
                UNREACHABLE
            }
        }
    }
}

/// The job's processes with their task numbers, from the numbers that each node has reserved.
fn shares(plan: &[Placed], firsts: &BTreeMap<u32, u32>) -> Vec<Share> {
    let mut next = firsts.clone();
    let share = |placed: &Placed| {
        let next = next.get_mut(&placed.node)?;
        let first = *next;
        *next = first.saturating_add(placed.count);
        Some(Share {
            node: placed.node,
            first,
            count: placed.count,
        })
    };
    plan.iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spawned_processes_are_numbered_consecutively_per_node() {
        let placed = |program, node, count| Placed {
            program,
            node,
            count,
        };
        let plan = [placed(0, 0, 2), placed(0, 1, 1), placed(1, 0, 3)];
        let shares = shares(&plan, &BTreeMap::from([(0, 100), (1, 500)]));
        let told: Vec<_> = shares
            .iter()
            .map(|it| (it.node, it.first, it.count))
            .collect();
        assert_eq!(told, [(0, 100, 2), (1, 500, 1), (0, 102, 3)]);
    }
}
