//! Monitoring and control of processes for tools and other processes: output, input, signals, events, and ends of
//! jobs. Peer messages for other nodes have no answer here: one is lost if its connection breaks.

use std::collections::{BTreeMap, BTreeSet};

use sdm_foreign::FromHost;
use sdm_foreign::peer_messages::{Note, PeerEvent, Question};
use sdm_idset::{IdSet, TaskId};

use super::barrier::{BarrierWaiter, Purpose};
use super::request::{
    Done, GroupCall, InfoCallback, Known, OpCallback, Participants, Request, Waking,
};
use super::{Host, NOT_SUPPORTED, SUCCESS, Serving, UNREACHABLE};
use crate::ffi::{Info, Proc, TYPE_PROC, TYPE_STATUS};

/// Event code of PMIx: a job has ended.
const JOB_ENDED: i32 = -145;
/// Event code of PMIx: a process waits in `PMIx_Init` for a debugger.
const READY_FOR_DEBUG: i32 = -58;
/// Event ranges of PMIx: the resource manager alone, and all processes.
const RANGE_HOST: u8 = 1;
const RANGE_GLOBAL: u8 = 5;
/// Rank value of PMIx that stands for all ranks of a job.
const RANK_WILDCARD: u32 = u32::MAX - 1;
/// Size of one piece of output or input in a peer message, in bytes.
const PIECE_BYTES: usize = 32 << 10;

/// Ended processes and jobs, and the nodes whose tools read output.
#[derive(Default)]
pub(crate) struct Steering {
    /// True once a tool of any node has asked for the output of processes.
    wants_output: bool,
    /// A rank of each other node with a tool that has asked for output.
    readers: BTreeSet<u32>,
    /// The tasks of this node that have ended.
    ended: IdSet,
    /// For each job its first exit status that was not 0; 0 while there is none.
    statuses: BTreeMap<String, i32>,
    /// Jobs whose end on this node has been reported.
    told: BTreeSet<String>,
    /// For each job the nodes on which it has ended. Only the node of the job's first task collects them.
    ended_at: BTreeMap<String, BTreeSet<u32>>,
    /// The tasks of this node that have finalized libpmix.
    finalized: IdSet,
    /// The jobs that were ended here because some of their processes never connected or left without finalizing.
    given_up: BTreeSet<String>,
}

impl Steering {
    /// The ended tasks among these, and the job's exit status: 0 while none is known.
    pub(super) fn ended_of(&self, namespace: &str, tasks: &IdSet) -> (IdSet, i32) {
        let status = self.statuses.get(namespace).copied().unwrap_or(0);
        (self.ended.intersection(tasks), status)
    }

    /// True once a task of this node has ended.
    pub(super) fn has_anybody_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Records that a process has connected to libpmix.
    pub(super) fn begin(&mut self, task: u32) {
        self.finalized.remove(TaskId(task));
    }

    /// Records that a process has finalized libpmix.
    pub(super) fn finalize(&mut self, task: u32) {
        self.finalized.insert(TaskId(task));
    }

    /// True for a process that has finalized libpmix and not connected again.
    pub(super) fn has_finalized(&self, task: TaskId) -> bool {
        self.finalized.contains(task)
    }

    /// Records that a job is ended because of one of its processes; true only the first time for a job.
    pub(super) fn give_up(&mut self, namespace: &str) -> bool {
        self.given_up.insert(namespace.to_owned())
    }
}

impl Host {
    /// Handles the requests of tools and processes for monitoring and control, their events, and their groups.
    pub(super) fn steer(&mut self, request: Request) {
        match request {
            Request::Pull => self.want_output(),
            Request::Push { among, bytes, done } => self.push(&among, &bytes, done),
            Request::Control {
                among,
                signal,
                done,
            } => self.control(&among, signal, done),
            Request::Notify(told) => {
                if told.code == READY_FOR_DEBUG && told.range == RANGE_HOST {
                    // The receivers of this event are tools.
                    self.notify(&PeerEvent {
                        range: RANGE_GLOBAL,
                        ..told.clone()
                    });
                }
                self.tell_elsewhere(&Question::PeerEvent(told));
            }
            Request::Group(call) => self.group(call),
            _ => {}
        }
    }

