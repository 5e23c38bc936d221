//! Sample messages of the tree, frames, failures, and the plain bytes in front of a handshake.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_core::frame::{self, Frame, HEADER_BYTES};
use sdm_core::link::{Link, LinkConfig};
use sdm_core::message::{
    Answer, Block, CommandMessage, Datagram, EndPolicy, EventBlock, EventMessage, ExchangeId,
    ExchangeMessage, ExchangeStep, Health, Init, Lane, Message, Piece, PlanEntry, ReachChange,
    Slice, Status, SyncPolicy,
};
use sdm_core::secure::{Hello, Role, SessionKey};
use sdm_core::{Attempt, CommandId, Config, Epoch, ServerId, SessionId};
use sdm_debug::{Failure, FailureCode};
use sdm_idset::TaskId;

use super::kept::Entry;
use super::{every, set};

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = vec![preface()];
    let every = [
        frames(),
        syncs(),
        lanes(),
        statuses(),
        healths(),
        policies(),
        steps(),
    ];
    for (name, frame) in every.into_iter().flatten() {
        let mut bytes = Vec::new();
        frame::encode(&frame, &mut bytes).expect("it is within the bounds");
        let body = Bytes::from(bytes.clone()).slice(HEADER_BYTES..);
        assert_eq!(frame::decode(&body), Ok(frame), "{name} comes back");
        entries.push(Entry { name, bytes });
    }
    entries.extend(failures());
    entries
}

/// The plain bytes that both ends send before the handshake.
fn preface() -> Entry {
    let config = LinkConfig::new(SessionKey::from_bytes([7; 32]), SessionId([1; 8]));
    let hello = Hello {
        role: Role::Parent,
        id: ServerId(1),
        expect: None,
        epoch: Epoch(2),
        incarnation: 0,
        build: "a build".to_owned(),
        features: 0,
    };
    let mut bytes = Vec::new();
    Link::initiate(Instant::now(), &config, hello).poll_transmit(&mut bytes);
    bytes.truncate(8);
    Entry {
        name: "preface".to_owned(),
        bytes,
    }
}

fn frames() -> Vec<(String, Frame)> {
    let mut frames = every!(Frame:
        Frame::Message(_) => Frame::Message(Message::Leave),
        Frame::Ping { .. } => Frame::Ping { nonce: 300 },
        Frame::Pong { .. } => Frame::Pong { nonce: 300 },
        Frame::Credit { .. } => Frame::Credit { bytes: 65_536 },
    );
    frames.remove(0);
    let messages = every!(Message:
        Message::Init(_) => init(),
        Message::Plan(_) => Message::Plan(slice()),
        Message::Command(_) => Message::Command(command()),
        Message::Cancel(_) => Message::Cancel(CommandId(u64::MAX)),
        Message::End(_) => Message::End(EndPolicy::KillStarted),
        Message::Answer(_) => Message::Answer(answer()),
        Message::Event(_) => Message::Event(event(Lane::Control)),
        Message::Reach(_) => reach(Health::Reachable),
        Message::Leave => Message::Leave,
        Message::Ended => Message::Ended,
        Message::Exchange(_) => exchange(ExchangeStep::Taken(set("3-4"))),
        Message::Datagram(_) => letter(),
    );
    frames.extend(framed(messages));
    frames
}

fn framed(messages: Vec<(String, Message)>) -> impl Iterator<Item = (String, Frame)> {
    let framed = |(name, message)| (name, Frame::Message(message));
    messages.into_iter().map(framed)
}

/// One message for each variant of one of its fields.
fn messages<T>(parts: Vec<(String, T)>, message: fn(T) -> Message) -> Vec<(String, Frame)> {
    let messages = parts.into_iter().map(|(name, part)| (name, message(part)));
    framed(messages.collect()).collect()
}

fn syncs() -> Vec<(String, Frame)> {
    let every = every!(SyncPolicy:
        SyncPolicy::WaitForAll => SyncPolicy::WaitForAll,
        SyncPolicy::TimeOut { .. } => SyncPolicy::TimeOut { ms: 5000 },
        SyncPolicy::DontWait => SyncPolicy::DontWait,
    );
    messages(every, |sync| {
        Message::Command(CommandMessage { sync, ..command() })
    })
}

fn lanes() -> Vec<(String, Frame)> {
    let every = every!(Lane:
        Lane::Control => Lane::Control,
        Lane::Bulk => Lane::Bulk,
    );
    messages(every, |lane| Message::Event(event(lane)))
}

fn statuses() -> Vec<(String, Frame)> {
    let every = every!(Status:
        Status::Ok => Status::Ok,
        Status::Failed => Status::Failed,
        Status::Others => Status::Others,
    );
    messages(every, |status| {
        let blocks = vec![Block {
            status,
            ..answer().blocks.remove(0)
        }];
        Message::Answer(Answer { blocks, ..answer() })
    })
}

