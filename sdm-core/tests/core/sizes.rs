//! Sizes of encoded messages.

use crate::common::{plain_command, plan};
use bytes::Bytes;
use sdm_core::CommandId;
use sdm_core::frame::{self, Frame, HEADER_BYTES};
use sdm_core::limits::FRAME_BYTES_MAX;
use sdm_core::message::*;
use sdm_idset::{IdSet, TaskId};

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_message(message, &mut out).expect("within the bounds");
    out
}

fn body(message: &Message) -> Bytes {
    Bytes::from(encoded(message)).slice(HEADER_BYTES..)
}

#[test]
fn command_and_answer_of_a_million_tasks_take_few_bytes() {
    let million = IdSet::all_below(1_000_000);
    let payload = b"print x".to_vec();
    let uniform = encoded(&plain_command(70_000, million.clone(), payload.clone()));
    assert!(uniform.len() - payload.len() < 64, "{}", uniform.len());

    let single = encoded(&plain_command(
        70_000,
        IdSet::single(TaskId(999_999)),
        payload,
    ));
    assert!(single.len() < 64, "{}", single.len());

    let answer = encoded(&Message::Answer(Answer {
        id: CommandId(70_000),
        attempt: Default::default(),
        age_us: 0,
        blocks: vec![Block {
            status: Status::Ok,
            sources: million,
            payload: Bytes::new(),
        }],
        missing: Vec::new(),
        lost: IdSet::new(),
    }));
    assert!(answer.len() < 64, "{}", answer.len());

    let cancel = encoded(&Message::Cancel(CommandId(70_000)));
    assert_eq!(cancel.len(), HEADER_BYTES + 1 + 3);
}

#[test]
fn a_plan_of_a_million_servers_fits_into_one_frame() {
    let plan = plan(0..1_000_000, "node");
    let bytes = body(&plan);
    assert!(bytes.len() <= FRAME_BYTES_MAX, "{}", bytes.len());
    assert!(frame::decode(&bytes) == Ok(Frame::Message(plan)));
}
