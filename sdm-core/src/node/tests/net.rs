//! The test network of nodes: a tree in memory, with links, seeded delays, killed members, and a tally of the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::super::root::Submission;
use super::super::{Action, Delivery, ExchangeFailure, LinkId, Node};
use crate::config::Config;
use crate::ids::{CommandId, Epoch, ServerId};
use crate::message::{
    Addresses, Block, Datagram, ExchangeId, Lane, Message, PlanEntry, Slice, Status, SyncPolicy,
};
use crate::topology::Topology;

/// An event that reaches a node at a given time.
pub(super) enum Arrival {
    Message(LinkId, Message),
    LinkDown(LinkId),
    Connect(ServerId, ServerId, Epoch),
    Local(CommandId, IdSet, Bytes),
}

/// The data of all tasks, or the failure.
pub(super) type Outcome = Result<Vec<Bytes>, ExchangeFailure>;

/// A tree of nodes over links that delay each message at random, in order per link.
pub(in crate::node) struct Net {
    pub(super) now: Instant,
    pub(super) random: u64,
    pub(in crate::node) nodes: BTreeMap<ServerId, Node>,
    /// The peer of each link, by the link's owner.
    pub(super) links: BTreeMap<(ServerId, LinkId), ServerId>,
    pub(super) next_link: u64,
    pub(super) arrivals: BTreeMap<(Instant, u64), (ServerId, Arrival)>,
    pub(super) last: BTreeMap<(ServerId, LinkId), Instant>,
    pub(super) sequence: u64,
    pub(super) executed: BTreeMap<(CommandId, u32), u32>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) answer: fn(&[u8], u32) -> Option<String>,
    /// Stopped members: their connections exist, but they send nothing.
    pub(super) still: BTreeSet<ServerId>,
    /// Outcomes of exchanges, with the server that received each.
    pub(super) exchanged: Vec<(ServerId, ExchangeId, Outcome)>,
    pub(super) letters: Vec<(ServerId, Datagram)>,
}

pub(super) fn answer_all(payload: &[u8], _task: u32) -> Option<String> {
    Some(String::from_utf8_lossy(payload).into_owned())
}

impl Net {
    pub(in crate::node) fn new(count: u32, topology: Topology, seed: u64) -> Self {
        Self::with(count, topology, seed, Config::default())
    }

    pub(super) fn with(count: u32, topology: Topology, seed: u64, config: Config) -> Self {
        let mut net = Self {
            now: Instant::now(),
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            next_link: 1,
            arrivals: BTreeMap::new(),
            last: BTreeMap::new(),
            sequence: 0,
            executed: BTreeMap::new(),
            deliveries: Vec::new(),
            answer: answer_all,
            still: BTreeSet::new(),
            exchanged: Vec::new(),
            letters: Vec::new(),
        };
        let rules = |_: u16, _: &[u8]| None;
        let deadline = net.now + Duration::from_secs(3600);
        let entry = |server: ServerId, tasks| PlanEntry {
            server,
            subtree_count: 0,
            tasks,
            host: "".into(),
            addresses: Addresses::default(),
        };
        let servers: Vec<PlanEntry> = (0..count)
            .map(|id| entry(ServerId(id), IdSet::single(TaskId(id))))
            .collect();
        for server in &servers {
            net.nodes
                .insert(server.server, Node::new(server.server, rules, deadline));
        }
        net.nodes.insert(
            ServerId::MASTER,
            Node::new(ServerId::MASTER, rules, deadline),
        );
        let mut root = Node::root(net.now, rules);
        let plan = topology.plan(entry(ServerId::MASTER, IdSet::new()), servers);
        root.start(net.now, config, Slice::new(plan)).unwrap();
        net.nodes.insert(ServerId::FRONT_END, root);
        let (up, down) = net.link(ServerId::FRONT_END, ServerId::MASTER);
        net.node(ServerId::MASTER)
            .handle_front_end_up(down, Epoch(1));
        let now = net.now;
        net.node(ServerId::FRONT_END)
            .handle_child_up(now, up, ServerId::MASTER, Epoch(0));
        net.drain(ServerId::FRONT_END);
        net.drain(ServerId::MASTER);
        net
    }

