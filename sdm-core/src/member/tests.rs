//! Tests of the fast path: a leaf whose own tasks answer at once sends the same as one whose tasks answer later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::*;
use crate::ids::{Attempt, Epoch};
use crate::link::LinkEvent;
use crate::message::{Addresses, Answer, CommandMessage, Init, Message, PlanEntry, SyncPolicy};
use crate::node::LocalTasks;
use crate::secure::{Hello, Role, SessionKey, draw_session_id};

/// Tasks that answer each command with its payload, at once or later.
#[derive(Default)]
struct Repeaters {
    answer_later: bool,
    /// The commands that the tasks received.
    asked: Vec<(CommandId, IdSet, Vec<u8>)>,
}

impl LocalTasks for Repeaters {
    fn execute(
        &mut self,
        _now: Instant,
        id: CommandId,
        tasks: &IdSet,
        payload: &[u8],
    ) -> Option<(Status, Bytes)> {
        self.asked.push((id, tasks.clone(), payload.to_vec()));
        (!self.answer_later).then(|| (Status::Ok, Bytes::copy_from_slice(payload)))
    }
}

/// A leaf with the tasks 0 to 2, and the end of its parent's link.
struct Leaf {
    now: Instant,
    member: Member,
    link: LinkId,
    parent: Link,
    tasks: Option<Repeaters>,
}

impl Leaf {
    fn new(tasks: Option<Repeaters>) -> Self {
        let now = Instant::now();
        let config = LinkConfig::new(SessionKey::draw().unwrap(), draw_session_id().unwrap());
        let hello = Hello {
            role: Role::Parent,
            id: ServerId::MASTER,
            expect: Some(ServerId(0)),
            epoch: Epoch(1),
            incarnation: 0,
            build: String::new(),
            features: 0,
        };
        let parent = Link::initiate(now, &config, hello);
        let node = Node::new(ServerId(0), |_, _| None, now + Duration::from_secs(60));
        let mut member = Member::new(node, Arc::new(config));
        let link = member.accept(now).unwrap();
        let mut leaf = Self {
            now,
            member,
            link,
            parent,
            tasks,
        };
        let entry = PlanEntry {
            server: ServerId(0),
            subtree_count: 1,
            tasks: IdSet::all_below(3),
            host: "here".into(),
            addresses: Addresses::default(),
        };
        let init = Init {
            config: Config::default().into(),
            slice: Slice::new(vec![entry]),
        };
        let (_, ready) = leaf.told(&[Message::Init(Box::new(init))]);
        assert_eq!(ready.len(), 1);
        leaf
    }

    /// Sends some messages at once; returns the outputs for the owner, and the messages to the parent.
    fn told(&mut self, messages: &[Message]) -> (Vec<Output>, Vec<Message>) {
        for message in messages {
            self.parent.send(message).unwrap();
        }
        self.pump()
    }

    /// Moves bytes until none are left.
    fn pump(&mut self) -> (Vec<Output>, Vec<Message>) {
        let (mut outputs, mut up) = (Vec::new(), Vec::new());
        loop {
            outputs.extend(std::iter::from_fn(|| self.member.poll_output()));
            let (mut down, mut sent) = (Vec::new(), Vec::new());
            while self.parent.poll_transmit(&mut down) {}
            while self.member.poll_transmit(self.now, self.link, &mut sent) {}
            if down.is_empty() && sent.is_empty() {
                outputs.retain(|output| !matches!(output, Output::Write(_)));
                return (outputs, up);
            }
            let tasks = self.tasks.as_mut().map(|it| it as &mut dyn LocalTasks);
            self.member
                .handle_bytes(self.now, self.link, &mut down, tasks);
            self.parent.handle_bytes(self.now, &mut sent).unwrap();
            while let Some(event) = self.parent.poll_event() {
                if let LinkEvent::Message { message, .. } = event {
                    up.push(message);
                }
            }
            self.member.node().audit().unwrap();
        }
    }

    fn asked(&self) -> usize {
        self.tasks.as_ref().map_or(0, |tasks| tasks.asked.len())
    }
}

fn command(id: u64, attempt: u32, tasks: &str) -> Message {
    Message::Command(CommandMessage {
        id: CommandId(id),
        attempt: Attempt(attempt),
        destination: tasks.parse().unwrap(),
        lane: Lane::Control,
        sync: SyncPolicy::WaitForAll,
        rule: 0,
        rule_params: Bytes::new(),
        settled_below: CommandId(1),
        open: Vec::new(),
        payload: Bytes::from(format!("command {id}")),
    })
}

