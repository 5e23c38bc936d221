//! Nodes of a session without a network: a message reaches its receiver at once, or after a computed time.

use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_core::config::Config;
use sdm_core::frame;
use sdm_core::message::{Addresses, Lane, Message, PlanEntry, Slice, Status, SyncPolicy};
use sdm_core::node::{Action, Delivery, LinkId, Node, Submission};
use sdm_core::topology::{self, Topology};
use sdm_core::{CommandId, Epoch, ServerId};
use sdm_debug::rules;
use sdm_idset::{IdSet, TaskId};

use super::{COMMAND_BYTES, Cost, Meters, Pace, cost};

/// The addresses of a server: the port that the kernel has chosen, in both networks of its host. A host has 64 servers.
fn addresses(server: ServerId) -> Addresses {
    let host = server.0 / 64;
    let (high, low) = (host >> 8 & 0xFF, host & 0xFF);
    let port = 32768 + server.0.wrapping_mul(2_654_435_761) % 28232;
    ["10.0", "172.16"]
        .map(|network| format!("tcp://{network}.{high}.{low}:{port}"))
        .iter()
        .collect()
}

fn index(link: LinkId) -> usize {
    usize::try_from(link.0).expect("the number of a link")
}

/// Of so many servers with children one dies.
const DEATHS_ONE_IN: usize = 1000;

/// The messages in transit between members whose work takes time.
pub(super) struct Paced {
    pub(super) pace: Pace,
    /// Messages by arrival time, and in the order in which they were sent.
    pub(super) under_way: BTreeMap<(Duration, u64), (u32, Arrival)>,
    pub(super) sent: u64,
    /// The time until which each member is busy.
    pub(super) busy: Vec<Duration>,
}

/// An input of a member.
pub(super) enum Arrival {
    Message(LinkId, Message),
    Down(LinkId),
    Connect(ServerId, Epoch),
}

/// The nodes of a session, and the messages in transit between them.
pub(super) struct Crowd {
    tasks: u32,
    pub(super) topology: Topology,
    /// The times of members and links; `None` if everything is delivered at once.
    pub(super) paced: Option<Paced>,
    /// The servers, then the master, then the front-end.
    pub(super) nodes: Vec<Option<Node>>,
    /// Upper and lower node of each link, by link number, and the number of inputs that are queued for the link.
    links: Vec<([u32; 2], u32)>,
    /// Inputs that members get next, those from the last member first. So memory that is still in the processor's cache
    /// is used again, and few commands are in progress at once.
    queue: VecDeque<(u32, Arrival)>,
    /// Inputs that the working member has sent. They are put before the rest of the queue.
    sent: Vec<(u32, Arrival)>,
    /// The list of actions of the working node. The other nodes need none meanwhile.
    actions: VecDeque<Action>,
    timers: BinaryHeap<std::cmp::Reverse<(Instant, u32)>>,
    armed: Vec<Option<Instant>>,
    now: Instant,
    answer: fn(TaskId) -> Option<Bytes>,
    meters: Meters,
    heap_before: u64,
    scratch: Vec<u8>,
    answered: IdSet,
    /// True if servers ignore all input, while their connections stay open.
    pub(super) servers_hang: bool,
    /// Tasks that the last command reported as missing, with the reason.
    pub(super) missing: Vec<(IdSet, String)>,
    cost: Cost,
}

impl Crowd {
    pub(super) fn new(tasks: u32, meters: Meters) -> (Self, u32) {
        let now = Instant::now();
        let count = tasks as usize + 2;
        let mut crowd = Self {
            tasks,
            topology: Topology::Binomial,
            paced: None,
            nodes: Vec::with_capacity(count),
            links: Vec::with_capacity(2 * count),
            queue: VecDeque::new(),
            sent: Vec::new(),
            timers: BinaryHeap::with_capacity(2 * count),
            actions: VecDeque::new(),
            armed: vec![None; count],
            now,
            answer: |_| None,
            meters,
            heap_before: 0,
            scratch: Vec::new(),
            answered: IdSet::new(),
            servers_hang: false,
            missing: Vec::new(),
            cost: cost("start"),
        };
        crowd.heap_before = (meters.heap)();
        let deadline = now + Duration::from_secs(3600);
        let node = |id| Some(Node::new(id, rules::rule, deadline));
        crowd.nodes.extend((0..tasks).map(|id| node(ServerId(id))));
        crowd.nodes.push(node(ServerId::MASTER));
        crowd.nodes.push(Some(Node::root(now, rules::rule)));
        let depth = (tasks + 1).ilog2() + 1;
        (crowd, depth)
    }

