//! Entry points for fuzzers: a member under any input that a holder of the key can send.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::{Action, Delivery, LinkId, Node, Submission};
use crate::codec::{decode_message, decode_slice, encode_slice};
use crate::config::Config;
use crate::ids::{CommandId, Epoch, ServerId};
use crate::message::{Addresses, ExchangeId, Init, Lane, Message, PlanEntry, Slice, Status};
use crate::topology::Topology;

/// The id of the member under test: plans for another member are refused.
const ME: ServerId = ServerId(0);

/// Maximum number of actions of one step, more than any member needs whose plan is as long as an input.
const ACTIONS_MAX: usize = 1 << 20;

/// Feeds a member the steps that the input encodes: messages of its parent and of its children,
/// links that come and go, answers and events of its own tasks, time. A step is its kind in one
/// byte and a number in another; a message follows with its length in two bytes, little endian.
///
/// | kind | step |
/// | --- | --- |
/// | 0 | the parent's message; at the front-end its user's command |
/// | 1 | the message of a child |
/// | 2 | the parent's link is lost, and another parent comes |
/// | 3 to 8 | a child: is up, is lost, cannot be reached, does not answer, is silent, is alive |
/// | 9 | time passes |
/// | 10, 11 | own tasks: answer, say something |
/// | 12 | there is no room for bulk data, or there is again |
/// | 13 | own tasks take part in an exchange with all of this plan |
///
/// # Panics
/// If the member panics, or an invariant is violated afterwards ([`Node::audit`]).
pub fn fuzz_member(bytes: &[u8]) {
    Fuzz::new(ME).live(bytes);
}

/// Passes the same steps to the front-end's end of a tree; its only child is the master.
///
/// # Panics
/// If the member panics, an invariant is violated afterwards, or a task answers a command twice.
pub fn fuzz_front_end(bytes: &[u8]) {
    Fuzz::front_end().live(bytes);
}

