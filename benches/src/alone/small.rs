//! Small benchmark parts that need no other member.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use sdm_core::CommandId;
use sdm_core::aggregate::Aggregate;
use sdm_core::message::{Block, Status};
use sdm_debug::command::StartSpec;
use sdm_debug::{Backend as _, BackendOutput, Command, wire};
use sdm_fake::{FakeBackend, Scenario};
use sdm_idset::{IdSet, TaskId};

use super::messages::PAYLOAD_BYTES;
use crate::meter::{Round, metered};

/// A round of a scripted task: decodes a command, answers it, and encodes the answer.
pub(super) fn task() -> Result<Round> {
    let name = "x".repeat(PAYLOAD_BYTES);
    let text = "1".repeat(PAYLOAD_BYTES);
    let scenario = Scenario::parse(&format!("[all]\nvalue {name} = {text}\n"))?;
    let tasks = IdSet::single(TaskId(0));
    let mut backend = FakeBackend::new(Arc::new(scenario), &tasks);
    let now = Instant::now();
    backend.execute(
        now,
        CommandId(1),
        &tasks,
        Command::Start(StartSpec::default()),
    );
    while backend.poll_output().is_some() {}
    let payload = wire::encode(&Command::Evaluate { expression: name });
    let mut id = CommandId(1);
    Ok(Box::new(move || {
        id.0 += 1;
        let answer = metered(|| -> Result<_> {
            let command = wire::decode(&payload)?;
            backend.execute(now, id, &tasks, command);
            let output = backend.poll_output().context("no answer")?;
            Ok(match output {
                BackendOutput::Answer { result, .. } => result.ok().map(|it| wire::encode(&it)),
                BackendOutput::Event { .. } => None,
            })
        })?;
        ensure!(
            answer.is_some_and(|bytes| bytes.len() > PAYLOAD_BYTES),
            "no value"
        );
        Ok(())
    }))
}

/// A hundred runs of two ids, unevenly spaced.
pub(super) fn runs() -> IdSet {
    let starts = (0..100_u32).map(|run| run * 7 + run % 3);
    starts
        .flat_map(|first| [TaskId(first), TaskId(first + 1)])
        .collect()
}

/// The odd ids below a million.
pub(super) fn odd() -> IdSet {
    (1..1_000_000).step_by(2).map(TaskId).collect()
}

/// About half of a million ids, at random.
pub(super) fn half() -> IdSet {
    let scattered = |id: &u32| id.wrapping_mul(0x9e37_79b9).count_ones() & 1 == 0;
    (0..1_000_000).filter(scattered).map(TaskId).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "as all parts")]
pub(super) fn encode(set: fn() -> IdSet) -> Result<Round> {
    let set = set();
    let mut out = Vec::with_capacity(1 << 18);
    Ok(Box::new(move || {
        out.clear();
        metered(|| set.encode(0, &mut out));
        Ok(())
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "as all parts")]
pub(super) fn decode(set: fn() -> IdSet) -> Result<Round> {
    let mut bytes = Vec::new();
    set().encode(0, &mut bytes);
    Ok(Box::new(move || {
        metered(|| IdSet::decode(0, &bytes))?;
        Ok(())
    }))
}

/// A round that merges a hundred answers, which have ten distinct payloads.
#[expect(clippy::unnecessary_wraps, reason = "as all parts")]
pub(super) fn merge() -> Result<Round> {
    let payloads: Vec<Bytes> = (0..10_u8)
        .map(|kind| Bytes::from(vec![kind; PAYLOAD_BYTES]))
        .collect();
    Ok(Box::new(move || {
        let blocks = metered(|| {
            let mut aggregate = Aggregate::default();
            for (task, payload) in (0..100).zip(payloads.iter().cycle()) {
                let block = Block {
                    status: Status::Ok,
                    sources: IdSet::single(TaskId(task)),
                    payload: payload.clone(),
                };
                aggregate.add(None, 1024, block);
            }
            aggregate.take(None, usize::MAX)
        });
        ensure!(blocks.len() == payloads.len(), "{} classes", blocks.len());
        Ok(())
    }))
}