    fn plan(&self) -> Slice {
        let entry = |server: ServerId, tasks| PlanEntry {
            server,
            subtree_count: 0,
            tasks,
            host: format!("node{:05}", server.0 / 64).into(),
            addresses: addresses(server),
        };
        let servers = (0..self.tasks).map(|id| entry(ServerId(id), IdSet::single(TaskId(id))));
        let master = entry(ServerId::MASTER, IdSet::new());
        Slice::new(self.topology.plan(master, servers.collect()))
    }

    fn top(&self) -> u32 {
        self.tasks + 1
    }

    fn index(&self, server: ServerId) -> u32 {
        match server {
            ServerId::MASTER => self.tasks,
            ServerId::FRONT_END => self.tasks + 1,
            ServerId(id) => id,
        }
    }

    pub(super) fn living(&self) -> IdSet {
        let nodes = self.nodes.iter().take(self.tasks as usize).zip(0..);
        let living = nodes.filter(|(node, _)| node.is_some());
        living.map(|(_, id)| TaskId(id)).collect()
    }

    pub(super) fn start(&mut self) -> Cost {
        let begin = (self.meters.clock)();
        let plan = self.plan();
        debug_assert!(topology::child_runs(&plan).is_some());
        let (top, now) = (self.top(), self.now);
        let link = self.link(top, self.tasks);
        let node = |crowd: &mut Self, at: u32| crowd.nodes[at as usize].take();
        let mut root = node(self, top).expect("it was just made");
        let started = root.start(now, Config::default(), plan);
        started.expect("a plan of the topology is a tree");
        root.handle_child_up(now, link, ServerId::MASTER, Epoch(0));
        self.nodes[top as usize] = Some(root);
        let master = self.nodes[self.tasks as usize].as_mut();
        master
            .expect("it was just made")
            .handle_front_end_up(link, Epoch(1));
        self.drain(top);
        self.drain(self.tasks);
        self.run();
        self.conclude(begin)
    }

    pub(super) fn command(
        &mut self,
        what: &'static str,
        tasks: &IdSet,
        rule: u16,
        answer: fn(TaskId) -> Option<Bytes>,
    ) -> Cost {
        let begin = (self.meters.clock)();
        let id = self.give(what, tasks, SyncPolicy::WaitForAll, rule, answer);
        let root = self.nodes[self.top() as usize].as_ref();
        assert!(
            root.is_some_and(|root| root.waited_for(id).is_none()) && self.answered == *tasks,
            "{what}: {} of {} tasks answered",
            self.answered.len(),
            tasks.len()
        );
        self.conclude(begin)
    }

    /// Sends a command, and runs the session until it is idle.
    pub(super) fn give(
        &mut self,
        what: &'static str,
        tasks: &IdSet,
        sync: SyncPolicy,
        rule: u16,
        answer: fn(TaskId) -> Option<Bytes>,
    ) -> CommandId {
        self.begin(what);
        self.answer = answer;
        let submission = Submission {
            destination: tasks.clone(),
            lane: Lane::Control,
            sync,
            rule,
            rule_params: Bytes::new(),
            payload: Bytes::from(vec![b'c'; COMMAND_BYTES]),
        };
        let (top, now) = (self.top(), self.now);
        let root = self.nodes[top as usize].as_mut();
        let id = root.expect("the front-end lives").submit(now, submission);
        self.drain(top);
        self.run();
        id
    }

    /// Kills one in a thousand of the servers with children, all at once.
    pub(super) fn deaths(&mut self) -> Cost {
        self.begin("one inner node in 1000 dies");
        let begin = (self.meters.clock)();
        let inner = self.nodes.iter().take(self.tasks as usize).zip(0..);
        let inner: Vec<u32> = inner
            .filter(|(node, _)| {
                node.as_ref()
                    .is_some_and(|node| node.children().count() > 0)
            })
            .map(|(_, id)| id)
            .collect();
        let first = (DEATHS_ONE_IN / 2).min(inner.len() / 2);
        for dead in inner.into_iter().skip(first).step_by(DEATHS_ONE_IN) {
            let Some(node) = self.nodes[dead as usize].take() else {
                continue;
            };
            let links = node.children().filter_map(|(_, link)| link);
            let links: Vec<LinkId> = links.chain(node.parent_link()).collect();
            for link in links {
                let other = self.other_end(link, dead);
                self.enqueue(other, Arrival::Down(link));
            }
        }
        self.run();
        self.conclude(begin)
    }

