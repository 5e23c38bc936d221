//! Benchmark part: the node without links, and the messages that pass through it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use sdm_core::aggregate::Merge;
use sdm_core::ids::{Attempt, Epoch};
use sdm_core::message::{
    Answer, Block, CommandMessage, Init, Lane, Message, PlanEntry, Slice, Status, SyncPolicy,
};
use sdm_core::node::{Action, LinkId, Node};
use sdm_core::topology::Topology;
use sdm_core::{CommandId, Config, ServerId};
use sdm_idset::{IdSet, TaskId};

use crate::meter::{Round, metered};

/// The length of a command's payload and of its answer's.
pub(super) const PAYLOAD_BYTES: usize = 200;
/// Server id of the measured member.
pub(super) const ME: ServerId = ServerId(0);
const PARENT: LinkId = LinkId(1000);

pub(super) fn no_rules(_number: u16, _params: &[u8]) -> Option<Box<dyn Merge>> {
    None
}

/// A node that has received no message yet.
pub(super) fn fresh(now: Instant) -> Node {
    Node::new(ME, no_rules, now + Duration::from_secs(3600))
}

/// The message that gives the measured member its plan: itself and its children, with one task each. A child's port
/// equals its server id.
pub(super) fn init(children: u32) -> Message {
    let entry = |server: u32| PlanEntry {
        server: ServerId(server),
        subtree_count: 0,
        tasks: IdSet::single(TaskId(server)),
        host: "here".into(),
        addresses: [format!("tcp://127.0.0.1:{server}")].iter().collect(),
    };
    let plan = Topology::Flat.plan(entry(ME.0), (1..=children).map(entry).collect());
    Message::Init(Box::new(Init {
        config: Config::default().into(),
        slice: Slice::new(plan),
    }))
}

/// A command to a member and its `children` children.
pub(super) fn command(id: u32, children: u32) -> Message {
    Message::Command(CommandMessage {
        id: CommandId(id.into()),
        attempt: Attempt(id),
        destination: IdSet::all_below(children + 1),
        lane: Lane::Control,
        sync: SyncPolicy::TimeOut { ms: 120_000 },
        rule: 0,
        rule_params: Bytes::new(),
        settled_below: CommandId(id.into()),
        open: Vec::new(),
        payload: Bytes::from_static(&[7; PAYLOAD_BYTES]),
    })
}

/// The answer of all `sources` to a command.
pub(super) fn answer(id: CommandId, attempt: Attempt, sources: IdSet) -> Message {
    let payload = match id {
        CommandId::INIT => Bytes::new(),
        _ => Bytes::from_static(&[7; PAYLOAD_BYTES]),
    };
    Message::Answer(Answer {
        id,
        attempt,
        age_us: 0,
        blocks: vec![Block {
            status: Status::Ok,
            sources,
            payload,
        }],
        missing: Vec::new(),
        lost: IdSet::new(),
    })
}

/// A child's answer to a message.
pub(super) fn reply(message: &Message) -> Result<Message> {
    Ok(match message {
        Message::Init(init) => answer(CommandId::INIT, Attempt(0), init.slice[0].tasks.clone()),
        Message::Command(command) => {
            answer(command.id, command.attempt, command.destination.clone())
        }
        other => bail!("a child is sent {other:?}"),
    })
}

/// The sources of an answer's first block.
///
/// # Errors
/// The message is no answer, or has no block.
pub(super) fn answered(message: Option<Message>) -> Result<IdSet> {
    let Some(Message::Answer(answer)) = message else {
        bail!("expected an answer, not {message:?}");
    };
    let block = answer.blocks.into_iter().next();
    Ok(block.context("an answer without a block")?.sources)
}

struct AloneMessages {
    node: Node,
    now: Instant,
    children: u32,
    /// The messages that the node sends, each with its link.
    sent: Vec<(LinkId, Message)>,
}

/// A round of a node with `children` children and without links: one command to all and its merged answer.
pub(super) fn node(children: u32) -> Result<Round> {
    let now = Instant::now();
    let mut alone = AloneMessages {
        node: fresh(now),
        now,
        children,
        sent: Vec::new(),
    };
    alone
        .node
        .handle_parent_up(PARENT, ServerId::MASTER, Epoch(1));
    alone.exchange(init(children))?;
    let mut id = 0;
    Ok(Box::new(move || {
        id += 1;
        alone.exchange(command(id, children))
    }))
}

impl AloneMessages {
    /// Delivers a message of the parent, and all children's replies to it.
    fn exchange(&mut self, message: Message) -> Result<()> {
        metered(|| self.take(PARENT, message))?;
        for at in (0..self.children as usize).rev() {
            let (link, message) = &self.sent[at];
            let (link, reply) = (*link, reply(message)?);
            self.sent.swap_remove(at);
            metered(|| self.take(link, reply))?;
        }
        let up = self.sent.pop().map(|(_, message)| message);
        ensure!(answered(up)?.len() == u64::from(self.children) + 1);
        Ok(())
    }

    fn take(&mut self, link: LinkId, message: Message) -> Result<()> {
        self.node.handle_message(self.now, link, message)?;
        while let Some(action) = self.node.poll_action() {
            match action {
                Action::Send { link, message } => self.sent.push((link, message)),
                Action::Connect(request) => {
                    let (link, server) = (LinkId(request.server.0.into()), request.server);
                    self.node.handle_child_up(self.now, link, server, Epoch(0));
                }
                Action::Execute { id, tasks, payload } => {
                    self.node
                        .handle_local(self.now, id, &tasks, Status::Ok, payload);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A round that only clones the messages that a node with `children` children sends.
#[expect(clippy::unnecessary_wraps, reason = "as all parts")]
pub(super) fn clones(children: u32) -> Result<Round> {
    let down = command(1, children);
    let up = answer(CommandId(1), Attempt(1), IdSet::all_below(children + 1));
    let mut sent = Vec::with_capacity(children as usize + 1);
    Ok(Box::new(move || {
        metered(|| {
            sent.extend((0..children).map(|_| down.clone()));
            sent.push(up.clone());
        });
        sent.clear();
        Ok(())
    }))
}