    /// Handles a tool's request for the output of the processes of all nodes.
    pub(super) fn want_output(&mut self) {
        if !self.steering.wants_output {
            self.begin_output();
            let Some(own) = self.serving.as_ref().and_then(Serving::first_own) else {
                return;
            };
            self.tell_elsewhere(&Question::WantOutput(own));
        }
    }

    /// Makes the servers of this node report the output of their processes.
    fn begin_output(&mut self) {
        self.steering.wants_output = true;
        self.tell_all(&FromHost::WantOutput);
    }

    /// The message that asks a newly connected server for the output of its processes; `None` if no tool has
    /// requested output.
    pub(super) fn wanted_of_new(&self) -> Option<FromHost> {
        self.steering.wants_output.then_some(FromHost::WantOutput)
    }

    /// Delivers output of a process of this node to the tools that have requested output, on all nodes.
    pub(super) fn print(&mut self, task: u32, is_error: bool, bytes: &[u8]) {
        self.deliver(task, is_error, bytes);
        let readers: Vec<u32> = self.steering.readers.iter().copied().collect();
        for to in readers {
            for piece in bytes.chunks(PIECE_BYTES) {
                let question = Question::Printed {
                    task,
                    is_error,
                    bytes: piece.to_vec(),
                };
                self.send_letter((to, 0, Note::Question(question)));
            }
        }
    }

    fn deliver(&self, task: u32, is_error: bool, bytes: &[u8]) {
        if let Some(serving) = &self.serving {
            let source = serving.process_of(task);
            let delivered = serving.library.deliver(source, is_error, bytes.to_vec());
            complain_of(delivered);
        }
    }

    fn push(&mut self, among: &Participants, bytes: &[u8], done: Done<OpCallback>) {
        let Some(tasks) = self.serving.as_ref().and_then(|it| it.tasks_among(among)) else {
            return done.answer(UNREACHABLE);
        };
        let pieces: Vec<&[u8]> = match bytes {
            [] => vec![&[]],
            bytes => bytes.chunks(PIECE_BYTES).collect(),
        };
        for piece in pieces {
            let (tasks, bytes) = (tasks.clone(), piece.to_vec());
            self.feed(&tasks, &bytes);
            self.tell_elsewhere(&Question::Input { tasks, bytes });
        }
        done.answer(SUCCESS);
    }

    /// Sends standard input to processes of this node. No bytes close the input.
    fn feed(&mut self, tasks: &IdSet, bytes: &[u8]) {
        self.tell_all(&FromHost::Input {
            tasks: tasks.clone(),
            bytes: bytes.to_vec(),
        });
    }

    fn control(&mut self, among: &Participants, signal: Option<i32>, done: Done<InfoCallback>) {
        let Some(signal) = signal else {
            return done.answer(NOT_SUPPORTED, Known::default());
        };
        let Some(serving) = &self.serving else {
            return done.answer(UNREACHABLE, Known::default());
        };
        let tasks = match among.parts.is_empty() {
            true => Some(serving.all_tasks()),
            false => serving.tasks_among(among),
        };
        let Some(tasks) = tasks else {
            return done.answer(UNREACHABLE, Known::default());
        };
        self.signal_all(&tasks, signal);
        done.answer(SUCCESS, Known::default());
    }

    /// Sends processes of all nodes a signal.
    pub(super) fn signal_all(&mut self, tasks: &IdSet, signal: i32) {
        self.signal(tasks, signal);
        let tasks = tasks.clone();
        self.tell_elsewhere(&Question::Signal { tasks, signal });
    }

    fn signal(&mut self, tasks: &IdSet, signal: i32) {
        self.tell_all(&FromHost::Signal {
            tasks: tasks.clone(),
            signal,
        });
    }

