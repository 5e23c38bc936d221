//! Whole trees of nodes in memory, with seeded delays and deaths, and the accounting law.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::root::Submission;
use super::{Action, Delivery, LinkId, Node};
use crate::config::Config;
use crate::ids::{CommandId, Epoch, ServerId};
use crate::message::{
    Block, EndPolicy, Health, Lane, Message, PlanEntry, Slice, Status, SyncPolicy,
};
use crate::topology::Topology;

/// What arrives somewhere at some time.
enum Arrival {
    Message(LinkId, Message),
    LinkDown(LinkId),
    Connect(ServerId, ServerId, Epoch),
    Local(CommandId, IdSet, Bytes),
}

/// A tree of nodes over links that delay each message at random, in order per link.
pub(super) struct Net {
    now: Instant,
    random: u64,
    pub(super) nodes: BTreeMap<ServerId, Node>,
    /// Link, by whom it is held: who is at the other end.
    links: BTreeMap<(ServerId, LinkId), ServerId>,
    next_link: u64,
    arrivals: BTreeMap<(Instant, u64), (ServerId, Arrival)>,
    last: BTreeMap<(ServerId, LinkId), Instant>,
    sequence: u64,
    executed: BTreeMap<(CommandId, u32), u32>,
    deliveries: Vec<Delivery>,
    answer: fn(&[u8], u32) -> Option<String>,
    /// Members that stand still: connections stand, but nobody speaks.
    still: BTreeSet<ServerId>,
}

fn answer_all(payload: &[u8], _task: u32) -> Option<String> {
    Some(String::from_utf8_lossy(payload).into_owned())
}

