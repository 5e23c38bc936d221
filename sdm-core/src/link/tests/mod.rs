//! Two ends of a link, connected in memory with a simulated clock. Tests of lanes, credit, queue bounds and memory.

mod handshake;
mod heartbeat;
mod laws;

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::*;
use crate::frame::WIRE_VERSION;
use crate::ids::SessionId;
use crate::ids::{CommandId, Epoch, ServerId};
use crate::limits::{BULK_START_BYTES, HANDSHAKE_WAIT, PING_AFTER, PINGS_UNANSWERED_MAX};
use crate::message::{EventBlock, EventMessage};
use crate::secure::Role;
use crate::secure::SessionKey;

fn config() -> LinkConfig {
    LinkConfig::new(SessionKey::from_bytes([7; 32]), SessionId([1; 8]))
}

fn hello(role: Role, id: u32, expect: Option<u32>) -> Hello {
    Hello {
        role,
        id: ServerId(id),
        expect: expect.map(ServerId),
        epoch: Epoch(1),
        incarnation: 0,
        build: "test".to_owned(),
        features: 0,
    }
}

fn control(id: u64) -> Message {
    Message::Cancel(CommandId(id))
}

fn output(bytes: usize) -> Message {
    Message::Event(EventMessage {
        lane: Lane::Bulk,
        age_us: 0,
        blocks: vec![EventBlock {
            sources: IdSet::single(TaskId(1)),
            payload: Bytes::from(vec![b'x'; bytes]),
        }],
    })
}

/// Two ends of a link and the wire between them, with a simulated clock.
struct Pair {
    now: Instant,
    parent: Link,
    child: Link,
}

impl Pair {
    /// Parent connects as the master and expects server 3; the child is server 3.
    fn new() -> Self {
        Self::of(
            &config(),
            hello(Role::Parent, 9, Some(3)),
            &config(),
            hello(Role::Child, 3, None),
        )
    }

    fn of(caller: &LinkConfig, from: Hello, called: &LinkConfig, to: Hello) -> Self {
        let now = Instant::now();
        Self {
            now,
            parent: Link::initiate(now, caller, from),
            child: Link::respond(now, called, to),
        }
    }

    fn up() -> Self {
        let mut pair = Self::new();
        pair.drive().unwrap();
        assert!(matches!(pair.parent.poll_event(), Some(LinkEvent::Up(_))));
        assert!(matches!(pair.child.poll_event(), Some(LinkEvent::Up(_))));
        pair
    }

    /// Carries bytes both ways until none move; the errors of both ends.
    fn drive_to_errors(&mut self) -> (Option<LinkError>, Option<LinkError>) {
        let mut errors = (None, None);
        for _ in 0..10_000 {
            let (mut down, mut up) = (Vec::new(), Vec::new());
            self.parent.poll_transmit(&mut down);
            self.child.poll_transmit(&mut up);
            if down.is_empty() && up.is_empty() {
                return errors;
            }
            if let Err(error) = self.child.handle_bytes(self.now, &mut down) {
                errors.1.get_or_insert(error);
            }
            if let Err(error) = self.parent.handle_bytes(self.now, &mut up) {
                errors.0.get_or_insert(error);
            }
        }
        panic!("the links never come to rest");
    }

    fn drive(&mut self) -> Result<(), LinkError> {
        match self.drive_to_errors() {
            (None, None) => Ok(()),
            (Some(error), _) | (None, Some(error)) => Err(error),
        }
    }
}

fn events(link: &mut Link) -> Vec<LinkEvent> {
    std::iter::from_fn(|| link.poll_event()).collect()
}

fn messages(link: &mut Link) -> Vec<Message> {
    let messages = events(link).into_iter().map(|event| match event {
        LinkEvent::Message { message, .. } => message,
        event => panic!("{event:?}"),
    });
    messages.collect()
}