/// Decodes the bytes as a slice. A decoded slice must survive encoding and decoding. A member that gets the slice as
/// its plan either refuses it, or can use it. To show that, the children are adopted, then their children, and so on.
///
/// # Panics
/// If a property of the codec does not hold, the member panics, or an invariant is violated.
pub fn fuzz_slice(bytes: &[u8]) {
    let Ok(slice) = decode_slice(&Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let mut out = Vec::new();
    encode_slice(&slice, &mut out).expect("what was read within the bounds can be written");
    let again = decode_slice(&Bytes::from(out));
    assert_eq!(again.as_ref(), Ok(&slice), "a slice survives");

    let mut fuzz = Fuzz::new(slice.first().map_or(ME, |first| first.server));
    let init = Message::Init(Box::new(Init {
        config: Config::default().into(),
        slice: Slice::new(slice),
    }));
    fuzz.message(fuzz.node.parent_link(), Some(init));
    fuzz.settle();
    for _ in 0..GENERATIONS_MAX {
        let Some((server, _)) = fuzz.child(0) else {
            break;
        };
        fuzz.node
            .handle_unreachable(fuzz.now, server, "out of reach");
        fuzz.settle();
    }
}

/// Maximum number of levels of the tree that are adopted one after the other; deeper levels are like the ones before.
const GENERATIONS_MAX: usize = 8;

const KINDS: u8 = 14;

fn take_message(rest: &mut &[u8]) -> Option<Message> {
    let [low, high, after @ ..] = *rest else {
        *rest = &[];
        return None;
    };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
    let (body, after) = after.split_at(len);
    *rest = after;
    decode_message(&Bytes::copy_from_slice(body)).ok()
}

struct Fuzz {
    node: Node,
    now: Instant,
    next_link: u64,
    /// Commands that own tasks of the member still have to answer, each with these tasks.
    executing: BTreeMap<CommandId, IdSet>,
    /// Tasks whose answers the front-end's user received, by command.
    delivered: BTreeMap<CommandId, IdSet>,
    paused: bool,
}

impl Fuzz {
    /// A member whose parent is connected.
    fn new(me: ServerId) -> Self {
        let now = Instant::now();
        let node = Node::new(me, |_, _| None, now + Duration::from_secs(60));
        let mut fuzz = Self::with(node, now);
        let link = fuzz.link();
        fuzz.node.handle_parent_up(link, ServerId(99), Epoch(1));
        fuzz
    }

    /// The root over a master with a server for each of a dozen tasks.
    fn front_end() -> Self {
        let now = Instant::now();
        let entry = |server, tasks| PlanEntry {
            server,
            subtree_count: 0,
            tasks,
            host: "".into(),
            addresses: Addresses::default(),
        };
        let servers = (0..12).map(|id| entry(ServerId(id), IdSet::single(TaskId(id))));
        let master = entry(ServerId::MASTER, IdSet::new());
        let plan = Topology::Binomial.plan(master, servers.collect());
        let mut node = Node::root(now, |_, _| None);
        node.start(now, Config::default(), Slice::new(plan))
            .expect("a tree");
        Self::with(node, now)
    }

    fn with(node: Node, now: Instant) -> Self {
        Self {
            node,
            now,
            next_link: 0,
            executing: BTreeMap::new(),
            delivered: BTreeMap::new(),
            paused: false,
        }
    }

    fn live(mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [kind, number, after @ ..] = rest {
            rest = after;
            let kind = *kind % KINDS;
            let message = (kind < 2).then(|| take_message(&mut rest)).flatten();
            self.step(kind, *number, message);
            self.settle();
        }
    }

    fn link(&mut self) -> LinkId {
        self.next_link += 1;
        LinkId(self.next_link)
    }

    /// The child with this number, modulo the number of children, and its link; `None` if there are no children.
    fn child(&self, number: u8) -> Option<(ServerId, Option<LinkId>)> {
        let children: Vec<_> = self.node.children().collect();
        let at = usize::from(number).checked_rem(children.len())?;
        Some(children[at])
    }

    fn step(&mut self, kind: u8, number: u8, message: Option<Message>) {
        let now = self.now;
        match kind {
            0 if self.node.id() == ServerId::FRONT_END => self.submit(message),
            0 | 1 => {
                let link = if kind == 0 {
                    self.node.parent_link()
                } else {
                    self.child(number).and_then(|(_, link)| link)
                };
                self.message(link, message);
            }
            2 => {
                if let Some(link) = self.node.parent_link() {
                    self.node.handle_link_down(now, link, "lost");
                }
                let link = self.link();
                let epoch = Epoch(self.node.epoch().0.saturating_add(number.into()));
                self.node.handle_parent_up(link, ServerId(99), epoch);
            }
            9 => {
                self.now += Duration::from_millis(1 << (number % 24));
                self.node.handle_timeout(self.now);
            }
            10 => self.answer(number),
            11 => {
                let lane = [Lane::Control, Lane::Bulk][usize::from(number % 2)];
                let (tasks, payload) = (self.node.local().clone(), Bytes::from(vec![number]));
                self.node.handle_local_event(now, lane, &tasks, payload);
            }
            12 => {
                self.paused = !self.paused;
                self.node.set_bulk_paused(now, self.paused);
            }
            13 => {
                let mut tasks = self.node.reach();
                tasks.union_with(self.node.local());
                let id = ExchangeId {
                    tasks,
                    number: u32::from(number / 16),
                };
                let bytes = Bytes::from(vec![number; usize::from(number % 16)]);
                self.node.exchange(&id, &[bytes]);
            }
            _ => self.step_of_child(kind, number),
        }
    }

    fn submit(&mut self, message: Option<Message>) {
        let Some(Message::Command(command)) = message else {
            return;
        };
        let submission = Submission {
            destination: command.destination,
            lane: command.lane,
            sync: command.sync,
            rule: command.rule,
            rule_params: command.rule_params,
            payload: command.payload,
        };
        self.node.submit(self.now, submission);
    }

    /// Hands a message over as its receiver does: one that breaks the protocol ends its link.
    fn message(&mut self, link: Option<LinkId>, message: Option<Message>) {
        let (Some(link), Some(message)) = (link, message) else {
            return;
        };
        if let Err(error) = self.node.handle_message(self.now, link, message) {
            self.node.handle_link_down(self.now, link, &error.0);
        }
    }

    fn step_of_child(&mut self, kind: u8, number: u8) {
        let Some((server, link)) = self.child(number) else {
            return;
        };
        let now = self.now;
        match (kind, link) {
            (3, None) => {
                let link = self.link();
                let epoch = Epoch(if number > 240 {
                    u32::MAX
                } else {
                    number.into()
                });
                self.node.handle_child_up(now, link, server, epoch);
            }
            (4, Some(link)) => self.node.handle_link_down(now, link, "lost"),
            (5, _) => self.node.handle_unreachable(now, server, "out of reach"),
            (6, _) => self.node.handle_unanswered(now, server),
            (7, Some(link)) => self.node.handle_link_silent(now, link),
            (8, Some(link)) => self.node.handle_link_alive(now, link),
            _ => {}
        }
    }

    /// Gives the answer of own tasks to the oldest command. With an even number only one task answers.
    fn answer(&mut self, number: u8) {
        let Some(mut waiting) = self.executing.first_entry() else {
            return;
        };
        let id = *waiting.key();
        let tasks = match waiting.get().iter().next() {
            Some(first) if number.is_multiple_of(2) => IdSet::single(first),
            _ => waiting.get().clone(),
        };
        waiting.get_mut().subtract(&tasks);
        if waiting.get().is_empty() {
            waiting.remove();
        }
        let status = [Status::Ok, Status::Failed][usize::from(number / 2 % 2)];
        let payload = Bytes::from(vec![number % 8]);
        self.node
            .handle_local(self.now, id, &tasks, status, payload);
    }

    /// Carries out the member's actions, and checks its invariants.
    fn settle(&mut self) {
        self.drain();
        let links = match self.node.has_exchanges() {
            true => 0..=self.next_link,
            false => 0..=0,
        };
        for link in links.map(LinkId) {
            while self.node.feed(link) {
                self.drain();
            }
        }
        if let Err(what) = self.node.audit() {
            panic!("{what}");
        }
    }

    fn drain(&mut self) {
        for _ in 0..ACTIONS_MAX {
            match self.node.poll_action() {
                None => return,
                Some(Action::Execute { id, tasks, .. }) => {
                    self.executing.insert(id, tasks);
                }
                Some(Action::Deliver(Delivery::Answer { id, blocks, .. })) => {
                    let delivered = self.delivered.entry(id).or_default();
                    for block in blocks {
                        let again = delivered.intersection(&block.sources);
                        assert!(again.is_empty(), "tasks {again} answer {id} twice");
                        delivered.union_with(&block.sources);
                    }
                }
                Some(Action::End(_)) => self.node.handle_local_down(self.now),
                Some(_) => {}
            }
        }
        panic!("a member never comes to an end");
    }
}