    /// Records that processes of this node have ended, all with this status, and reports the end of their jobs.
    pub(super) fn have_ended(&mut self, tasks: &IdSet, status: i32) {
        let Some(serving) = &self.serving else {
            return;
        };
        let steering = &mut self.steering;
        steering.ended.union_with(tasks);
        let own = serving.own_tasks();
        let names = serving.namespaces();
        let mut over = Vec::new();
        for name in names {
            let all = serving.tasks_of_job(&name).unwrap_or_default();
            if !all.is_disjoint(tasks) {
                let known = steering.statuses.entry(name.clone()).or_default();
                if *known == 0 {
                    *known = status;
                }
            }
            let here = all.intersection(&own);
            let is_over = !here.is_empty() && here.is_subset(&steering.ended);
            if is_over && steering.told.insert(name.clone()) {
                over.push((name, all.first()));
            }
        }
        let node = serving.job.own;
        for (name, first) in over {
            let status = self.steering.statuses.get(&name).copied().unwrap_or(0);
            let Some(TaskId(home)) = first else { continue };
            if own.contains(TaskId(home)) {
                self.has_ended_at(&name, node, status);
            } else {
                let namespace = name;
                let question = Question::NodeEnded {
                    namespace,
                    node,
                    status,
                };
                self.send_letter((home, 0, Note::Question(question)));
            }
        }
    }

    /// Records that a job has ended on a node; called on the node of the job's first task. Reports the job's end once
    /// it has ended on all of its nodes.
    fn has_ended_at(&mut self, namespace: &str, node: u32, status: i32) {
        let Some(serving) = &self.serving else {
            return;
        };
        let wanted = serving.nodes_of(namespace);
        let steering = &mut self.steering;
        let known = steering.statuses.entry(namespace.to_owned()).or_default();
        if *known == 0 {
            *known = status;
        }
        let status = *known;
        let at = steering.ended_at.entry(namespace.to_owned()).or_default();
        if at.insert(node) && at.is_superset(&wanted) {
            let ended = ended(namespace, status);
            self.tell_elsewhere(&Question::JobEnded {
                namespace: namespace.to_owned(),
                status,
            });
            self.wake(ended);
        }
    }

    /// Handles a report of another node that needs no answer.
    pub(super) fn hear_elsewhere(&mut self, question: Question) {
        match question {
            Question::WantOutput(reader) => {
                self.steering.readers.insert(reader);
                self.begin_output();
            }
            Question::Printed {
                task,
                is_error,
                bytes,
            } => self.deliver(task, is_error, &bytes),
            Question::Input { tasks, bytes } => self.feed(&tasks, &bytes),
            Question::Signal { tasks, signal } => self.signal(&tasks, signal),
            Question::PeerEvent(told) => self.notify(&told),
            Question::NodeEnded {
                namespace,
                node,
                status,
            } => self.has_ended_at(&namespace, node, status),
            Question::JobEnded { namespace, status } => self.wake(ended(&namespace, status)),
            _ => {}
        }
    }

    fn tell_elsewhere(&mut self, question: &Question) {
        let others = self.serving.as_ref().map(Serving::first_ranks_elsewhere);
        for rank in others.unwrap_or_default() {
            self.send_letter((rank, 0, Note::Question(question.clone())));
        }
    }

    fn notify(&self, told: &PeerEvent) {
        self.wake(Waking::of(told));
    }

    fn wake(&self, waking: Waking) {
        if let Some(serving) = &self.serving {
            complain_of(serving.library.notify(waking));
        }
    }

    /// Makes a group: all of its members enter a barrier.
    fn group(&mut self, call: GroupCall) {
        let GroupCall {
            members,
            among,
            endpoints,
            assigns,
            done,
        } = call;
        self.groups += 1;
        let tasks = self.serving.as_ref().and_then(|it| {
            let tasks = it.tasks_among(&among)?;
            tasks.intersection(&it.own_tasks()).first()
        });
        let first = tasks.map_or(u32::MAX, |first| first.0);
        let part = Part {
            first,
            count: self.groups,
            endpoints,
        };
        let comer = BarrierWaiter::Group {
            members,
            assigns,
            done,
        };
        self.meet(&among, Purpose::Group, part.bytes(), comer);
    }
}