fn answer(messages: Vec<Message>) -> Answer {
    match &messages[..] {
        [Message::Answer(answer)] => answer.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn immediate_answer_equals_deferred_answer() {
    let mut quick = Leaf::new(Some(Repeaters::default()));
    let mut slow = Leaf::new(None);
    for (id, tasks) in [(1, "0-2"), (2, "1"), (3, "0,2")] {
        let (outputs, up) = quick.told(&[command(id, 1, tasks)]);
        assert!(outputs.is_empty(), "{outputs:?}");
        let (outputs, none) = slow.told(&[command(id, 1, tasks)]);
        assert!(none.is_empty());
        let [Output::Execute { id, tasks, payload }] = &outputs[..] else {
            panic!("{outputs:?}");
        };
        slow.member
            .handle_local(slow.now, *id, tasks, Status::Ok, payload.clone());
        let (_, later) = slow.pump();
        assert_eq!(answer(up), answer(later));
    }
    assert_eq!(quick.asked(), 3);
}

#[test]
fn repeated_command_is_answered_from_memory() {
    let mut leaf = Leaf::new(Some(Repeaters::default()));
    let (_, first) = leaf.told(&[command(1, 1, "0-2")]);
    let (outputs, again) = leaf.told(&[command(1, 2, "0-1")]);
    assert!(outputs.is_empty(), "{outputs:?}");
    let (first, again) = (answer(first), answer(again));
    assert_eq!(again.attempt, Attempt(2));
    assert_eq!(again.blocks[0].sources, "0-1".parse().unwrap());
    assert_eq!(again.blocks[0].payload, first.blocks[0].payload);
    assert_eq!(leaf.asked(), 1, "no task does it twice");
    // A settled command cannot be asked for again.
    let Message::Command(settling) = command(2, 3, "0-2") else {
        unreachable!("it is one");
    };
    let settling = CommandMessage {
        settled_below: CommandId(2),
        ..settling
    };
    leaf.told(&[Message::Command(settling)]);
    let (_, none) = leaf.told(&[command(1, 4, "0-2")]);
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(leaf.asked(), 2);
}

#[test]
fn deferred_answer_is_delivered_later() {
    let mut leaf = Leaf::new(Some(Repeaters {
        answer_later: true,
        ..Repeaters::default()
    }));
    let (outputs, none) = leaf.told(&[command(1, 1, "0-2")]);
    assert!(matches!(outputs[..], [Output::Begun(CommandId(1))]));
    assert!(none.is_empty());
    for task in [2, 0, 1] {
        let task = IdSet::single(TaskId(task));
        let payload = Bytes::from_static(b"late");
        let now = leaf.now;
        leaf.member
            .handle_local(now, CommandId(1), &task, Status::Ok, payload);
    }
    let (_, up) = leaf.pump();
    assert_eq!(answer(up).blocks[0].sources, IdSet::all_below(3));
    assert_eq!(leaf.asked(), 1);
}

#[test]
fn earlier_commands_and_events_precede_immediate_answers() {
    let mut leaf = Leaf::new(Some(Repeaters::default()));
    // Two in one record: in their order, through the owner.
    let (outputs, _) = leaf.told(&[command(1, 1, "0-2"), command(2, 2, "0-2")]);
    let executed = outputs.iter().map(|output| match output {
        Output::Execute { id, .. } => id.0,
        other => panic!("{other:?}"),
    });
    assert_eq!(executed.collect::<Vec<_>>(), [1, 2]);
    assert_eq!(leaf.asked(), 0);
    // An event that waits to be merged with others is sent before a later answer.
    let task = IdSet::single(TaskId(1));
    let (now, stopped) = (leaf.now, Bytes::from_static(b"stopped"));
    leaf.member
        .handle_local_event(now, Lane::Control, &task, stopped);
    let (outputs, _) = leaf.told(&[command(3, 3, "0-2")]);
    let [Output::Execute { id, tasks, payload }] = &outputs[..] else {
        panic!("{outputs:?}");
    };
    leaf.member
        .handle_local(now, *id, tasks, Status::Ok, payload.clone());
    let (_, up) = leaf.pump();
    assert!(
        matches!(up[..], [Message::Event(_), Message::Answer(_)]),
        "{up:?}"
    );
}