#[test]
fn messages_flushed_together_share_one_encrypted_record() {
    let mut pair = Pair::up();
    for id in 0..100 {
        pair.parent.send(&control(id)).unwrap();
    }
    let mut out = Vec::new();
    assert!(pair.parent.poll_transmit(&mut out));
    let first = usize::from(u16::from_le_bytes([out[0], out[1]]));
    assert_eq!(out.len(), 2 + first);
    assert!(!pair.parent.poll_transmit(&mut out));
    pair.child.handle_bytes(pair.now, &mut out.clone()).unwrap();
    let expect: Vec<_> = (0..100).map(control).collect();
    assert_eq!(messages(&mut pair.child), expect);
}

#[test]
fn large_message_takes_the_fewest_possible_records() {
    let mut pair = Pair::up();
    let mut large = EventMessage {
        lane: Lane::Control,
        age_us: 0,
        blocks: Vec::new(),
    };
    large.blocks.push(EventBlock {
        sources: IdSet::new(),
        payload: Bytes::from(vec![1; 200_000]),
    });
    pair.parent.send(&Message::Event(large.clone())).unwrap();
    let mut out = Vec::new();
    pair.parent.poll_transmit(&mut out);
    assert!(out.len() < 200_000 + 4 * 18 + 64, "{}", out.len());
    for part in out.chunks(1000) {
        pair.child
            .handle_bytes(pair.now, &mut part.to_vec())
            .unwrap();
    }
    assert_eq!(messages(&mut pair.child), [Message::Event(large)]);
}

#[test]
fn bulk_stops_without_credit_and_resumes_with_it() {
    let mut pair = Pair::up();
    let chunk = BULK_CHUNK_BYTES_MAX;
    let count = 100;
    for _ in 0..count {
        pair.child.send(&output(chunk)).unwrap();
    }
    let mut received = 0;
    let mut bytes = 0;
    let mut peak = 0;
    while received < count {
        pair.drive().unwrap();
        let got = events(&mut pair.parent);
        assert!(
            !got.is_empty(),
            "credit is never lost: {received} of {count}"
        );
        let mut waiting = 0;
        for event in got {
            let LinkEvent::Message { bulk_bytes, .. } = event else {
                panic!("{event:?}");
            };
            waiting += bulk_bytes;
            received += 1;
            bytes += u64::from(bulk_bytes);
        }
        peak = peak.max(waiting);
        pair.parent.release(waiting);
    }
    assert_eq!(pair.child.bulk_backlog(), 0);
    assert!(bytes > (count * chunk) as u64);
    let one = u32::try_from(chunk).unwrap() + 100;
    assert!(peak <= BULK_START_BYTES + one, "{peak}");
}

#[test]
fn control_overtakes_bulk() {
    let mut pair = Pair::up();
    for _ in 0..20 {
        pair.child.send(&output(BULK_CHUNK_BYTES_MAX)).unwrap();
    }
    let mut out = Vec::new();
    pair.child.poll_transmit(&mut out);
    pair.child.send(&control(1)).unwrap();
    pair.child.poll_transmit(&mut out);
    pair.parent
        .handle_bytes(pair.now, &mut out.clone())
        .unwrap();
    let got = messages(&mut pair.parent);
    assert_eq!(got[1], control(1), "behind one chunk");
    // And with no credit left at all.
    pair.drive().unwrap();
    assert!(pair.child.bulk_backlog() > 0);
    pair.child.send(&control(2)).unwrap();
    pair.drive().unwrap();
    assert_eq!(messages(&mut pair.parent).last(), Some(&control(2)));
}

#[test]
fn frame_larger_than_remaining_credit_is_sent() {
    let mut pair = Pair::up();
    pair.parent.set_bulk_window(1000);
    for bytes in [
        900,
        BULK_FRAME_BYTES_MAX - 64,
        900,
        BULK_FRAME_BYTES_MAX - 64,
    ] {
        pair.child.send(&output(bytes)).unwrap();
    }
    let mut received = 0;
    for _ in 0..4 {
        pair.drive().unwrap();
        for event in events(&mut pair.parent) {
            if let LinkEvent::Message { bulk_bytes, .. } = event {
                received += 1;
                pair.parent.release(bulk_bytes);
            }
        }
    }
    assert_eq!(received, 4);
}