/// The PMIx event that reports the end of a job.
fn ended(namespace: &str, status: i32) -> Waking {
    let of = Proc::new(namespace, RANK_WILDCARD);
    let mut waking = Waking::new(JOB_ENDED, of, RANGE_GLOBAL);
    waking.add_source(c"pmix.evproc", TYPE_PROC);
    let status = status.cast_unsigned();
    waking.infos.extend([
        Info::number(c"pmix.job.term.status", TYPE_STATUS, status),
        Info::flag(c"pmix.evnondef", true),
    ]);
    waking
}

fn complain_of(result: anyhow::Result<()>) {
    if let Err(error) = result {
        crate::messages::say(&format!("{error:#}"));
    }
}

impl Serving {
    /// The first task of this node; `None` if the node has no rank of the first job.
    fn first_own(&self) -> Option<u32> {
        self.job.own_node().ranks.first().map(|first| first.0)
    }

    /// The jobs, with the first one first.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let offspring = self.offspring.iter().map(|it| it.namespace.clone());
        std::iter::once(self.job.namespace.clone())
            .chain(offspring)
            .collect()
    }

    fn all_tasks(&self) -> IdSet {
        let mut all = self.job.ranks();
        self.offspring
            .iter()
            .for_each(|it| all.union_with(&it.tasks()));
        all
    }

    /// The nodes of a job.
    pub(super) fn nodes_of(&self, namespace: &str) -> BTreeSet<u32> {
        let its = self.offspring.iter().find(|it| it.namespace == namespace);
        match its {
            Some(its) => its.nodes(),
            None => {
                let nodes = (0..).zip(&self.job.nodes);
                let nodes = nodes.filter(|(_, node)| !node.ranks.is_empty());
                nodes.map(|(at, _)| at).collect()
            }
        }
    }
}

/// Contribution of one node to the creation of a group.
pub(crate) struct Part {
    /// The node's first task that is a member.
    first: u32,
    /// Number of groups that the node has made.
    count: u32,
    endpoints: Vec<u8>,
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        let length = self.endpoints.len() as u64;
        let mut bytes = Vec::with_capacity(self.endpoints.len() + 16);
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(&self.endpoints);
        bytes
    }

    /// Reads the joined contributions of all nodes: the group's context id, and its members' endpoint data. Stops
    /// at the first malformed one.
    pub(crate) fn read_all(mut bytes: &[u8]) -> (u64, Vec<u8>) {
        let mut number = u64::MAX;
        let mut endpoints = Vec::new();
        while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
            let word = |at: usize| {
                let four = head[at..].first_chunk().copied();
                u32::from_le_bytes(four.unwrap_or_default())
            };
            let length = u64::from(word(8)) | u64::from(word(12)) << 32;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((own, rest)) = rest.split_at_checked(length) else {
                break;
            };
            // All nodes choose the number of the group's first member: no other group has it.
            number = number.min(u64::from(word(0)) << 32 | u64::from(word(4)));
            endpoints.extend_from_slice(own);
            bytes = rest;
        }
        (number, endpoints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pmix_group_id_is_from_the_node_of_its_first_member() {
        let part = |first, count, endpoints: &[u8]| Part {
            first,
            count,
            endpoints: endpoints.to_vec(),
        };
        let (a, b) = (part(4, 1, b"four"), part(2, 9, b"two"));
        let bytes = [a.bytes(), b.bytes()].concat();
        assert_eq!(Part::read_all(&bytes), (2 << 32 | 9, b"fourtwo".to_vec()));
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(Part::read_all(cut), (4 << 32 | 1, b"four".to_vec()));
    }
}
