//! Every message survives the wire; every other sequence of bytes is an error, never a panic.

use crate::common::{message, output, plain_command, plan};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use sdm_core::codec::DecodeError;
use sdm_core::frame::{self, Deframer, Frame, HEADER_BYTES};
use sdm_core::limits::{
    BLOCKS_MAX, FRAME_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, TEXT_BYTES_MAX,
};
use sdm_core::message::*;
use sdm_core::node;
use sdm_idset::{IdSet, TaskId};

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_message(message, &mut out).expect("within the bounds");
    out
}

fn body(message: &Message) -> Bytes {
    Bytes::from(encoded(message)).slice(HEADER_BYTES..)
}

fn frames(parts: &[&[u8]]) -> Result<Vec<Frame>, DecodeError> {
    let mut deframer = Deframer::default();
    let mut all = Vec::new();
    for part in parts {
        let mut part = *part;
        while let Some(bytes) = deframer.poll_frame(&mut part)? {
            all.push(frame::decode(&bytes)?);
        }
    }
    Ok(all)
}

proptest! {
    #[test]
    fn messages_decode_at_any_chunk_size(messages in vec(message(), 1..4), cut: prop::sample::Index) {
        let mut stream = Vec::new();
        for message in &messages {
            stream.extend(encoded(message));
        }
        let expect: Result<Vec<_>, _> = Ok(messages.into_iter().map(Frame::Message).collect());
        let (head, tail) = stream.split_at(cut.index(stream.len()));
        prop_assert_eq!(&frames(&[head, tail]), &expect);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(&frames(&bytes), &expect);
    }

    #[test]
    fn member_never_panics_on_any_messages(steps in vec((any::<[u8; 2]>(), message()), 1..12)) {
        let mut life = Vec::new();
        for (step, message) in &steps {
            let body = body(message);
            let length = u16::try_from(body.len()).unwrap_or(0);
            life.extend(step);
            life.extend(length.to_le_bytes());
            life.extend(&body[..usize::from(length)]);
        }
        node::fuzz_member(&life);
        node::fuzz_front_end(&life);
    }

    #[test]
    fn a_message_cut_short_is_an_error(message in message()) {
        let bytes = body(&message);
        for len in 0..bytes.len() {
            prop_assert!(frame::decode(&bytes.slice(..len)).is_err(), "at {}", len);
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        prop_assert!(frame::decode(&longer.into()).is_err());
    }

    #[test]
    fn frame_slice_and_member_never_panic_on_any_bytes(bytes in vec(any::<u8>(), 0..400)) {
        frame::fuzz_frame(&bytes);
        frame::fuzz_message(&bytes);
        node::fuzz_slice(&bytes);
        node::fuzz_member(&bytes);
    }

    #[test]
    fn message_decoder_never_panics_on_any_body(kind in 0..9_u8, bytes in vec(0..8_u8, 0..200)) {
        let mut body = vec![kind];
        body.extend(bytes);
        frame::fuzz_message(&body);
    }

    #[test]
    fn decoders_never_panic_on_changed_messages(
        message in message(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encoded(&message);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        frame::fuzz_frame(&bytes);
        frame::fuzz_message(&bytes[HEADER_BYTES..]);
    }
}

#[test]
fn link_frames_decode_to_the_encoded_frame() {
    for frame in [
        Frame::Ping { nonce: 0 },
        Frame::Pong { nonce: u64::MAX },
        Frame::Credit { bytes: 65_536 },
    ] {
        let mut out = Vec::new();
        frame::encode(&frame, &mut out).unwrap();
        assert_eq!(frames(&[&out]), Ok(vec![frame]));
    }
}

#[test]
fn impossible_frame_lengths_are_refused() {
    let error = frames(&[&0_u32.to_le_bytes()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "received empty frame at byte 0 is invalid"
    );
    let large = u32::try_from(FRAME_BYTES_MAX).unwrap() + 1;
    let error = frames(&[&large.to_le_bytes()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "received frame at byte 0 exceeds the maximum of 16777216"
    );
}

#[test]
fn frame_length_alone_allocates_little() {
    let mut deframer = Deframer::default();
    let header = u32::try_from(FRAME_BYTES_MAX).unwrap().to_le_bytes();
    assert_eq!(deframer.poll_frame(&mut &header[..]), Ok(None));
    assert!(deframer.held_bytes() <= 16 << 10);
    assert_eq!(deframer.poll_frame(&mut &[0_u8; 100_000][..]), Ok(None));
    assert!(
        deframer.held_bytes() <= 200_000,
        "{}",
        deframer.held_bytes()
    );
}

#[test]
fn large_payloads_are_not_copied() {
    let bytes = body(&output(7, vec![1; 10_000]));
    let Ok(Frame::Message(Message::Event(event))) = frame::decode(&bytes) else {
        panic!("an event");
    };
    let range = bytes.as_ptr_range();
    assert!(range.contains(&event.blocks[0].payload.as_ptr()));
}

#[test]
fn message_above_a_bound_is_not_encoded() {
    #[track_caller]
    fn check(message: &Message, expect: &str) {
        let mut out = b"before".to_vec();
        let error = frame::encode_message(message, &mut out).unwrap_err();
        assert_eq!(error.to_string(), expect);
        assert_eq!(out, b"before");
    }
    let everyone = IdSet::all_below(8);
    let large = vec![0; PAYLOAD_BYTES_MAX + 1];
    check(
        &plain_command(1, everyone.clone(), large),
        "cannot send payload: it exceeds the maximum of 4194304",
    );
    let block = EventBlock {
        sources: everyone,
        payload: vec![0; PAYLOAD_BYTES_MAX].into(),
    };
    let event = |count| {
        Message::Event(EventMessage {
            lane: Lane::Control,
            age_us: 0,
            blocks: vec![block.clone(); count],
        })
    };
    check(
        &event(4),
        "cannot send frame: it exceeds the maximum of 16777216",
    );
    let empty = EventBlock {
        sources: IdSet::new(),
        payload: Bytes::new(),
    };
    let event = EventMessage {
        lane: Lane::Control,
        age_us: 0,
        blocks: vec![empty; BLOCKS_MAX + 1],
    };
    check(
        &Message::Event(event),
        "cannot send blocks: it exceeds the maximum of 4098",
    );
    let init = plan(0..1, &"h".repeat(NAME_BYTES_MAX + 1));
    check(&init, "cannot send name: it exceeds the maximum of 512");
}

#[test]
fn long_text_is_cut_and_decodes() {
    let change = ReachChange {
        tasks: IdSet::single(TaskId(3)),
        health: Health::Lost,
        why: "ä".repeat(TEXT_BYTES_MAX),
    };
    let Ok(Frame::Message(Message::Reach(got))) = frame::decode(&body(&Message::Reach(change)))
    else {
        panic!("a change of reach");
    };
    assert_eq!(got.why, "ä".repeat(TEXT_BYTES_MAX / 2));
}