#[test]
fn resized_credit_window_admits_bulk_up_to_its_new_size() {
    let mut pair = Pair::up();
    pair.parent.set_bulk_window(32 * (32 << 10));
    for _ in 0..100 {
        pair.child.send(&output(BULK_CHUNK_BYTES_MAX)).unwrap();
    }
    pair.drive().unwrap();
    let got = messages(&mut pair.parent).len();
    assert_eq!(got, 32);
}

#[test]
fn bulk_without_credit_ends_the_link() {
    let mut pair = Pair::up();
    for _ in 0..20 {
        pair.child.send(&output(BULK_CHUNK_BYTES_MAX)).unwrap();
    }
    pair.child.credit.granted(u32::MAX);
    assert_eq!(pair.drive(), Err(LinkError::CreditExceeded));
    assert_eq!(
        pair.parent.send(&control(1)),
        Err(LinkError::CreditExceeded)
    );
}

#[test]
fn link_queues_are_bounded() {
    let mut pair = Pair::up();
    let error = loop {
        if let Err(error) = pair.child.send(&output(BULK_FRAME_BYTES_MAX - 64)) {
            break error;
        }
    };
    assert_eq!(
        error.to_string(),
        "the bulk lane of the connection exceeds its limit of 67108864 bytes"
    );
    let error = pair.parent.send(&output(BULK_FRAME_BYTES_MAX)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot send bulk frame: it exceeds the maximum of 1048576"
    );
    assert!(pair.parent.is_up(), "what cannot be sent breaks nothing");
    let large = EventMessage {
        lane: Lane::Control,
        age_us: 0,
        blocks: vec![EventBlock {
            sources: IdSet::new(),
            payload: Bytes::from(vec![0; 4 << 20]),
        }],
    };
    let large = Message::Event(large);
    let error = loop {
        if let Err(error) = pair.parent.send(&large) {
            break error;
        }
    };
    assert_eq!(
        error.to_string(),
        "the control lane of the connection exceeds its limit of 67108864 bytes"
    );
    assert!(!pair.parent.is_up());
}

#[test]
fn record_with_changed_length_ends_the_link() {
    let mut pair = Pair::up();
    let mut wire = Vec::new();
    let mut ended = None;
    for round in 0..10 {
        pair.now += PING_AFTER;
        pair.parent.handle_timeout(pair.now).unwrap();
        wire.clear();
        pair.parent.poll_transmit(&mut wire);
        // The record's length is in the first two bytes; this length makes all following bytes part of one record.
        wire[1] |= if round == 0 { 0x40 } else { 0 };
        pair.child
            .handle_bytes(pair.now, &mut wire.clone())
            .unwrap();
        ended = pair.child.handle_timeout(pair.now).err();
        // The child's pings arrive, so for the parent the child is not silent.
        let mut up = Vec::new();
        pair.child.poll_transmit(&mut up);
        pair.parent.handle_bytes(pair.now, &mut up.clone()).unwrap();
        if ended.is_some() {
            break;
        }
    }
    assert_eq!(ended, Some(LinkError::EndlessRecord));
    assert_eq!(events(&mut pair.parent), []);
}

#[test]
fn idle_link_uses_little_memory() {
    assert!(size_of::<Link>() <= 640, "{}", size_of::<Link>());
    let mut pair = Pair::up();
    for _ in 0..50 {
        pair.child.send(&output(BULK_CHUNK_BYTES_MAX)).unwrap();
        pair.drive().unwrap();
        for event in events(&mut pair.parent) {
            if let LinkEvent::Message { bulk_bytes, .. } = event {
                pair.parent.release(bulk_bytes);
            }
        }
    }
    pair.drive().unwrap();
    for link in [&pair.parent, &pair.child] {
        let records = link.records.as_ref().unwrap();
        assert!(link.control.capacity() + records.held_bytes() <= 3 * IDLE_BYTES_MAX);
        assert!(link.events.capacity() <= 16);
        assert!(link.bulk.capacity() <= 64);
        assert_eq!(link.deframer.held_bytes() + link.plain_out.capacity(), 0);
    }
}