    pub(super) fn node(&mut self, id: ServerId) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    pub(super) fn link(&mut self, upper: ServerId, lower: ServerId) -> (LinkId, LinkId) {
        let (up, down) = (LinkId(self.next_link), LinkId(self.next_link + 1));
        self.next_link += 2;
        self.links.insert((upper, up), lower);
        self.links.insert((lower, down), upper);
        (up, down)
    }

    /// The other end's name of a link: ends are numbered in pairs.
    pub(super) fn twin(link: LinkId) -> LinkId {
        LinkId(((link.0 - 1) ^ 1) + 1)
    }

    pub(super) fn later(&mut self, to: ServerId, link: Option<LinkId>, arrival: Arrival) {
        let mut at = self.now + Duration::from_micros(self.random(3000) + 1);
        if let Some(link) = link {
            let last = self.last.entry((to, link)).or_insert(at);
            at = at.max(*last);
            *last = at;
        }
        self.sequence += 1;
        self.arrivals.insert((at, self.sequence), (to, arrival));
    }

    pub(super) fn drain(&mut self, at: ServerId) {
        self.drain_actions(at);
        let held = self.links.keys().filter(|(who, _)| *who == at);
        let links: Vec<LinkId> = held.map(|(_, link)| *link).collect();
        for link in links {
            while self.nodes.get_mut(&at).is_some_and(|it| it.feed(link)) {
                self.drain_actions(at);
            }
        }
    }

    fn drain_actions(&mut self, at: ServerId) {
        while let Some(action) = self.nodes.get_mut(&at).and_then(Node::poll_action) {
            match action {
                Action::Send { link, message } => {
                    if let Some(&peer) = self.links.get(&(at, link)) {
                        let twin = Self::twin(link);
                        self.later(peer, Some(twin), Arrival::Message(twin, message));
                    }
                }
                Action::Connect(request) => {
                    let connect = Arrival::Connect(at, request.server, request.epoch);
                    self.later(at, None, connect);
                }
                Action::Close(link) => {
                    if let Some(peer) = self.links.remove(&(at, link)) {
                        let twin = Self::twin(link);
                        self.later(peer, Some(twin), Arrival::LinkDown(twin));
                    }
                }
                Action::Execute { id, tasks, payload } => {
                    for task in &tasks {
                        *self.executed.entry((id, task.0)).or_default() += 1;
                        if let Some(text) = (self.answer)(&payload, task.0) {
                            let local = Arrival::Local(id, IdSet::single(task), text.into());
                            self.later(at, None, local);
                        }
                    }
                }
                Action::Exchanged { id, outcome } => self.exchanged.push((at, id, outcome)),
                Action::Datagram(letter) => self.letters.push((at, letter)),
                Action::Deliver(delivery) => self.deliveries.push(delivery),
                Action::End(_) => {
                    let now = self.now;
                    self.node(at).handle_local_down(now);
                }
                Action::Ended => {
                    self.nodes.remove(&at);
                    self.cut_links_of(at);
                }
                Action::Configure(_) | Action::StopConnecting(_) | Action::CancelLocal(_) => {}
            }
        }
    }

    pub(super) fn cut_links_of(&mut self, gone: ServerId) {
        let held: Vec<LinkId> = self
            .links
            .keys()
            .filter(|(who, _)| *who == gone)
            .map(|(_, link)| *link)
            .collect();
        for link in held {
            let peer = self.links.remove(&(gone, link)).unwrap();
            self.later(
                peer,
                Some(Self::twin(link)),
                Arrival::LinkDown(Self::twin(link)),
            );
        }
    }

    pub(in crate::node) fn kill(&mut self, id: ServerId) {
        self.nodes.remove(&id);
        self.cut_links_of(id);
    }