fn healths() -> Vec<(String, Frame)> {
    let every = every!(Health:
        Health::Reachable => Health::Reachable,
        Health::Silent => Health::Silent,
        Health::Lost => Health::Lost,
    );
    messages(every, reach)
}

fn policies() -> Vec<(String, Frame)> {
    let every = every!(EndPolicy:
        EndPolicy::KillStarted => EndPolicy::KillStarted,
        EndPolicy::Detach => EndPolicy::Detach,
    );
    messages(every, Message::End)
}

fn steps() -> Vec<(String, Frame)> {
    let every = every!(ExchangeStep:
        ExchangeStep::Given { .. } => ExchangeStep::Given {
            empty: set("5-6"),
            pieces: vec![Piece {
                sources: set("3-4"),
                total: 300,
                offset: 200,
                bytes: Bytes::from_static(b"given"),
            }],
        },
        ExchangeStep::Taken(_) => ExchangeStep::Taken(set("3-6")),
        ExchangeStep::All { .. } => ExchangeStep::All {
            total: 1 << 20,
            offset: 300,
            bytes: Bytes::from_static(b"given by all"),
        },
        ExchangeStep::Failed { .. } => ExchangeStep::Failed {
            lost: set("7"),
            why: "task 7 cannot be reached".to_owned(),
        },
    );
    messages(every, exchange)
}

fn exchange(step: ExchangeStep) -> Message {
    let tasks = set("3-7");
    let id = ExchangeId { tasks, number: 2 };
    Message::Exchange(Box::new(ExchangeMessage { id, step }))
}

fn letter() -> Message {
    Message::Datagram(Box::new(Datagram {
        to: set("300"),
        from: TaskId(7),
        number: 1000,
        is_brought: true,
        bytes: Bytes::from_static(b"a letter"),
    }))
}

/// An entry for each failure code. Code 0 stands for all numbers that this version does not know.
fn failures() -> Vec<Entry> {
    let codes = (0..=u16::MAX).map(|number| (number, FailureCode::from_number(number)));
    let known = codes.filter(|(number, code)| *number == code.number());
    let entry = |(_, code): (u16, FailureCode)| Entry {
        name: format!("failure: {}", code.name()),
        bytes: Failure::new(code, "no").with_hint("run").encode().to_vec(),
    };
    known.map(entry).collect()
}

fn init() -> Message {
    let ms = Duration::from_millis;
    let config = Config {
        start_wait: ms(60_000),
        grace: ms(200),
        event_window: ms(5),
        ping_after: ms(2000),
        pings_unanswered_max: 2,
        rejoin_wait: ms(10_000),
        orphan_wait: ms(5001),
        bulk_window_bytes: 1 << 18,
        classes_max: 1024,
        partial: true,
        on_lost: EndPolicy::Detach,
        backend: Bytes::from_static(b"backend"),
    };
    let (config, slice) = (config.into(), slice());
    Message::Init(Box::new(Init { config, slice }))
}

fn slice() -> Slice {
    let entry = |server, subtree_count, tasks, host: &str, addresses: &[&str]| PlanEntry {
        server: ServerId(server),
        subtree_count,
        tasks: set(tasks),
        host: host.into(),
        addresses: addresses.iter().collect(),
    };
    Slice::new(vec![
        entry(4, 2, "64-79", "node7", &["tcp://10.0.0.7:4000"]),
        entry(
            5,
            1,
            "80-95",
            "node8",
            &["tcp://10.0.0.8:4000-4015", "unix:/a"],
        ),
    ])
}

fn command() -> CommandMessage {
    CommandMessage {
        id: CommandId(300),
        attempt: Attempt(2),
        destination: set("0-62,64-999"),
        lane: Lane::Control,
        sync: SyncPolicy::WaitForAll,
        rule: 2,
        rule_params: Bytes::from_static(b"rule"),
        settled_below: CommandId(5),
        open: vec![CommandId(3), CommandId(4)],
        payload: Bytes::from_static(b"payload"),
    }
}

fn answer() -> Answer {
    Answer {
        id: CommandId(9),
        attempt: Attempt(1),
        age_us: 77,
        blocks: vec![Block {
            status: Status::Ok,
            sources: set("0-9"),
            payload: Bytes::from_static(b"payload"),
        }],
        missing: vec![(set("10-15"), "server 3: quiet".to_owned())],
        lost: set("16"),
    }
}

fn event(lane: Lane) -> EventMessage {
    EventMessage {
        lane,
        age_us: 3,
        blocks: vec![EventBlock {
            sources: set("0-998/2"),
            payload: Bytes::from_static(b"payload"),
        }],
    }
}

fn reach(health: Health) -> Message {
    Message::Reach(ReachChange {
        tasks: set("64-79"),
        health,
        why: "server 9: quiet".to_owned(),
    })
}