    fn begin(&mut self, what: &'static str) {
        self.cost = cost(what);
        self.answered = IdSet::new();
        self.missing.clear();
    }

    fn conclude(&mut self, begin: Duration) -> Cost {
        self.cost.cpu = (self.meters.clock)() - begin;
        self.cost.answered = self.answered.len();
        let heap = (self.meters.heap)().saturating_sub(self.heap_before);
        self.cost.heap_per_node = heap / u64::from(self.tasks);
        self.cost.clone()
    }

    fn link(&mut self, upper: u32, lower: u32) -> LinkId {
        self.links.push(([upper, lower], 0));
        LinkId(self.links.len() as u64 - 1)
    }

    fn ends(&self, link: LinkId) -> [u32; 2] {
        self.links[index(link)].0
    }

    /// Queues an input for a member. The inputs of a link keep their order.
    fn enqueue(&mut self, to: u32, item: Arrival) {
        let mut is_first = true;
        if let Arrival::Message(link, _) | Arrival::Down(link) = item {
            let queued = &mut self.links[index(link)].1;
            is_first = *queued == 0;
            *queued += 1;
        }
        if is_first {
            self.sent.push((to, item));
        } else {
            self.queue.push_back((to, item));
        }
    }

    fn other_end(&self, link: LinkId, one: u32) -> u32 {
        let [upper, lower] = self.ends(link);
        if upper == one { lower } else { upper }
    }

    /// Delivers the messages in transit, and advances the time if there are none, until the session is idle.
    fn run(&mut self) {
        loop {
            while let Some((to, item)) = self.next_item() {
                self.arrive(to, item);
            }
            // Timers beyond the horizon are those of waits for a parent, and are not waited for.
            let horizon = self.now + Duration::from_secs(60);
            match self.timers.pop() {
                Some(std::cmp::Reverse((at, _))) if at > horizon => return,
                Some(std::cmp::Reverse((at, to))) => {
                    if self.armed[to as usize] == Some(at) {
                        self.armed[to as usize] = None;
                        self.now = self.now.max(at);
                        let now = self.now;
                        if let Some(node) = &mut self.nodes[to as usize] {
                            node.handle_timeout(now);
                        }
                        self.drain(to);
                    }
                }
                None => return,
            }
        }
    }

    /// The next input of a member; `None` if there is none. Between paced members it is the message that arrives first,
    /// and its receiver is busy from then on at the earliest.
    fn next_item(&mut self) -> Option<(u32, Arrival)> {
        let Some(paced) = &mut self.paced else {
            while let Some(sent) = self.sent.pop() {
                self.queue.push_front(sent);
            }
            let next = self.queue.pop_front()?;
            if let Arrival::Message(link, _) | Arrival::Down(link) = next.1 {
                self.links[index(link)].1 -= 1;
            }
            return Some(next);
        };
        let ((arrives, _), (to, item)) = paced.under_way.pop_first()?;
        let busy = &mut paced.busy[to as usize];
        *busy = arrives.max(*busy);
        let is_answer = matches!(item, Arrival::Message(_, Message::Answer(_)));
        if is_answer && to <= self.tasks {
            *busy += paced.pace.child / 2;
        }
        Some((to, item))
    }

    fn arrive(&mut self, to: u32, item: Arrival) {
        if self.servers_hang && to < self.tasks {
            return;
        }
        let now = self.now;
        let is_command_to_master =
            to == self.tasks && matches!(item, Arrival::Message(_, Message::Command(_)));
        match item {
            Arrival::Connect(server, epoch) => self.connect(to, server, epoch),
            Arrival::Message(link, message) => {
                if let Some(node) = &mut self.nodes[to as usize] {
                    node.swap_actions(&mut self.actions);
                    let result = node.handle_message(now, link, message);
                    result.expect("nodes understand each other");
                }
            }
            Arrival::Down(link) => {
                if let Some(node) = &mut self.nodes[to as usize] {
                    node.handle_link_down(now, link, "it died");
                }
            }
        }
        self.drain(to);
        if is_command_to_master {
            // The master has no task, but needs as much time for itself as other members.
            self.spend_on_itself(to);
        }
    }