    pub(super) fn arrive(&mut self, to: ServerId, arrival: Arrival) {
        let now = self.now;
        match arrival {
            Arrival::Connect(from, server, epoch) => {
                if !self.nodes.contains_key(&server) {
                    self.node(from).handle_unreachable(now, server, "refused");
                } else if self.still.contains(&server) {
                    self.node(from).handle_unanswered(now, server);
                } else {
                    let (up, down) = self.link(from, server);
                    let seen = self.node(server).epoch();
                    self.node(server).handle_parent_up(down, from, epoch);
                    self.drain(server);
                    self.node(from).handle_child_up(now, up, server, seen);
                }
            }
            Arrival::Message(link, message) => {
                if self.links.contains_key(&(to, link)) {
                    self.node(to).handle_message(now, link, message).unwrap();
                }
            }
            Arrival::LinkDown(link) => {
                if self.links.remove(&(to, link)).is_some() {
                    self.node(to)
                        .handle_link_down(now, link, "connection reset");
                }
            }
            Arrival::Local(id, tasks, payload) => {
                self.node(to)
                    .handle_local(now, id, &tasks, Status::Ok, payload);
            }
        }
    }

    /// Takes one step: the next arrival or timer. Returns false if neither exists.
    pub(in crate::node) fn step(&mut self) -> bool {
        let timers = self
            .nodes
            .iter()
            .filter_map(|(id, node)| Some((node.poll_timeout()?, *id)));
        let timer = timers.min();
        let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
        let at = match (timer, arrival) {
            (Some((timer, id)), arrival) if arrival.is_none_or(|arrival| timer < arrival) => {
                self.now = self.now.max(timer);
                let now = self.now;
                self.node(id).handle_timeout(now);
                id
            }
            (_, Some(_)) => {
                let ((at, _), (to, arrival)) = self.arrivals.pop_first().unwrap();
                self.now = self.now.max(at);
                if !self.nodes.contains_key(&to) {
                    return true;
                }
                self.arrive(to, arrival);
                to
            }
            _ => return false,
        };
        self.drain(at);
        self.drain(ServerId::FRONT_END);
        true
    }

    pub(super) fn run_until(&mut self, mut done: impl FnMut(&[Delivery]) -> bool) {
        for _ in 0..100_000 {
            if done(&self.deliveries) {
                return;
            }
            assert!(
                self.step(),
                "the net is idle before it is done: {:?}",
                self.deliveries
            );
        }
        panic!("no end: {:?}", self.deliveries);
    }

    pub(super) fn submit(
        &mut self,
        destination: &str,
        sync: SyncPolicy,
        payload: &str,
    ) -> CommandId {
        let now = self.now;
        let submission = Submission {
            destination: destination.parse().unwrap(),
            lane: Lane::Control,
            sync,
            rule: 0,
            rule_params: Bytes::new(),
            payload: Bytes::copy_from_slice(payload.as_bytes()),
        };
        let id = self.node(ServerId::FRONT_END).submit(now, submission);
        self.drain(ServerId::FRONT_END);
        id
    }

    pub(super) fn run_command(
        &mut self,
        destination: &str,
        sync: SyncPolicy,
        payload: &str,
    ) -> Tally {
        let id = self.submit(destination, sync, payload);
        self.run_until(|deliveries| deliveries.contains(&Delivery::Complete(id)));
        self.tally(id)
    }

    pub(super) fn tally(&self, wanted: CommandId) -> Tally {
        let mut tally = Tally::default();
        for delivery in &self.deliveries {
            if let Delivery::Answer {
                id,
                blocks,
                missing,
                lost,
                late: _,
            } = delivery
                && *id == wanted
            {
                for block in blocks {
                    assert!(block.sources.is_disjoint(&tally.answered), "counted twice");
                    tally.answered.union_with(&block.sources);
                    tally.missing.subtract(&block.sources);
                    tally.lost.subtract(&block.sources);
                    tally.blocks.push(block.clone());
                }
                for (tasks, _) in missing {
                    assert!(
                        tasks.is_disjoint(&tally.answered),
                        "missing after its answer"
                    );
                    tally.missing.union_with(tasks);
                }
                assert!(lost.is_disjoint(&tally.answered), "lost after its answer");
                tally.missing.subtract(lost);
                tally.lost.union_with(lost);
            }
        }
        tally
    }

    pub(in crate::node) fn init(&mut self) -> Tally {
        self.run_until(|deliveries| deliveries.contains(&Delivery::Complete(CommandId::INIT)));
        self.tally(CommandId::INIT)
    }
}

#[derive(Default, Debug)]
pub(in crate::node) struct Tally {
    pub(super) blocks: Vec<Block>,
    pub(super) answered: IdSet,
    pub(super) missing: IdSet,
    pub(super) lost: IdSet,
}