impl Net {
    pub(super) fn new(count: u32, topology: Topology, seed: u64) -> Self {
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
        };
        let rules = |_: u16, _: &[u8]| None;
        let deadline = net.now + Duration::from_secs(3600);
        let entry = |server: ServerId, tasks| PlanEntry {
            server,
            subtree_count: 0,
            tasks,
            host: String::new(),
            addresses: Vec::new(),
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
        root.start(net.now, Config::default(), Slice::new(plan))
            .unwrap();
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

    fn node(&mut self, id: ServerId) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn link(&mut self, upper: ServerId, lower: ServerId) -> (LinkId, LinkId) {
        let (up, down) = (LinkId(self.next_link), LinkId(self.next_link + 1));
        self.next_link += 2;
        self.links.insert((upper, up), lower);
        self.links.insert((lower, down), upper);
        (up, down)
    }

    /// The other end's name of a link: ends are numbered in pairs.
    fn twin(link: LinkId) -> LinkId {
        LinkId(((link.0 - 1) ^ 1) + 1)
    }

    fn later(&mut self, to: ServerId, link: Option<LinkId>, arrival: Arrival) {
        let mut at = self.now + Duration::from_micros(self.random(3000) + 1);
        if let Some(link) = link {
            let last = self.last.entry((to, link)).or_insert(at);
            at = at.max(*last);
            *last = at;
        }
        self.sequence += 1;
        self.arrivals.insert((at, self.sequence), (to, arrival));
    }

    fn drain(&mut self, at: ServerId) {
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
                Action::Deliver(delivery) => self.deliveries.push(delivery),
                Action::End(_) => self.node(at).handle_local_down(),
                Action::Ended => {
                    self.nodes.remove(&at);
                    self.cut_links_of(at);
                }
                Action::Configure(_) | Action::StopConnecting(_) | Action::CancelLocal(_) => {}
            }
        }
    }

    fn cut_links_of(&mut self, gone: ServerId) {
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

    pub(super) fn kill(&mut self, id: ServerId) {
        self.nodes.remove(&id);
        self.cut_links_of(id);
    }

    fn arrive(&mut self, to: ServerId, arrival: Arrival) {
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

    /// Takes one step: the next arrival or timer. False where nothing will ever happen.
    pub(super) fn step(&mut self) -> bool {
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

    fn run_until(&mut self, mut done: impl FnMut(&[Delivery]) -> bool) {
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

    fn submit(&mut self, destination: &str, sync: SyncPolicy, payload: &str) -> CommandId {
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

    fn run_command(&mut self, destination: &str, sync: SyncPolicy, payload: &str) -> Tally {
        let id = self.submit(destination, sync, payload);
        self.run_until(|deliveries| deliveries.contains(&Delivery::Complete(id)));
        self.tally(id)
    }

    fn tally(&self, wanted: CommandId) -> Tally {
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

    pub(super) fn init(&mut self) -> Tally {
        self.run_until(|deliveries| deliveries.contains(&Delivery::Complete(CommandId::INIT)));
        self.tally(CommandId::INIT)
    }
}

#[derive(Default, Debug)]
pub(super) struct Tally {
    blocks: Vec<Block>,
    answered: IdSet,
    missing: IdSet,
    lost: IdSet,
}

const QUERY: SyncPolicy = SyncPolicy::TimeOut { ms: 30_000 };

#[test]
fn every_size_starts_answers_and_ends() {
    for count in 1..=64 {
        for topology in [Topology::Binomial, Topology::Kary(3), Topology::Flat] {
            let mut net = Net::new(count, topology, u64::from(count));
            let all = IdSet::all_below(count);
            assert_eq!(net.init().answered, all);
            for (nth, sync) in [SyncPolicy::WaitForAll, QUERY, SyncPolicy::DontWait]
                .into_iter()
                .enumerate()
            {
                let tally = net.run_command(&all.to_string(), sync, "hello");
                assert_eq!(tally.answered, all);
                let one_block = sync != SyncPolicy::DontWait;
                assert!(
                    !one_block || tally.blocks.len() == 1,
                    "equal answers come as one"
                );
                let runs = net
                    .executed
                    .iter()
                    .filter(|((id, _), _)| id.0 == nth as u64 + 1);
                assert!(runs.clone().all(|(_, times)| *times == 1));
                assert_eq!(runs.count(), count as usize);
            }
            let part = format!("0-{}/2", count - 1);
            let tally = net.run_command(&part, QUERY, "some");
            assert_eq!(tally.answered, part.parse().unwrap());
            let now = net.now;
            net.node(ServerId::FRONT_END)
                .finish(now, EndPolicy::KillStarted);
            net.drain(ServerId::FRONT_END);
            while net.nodes.len() > 1 {
                assert!(net.step(), "everything ends");
            }
        }
    }
}

#[test]
fn who_does_not_answer_is_named_and_may_answer_late() {
    let mut net = Net::new(16, Topology::Binomial, 5);
    net.init();
    net.answer = |payload, task| (task != 11).then(|| answer_all(payload, task)).flatten();
    let tally = net.run_command("0-15", SyncPolicy::TimeOut { ms: 100 }, "x");
    assert_eq!(
        (tally.missing.to_string(), tally.lost.len()),
        ("11".to_owned(), 0)
    );
    let now = net.now;
    let late = IdSet::single(TaskId(11));
    let id = CommandId(1);
    net.node(ServerId(11))
        .handle_local(now, id, &late, Status::Ok, Bytes::from_static(b"x"));
    net.drain(ServerId(11));
    net.run_until(|deliveries| {
        let is_late = |d: &Delivery| matches!(d, Delivery::Answer { late, .. } if !late.is_empty());
        deliveries.iter().any(is_late)
    });
    assert_eq!(net.tally(id).answered, IdSet::all_below(16));
}

#[test]
fn tasks_beyond_the_tree_are_lost_at_once() {
    let mut net = Net::new(4, Topology::Binomial, 1);
    net.init();
    let tally = net.run_command("2-9", QUERY, "x");
    assert_eq!(
        (tally.answered.to_string(), tally.lost.to_string()),
        ("2-3".into(), "4-9".into())
    );
}

#[test]
fn a_dead_server_costs_its_own_task_only() {
    for seed in 0..300 {
        let mut net = Net::new(24, Topology::Binomial, seed);
        let steps = net.random(400);
        for _ in 0..steps {
            net.step();
        }
        let id = net.submit("0-23", QUERY, "x");
        let steps = net.random(200);
        for _ in 0..steps {
            net.step();
        }
        let dead = u32::try_from(net.random(24)).unwrap();
        net.kill(ServerId(dead));
        net.run_until(|deliveries| deliveries.contains(&Delivery::Complete(id)));
        let tally = net.tally(id);
        let mut expected = IdSet::all_below(24);
        expected.remove(TaskId(dead));
        assert!(
            expected.is_subset(&tally.answered),
            "seed {seed}: {tally:?}"
        );
        assert!(
            net.executed.values().all(|times| *times == 1),
            "seed {seed}: executed twice"
        );
        let tally = net.run_command("0-23", QUERY, "after");
        assert_eq!(tally.answered, expected, "seed {seed}");
        assert_eq!(tally.lost, IdSet::single(TaskId(dead)), "seed {seed}");
        let told = net.deliveries.iter().any(|delivery| {
            matches!(delivery, Delivery::Reach(change)
                if change.health == Health::Lost && change.tasks.contains(TaskId(dead)))
        });
        assert!(told, "seed {seed}");
    }
}

#[test]
fn a_parent_and_its_child_that_stand_still_both_come_back() {
    let mut net = Net::new(16, Topology::Binomial, 11);
    net.init();
    // Of the tree below server 7, which has servers 8 to 14 below it.
    let (parent, child) = (ServerId(7), ServerId(8));
    net.still = [parent, child].into();
    let to_parent = net.links.iter().find_map(|((who, link), peer)| {
        (*who == ServerId::MASTER && *peer == parent).then_some(*link)
    });
    let (link, now) = (to_parent.unwrap(), net.now);
    net.node(ServerId::MASTER).handle_link_silent(now, link);
    net.drain(ServerId::MASTER);
    let told = |wanted: Health, of: u32| {
        move |deliveries: &[Delivery]| {
            let mut reached = deliveries.iter().filter_map(|delivery| match delivery {
                Delivery::Reach(change) if change.tasks.contains(TaskId(of)) => Some(change.health),
                _ => None,
            });
            reached.next_back() == Some(wanted)
        }
    };
    net.run_until(told(Health::Silent, 7));
    net.run_until(told(Health::Silent, 8));
    net.still.clear();
    let now = net.now;
    net.node(ServerId::MASTER).handle_link_alive(now, link);
    net.drain(ServerId::MASTER);
    net.run_until(told(Health::Reachable, 7));
    net.run_until(told(Health::Reachable, 8));
    let tally = net.run_command("0-15", QUERY, "after");
    assert_eq!(tally.answered, IdSet::all_below(16));
}

#[test]
fn without_a_front_end_everything_ends() {
    let mut net = Net::new(16, Topology::Binomial, 9);
    net.init();
    net.kill(ServerId::FRONT_END);
    while !net.nodes.is_empty() {
        assert!(net.step(), "everything ends");
    }
}