    fn spend_on_itself(&mut self, at: u32) {
        if let Some(paced) = &mut self.paced {
            paced.busy[at as usize] += paced.pace.own;
        }
    }

    fn connect(&mut self, parent: u32, server: ServerId, epoch: Epoch) {
        let (now, child) = (self.now, self.index(server));
        let before = self.nodes[child as usize].as_ref().map(Node::epoch);
        let Some(before) = before else {
            if let Some(node) = &mut self.nodes[parent as usize] {
                node.handle_unreachable(now, server, "it died");
            }
            return;
        };
        let link = self.link(parent, child);
        let above = self.nodes[parent as usize].as_ref().map(Node::id);
        if let (Some(node), Some(above)) = (&mut self.nodes[child as usize], above) {
            node.handle_parent_up(link, above, epoch);
        }
        if let Some(node) = &mut self.nodes[parent as usize] {
            node.handle_child_up(now, link, server, before);
        }
        self.drain(child);
    }

    fn drain(&mut self, at: u32) {
        while let Some(action) = self.nodes[at as usize].as_mut().and_then(Node::poll_action) {
            match action {
                Action::Send { link, message } => self.send(at, link, message),
                Action::Connect(request) => {
                    let item = Arrival::Connect(request.server, request.epoch);
                    self.enqueue(at, item);
                }
                Action::Close(link) => {
                    let other = self.other_end(link, at);
                    self.enqueue(other, Arrival::Down(link));
                }
                Action::Execute { id, tasks, .. } => self.execute(at, id, &tasks),
                Action::Deliver(Delivery::Answer {
                    blocks, missing, ..
                }) => {
                    self.missing.extend(missing);
                    let sources = blocks.iter().map(|block| &block.sources);
                    self.answered.union_with(&IdSet::union_all(sources));
                }
                _ => {}
            }
        }
        if let Some(node) = &mut self.nodes[at as usize] {
            match self.actions.capacity() {
                0 => node.swap_actions(&mut self.actions),
                _ => node.shrink(),
            }
        }
        self.cost.queue_peak = self.cost.queue_peak.max(self.queue.len() + self.sent.len());
        let next = self.nodes[at as usize]
            .as_ref()
            .and_then(Node::poll_timeout);
        if next != self.armed[at as usize] {
            self.armed[at as usize] = next;
            self.timers
                .extend(next.map(|next| std::cmp::Reverse((next, at))));
        }
    }

    fn send(&mut self, from: u32, link: LinkId, message: Message) {
        self.scratch.clear();
        frame::encode_message(&message, &mut self.scratch).expect("it is within the bounds");
        let bytes = self.scratch.len() as u64;
        self.cost.messages += 1;
        self.cost.bytes += bytes;
        if self.ends(link)[0] == self.top() {
            self.cost.root_bytes += bytes;
        }
        let other = self.other_end(link, from);
        let [upper, _] = self.ends(link);
        let top = self.top();
        let Some(paced) = &mut self.paced else {
            self.enqueue(other, Arrival::Message(link, message));
            return;
        };
        let is_top = upper == top;
        if upper == from && !is_top {
            paced.busy[from as usize] += paced.pace.child / 2;
        }
        let hop = if is_top {
            Duration::ZERO
        } else {
            paced.pace.hop
        };
        let arrives = paced.busy[from as usize] + hop;
        paced.sent += 1;
        let item = (other, Arrival::Message(link, message));
        paced.under_way.insert((arrives, paced.sent), item);
    }

    fn execute(&mut self, at: u32, id: CommandId, tasks: &IdSet) {
        self.spend_on_itself(at);
        let (now, answer) = (self.now, self.answer);
        for task in tasks {
            if let (Some(node), Some(answer)) = (&mut self.nodes[at as usize], answer(task)) {
                node.handle_local(now, id, &IdSet::single(task), Status::Ok, answer);
            }
        }
    }
}
