//! The encoding of each message. New tags are only appended; a change of an existing encoding raises
//! [`crate::frame::WIRE_VERSION`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sdm_idset::IdSet;

use super::exchange::{read_exchange, read_letter, write_exchange, write_letter};
use super::plan::{read_slice, write_slice};
use super::{DecodeError, EncodeError, Reader, Writer, read_list, unexpected};
use crate::config::Config;
use crate::ids::{Attempt, CommandId};
use crate::limits::{
    BLOCKS_MAX, CONFIG_BACKEND_BYTES_MAX, MISSING_REASONS_MAX, OPEN_COMMANDS_MAX,
    PAYLOAD_BYTES_MAX, RULE_PARAMS_BYTES_MAX, TEXT_BYTES_MAX,
};
use crate::message::{
    Answer, Block, CommandMessage, EndPolicy, EventBlock, EventMessage, Health, Init, Lane,
    Message, ReachChange, Slice, Status, SyncPolicy,
};

const INIT: u8 = 1;
const COMMAND: u8 = 2;
const CANCEL: u8 = 3;
const END: u8 = 4;
const ANSWER: u8 = 5;
const EVENT: u8 = 6;
const REACH: u8 = 7;
const LEAVE: u8 = 8;
const PLAN: u8 = 9;
const EXCHANGE: u8 = 10;
const LETTER: u8 = 11;
const ENDED: u8 = 12;

/// Appends a message: its kind in one byte, then its body.
///
/// # Errors
/// A part of the message that is above its bound.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut w = Writer::new(out);
    match message {
        Message::Init(init) => {
            w.u8(INIT);
            write_config(&mut w, &init.config);
            write_slice(&mut w, &init.slice);
        }
        Message::Command(command) => {
            w.u8(COMMAND);
            write_command(&mut w, command);
        }
        Message::Cancel(id) => {
            w.u8(CANCEL);
            w.u64(id.0);
        }
        Message::End(policy) => {
            w.u8(END);
            write_end_policy(&mut w, *policy);
        }
        Message::Answer(answer) => {
            w.u8(ANSWER);
            let missing = (&answer.missing[..], &answer.lost);
            let number = (answer.id, answer.attempt, answer.age_us);
            write_answer(&mut w, number, &answer.blocks, missing);
        }
        Message::Event(event) => {
            w.u8(EVENT);
            write_event(&mut w, event);
        }
        Message::Reach(change) => {
            w.u8(REACH);
            w.set(&change.tasks);
            w.u8(match change.health {
                Health::Reachable => 0,
                Health::Silent => 1,
                Health::Lost => 2,
            });
            w.truncated_text(&change.why, TEXT_BYTES_MAX);
        }
        Message::Leave => w.u8(LEAVE),
        Message::Ended => w.u8(ENDED),
        Message::Plan(slice) => {
            w.u8(PLAN);
            write_slice(&mut w, slice);
        }
        Message::Exchange(exchange) => {
            w.u8(EXCHANGE);
            write_exchange(&mut w, exchange);
        }
        Message::Datagram(letter) => {
            w.u8(LETTER);
            write_letter(&mut w, letter);
        }
    }
    w.finish()
}

/// Reads a message, which must use all the bytes; payloads share `bytes`.
///
/// # Errors
/// The bytes do not form a message.
pub fn decode_message(bytes: &Bytes) -> Result<Message, DecodeError> {
    let r = &mut Reader::new(bytes);
    let message = match r.u8("message kind")? {
        INIT => Message::Init(Box::new(Init {
            config: Arc::new(read_config(r)?),
            slice: Slice::new(read_slice(r)?),
        })),
        COMMAND => {
            let command = read_command(r)?;
            Message::Command(command.owned_by(|slice| r.owned(slice)))
        }
        CANCEL => Message::Cancel(CommandId(r.u64("command id")?)),
        END => Message::End(read_end_policy(r)?),
        ANSWER => Message::Answer(read_answer(r)?),
        EVENT => Message::Event(read_event(r)?),
        REACH => Message::Reach(ReachChange {
            tasks: r.set("tasks")?,
            health: read_tag(
                r,
                "health",
                &[Health::Reachable, Health::Silent, Health::Lost],
            )?,
            why: r.text("reason", TEXT_BYTES_MAX)?.to_owned(),
        }),
        LEAVE => Message::Leave,
        ENDED => Message::Ended,
        PLAN => Message::Plan(Slice::new(read_slice(r)?)),
        EXCHANGE => Message::Exchange(Box::new(read_exchange(r)?)),
        LETTER => Message::Datagram(Box::new(read_letter(r)?)),
        _ => return Err(unexpected("message kind", 0)),
    };
    r.finish("message")?;
    Ok(message)
}

fn write_config(w: &mut Writer<'_>, config: &Config) {
    for duration in [
        config.start_wait,
        config.grace,
        config.event_window,
        config.ping_after,
        config.rejoin_wait,
        config.orphan_wait,
    ] {
        w.u32(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX));
    }
    w.u32(config.pings_unanswered_max);
    w.u32(config.bulk_window_bytes);
    w.u32(config.classes_max);
    w.u8(config.partial.into());
    write_end_policy(w, config.on_lost);
    w.bytes(
        "backend configuration",
        &config.backend,
        CONFIG_BACKEND_BYTES_MAX,
    );
}

fn read_config(r: &mut Reader<'_>) -> Result<Config, DecodeError> {
    Ok(Config {
        start_wait: read_duration(r)?,
        grace: read_duration(r)?,
        event_window: read_duration(r)?,
        ping_after: read_duration(r)?,
        rejoin_wait: read_duration(r)?,
        orphan_wait: read_duration(r)?,
        pings_unanswered_max: r.u32("ping count")?,
        bulk_window_bytes: r.u32("bulk window")?,
        classes_max: r.u32("class count")?,
        partial: r.bool("partial start")?,
        on_lost: read_end_policy(r)?,
        backend: r.bytes("backend configuration", CONFIG_BACKEND_BYTES_MAX)?,
    })
}

fn read_duration(r: &mut Reader<'_>) -> Result<Duration, DecodeError> {
    Ok(Duration::from_millis(r.u32("duration")?.into()))
}

fn write_command(w: &mut Writer<'_>, command: &CommandMessage) {
    w.u64(command.id.0);
    w.u32(command.attempt.0);
    w.set(&command.destination);
    write_lane(w, command.lane);
    match command.sync {
        SyncPolicy::WaitForAll => w.u8(0),
        SyncPolicy::TimeOut { ms } => {
            w.u8(1);
            w.u32(ms);
        }
        SyncPolicy::DontWait => w.u8(2),
    }
    w.u32(command.rule.into());
    w.bytes(
        "rule parameters",
        &command.rule_params,
        RULE_PARAMS_BYTES_MAX,
    );
    w.u64(command.settled_below.0);
    w.count("open commands", command.open.len(), OPEN_COMMANDS_MAX);
    for id in &command.open {
        w.u64(id.0);
    }
    w.bytes("payload", &command.payload, PAYLOAD_BYTES_MAX);
}

/// A [`CommandMessage`] whose payload and rule parameters are borrowed from the receive buffer.
pub(crate) struct BorrowedCommand<'a> {
    pub(crate) id: CommandId,
    pub(crate) attempt: Attempt,
    pub(crate) destination: IdSet,
    pub(crate) lane: Lane,
    pub(crate) sync: SyncPolicy,
    pub(crate) rule: u16,
    pub(crate) rule_params: &'a [u8],
    pub(crate) settled_below: CommandId,
    pub(crate) open: Vec<CommandId>,
    pub(crate) payload: &'a [u8],
}

impl BorrowedCommand<'_> {
    /// The command as a message of its own: its payload and its rule's parameters are copied.
    pub(crate) fn into_owned(self) -> CommandMessage {
        self.owned_by(Bytes::copy_from_slice)
    }

    fn owned_by<'a>(self, own: impl Fn(&'a [u8]) -> Bytes) -> CommandMessage
    where
        Self: 'a,
    {
        CommandMessage {
            id: self.id,
            attempt: self.attempt,
            destination: self.destination,
            lane: self.lane,
            sync: self.sync,
            rule: self.rule,
            rule_params: own(self.rule_params),
            settled_below: self.settled_below,
            open: self.open,
            payload: own(self.payload),
        }
    }
}

/// Decodes a message if it is a command. `None` for another message and for malformed bytes; [`decode_message`] tells
/// these apart.
pub(crate) fn peek_command(bytes: &[u8]) -> Option<BorrowedCommand<'_>> {
    let r = &mut Reader::over(bytes);
    if bytes.first() != Some(&COMMAND) || r.u8("message kind").is_err() {
        return None;
    }
    let command = read_command(r).ok()?;
    r.finish("message").ok()?;
    Some(command)
}

fn read_command<'a>(r: &mut Reader<'a>) -> Result<BorrowedCommand<'a>, DecodeError> {
    Ok(BorrowedCommand {
        id: CommandId(r.u64("command id")?),
        attempt: Attempt(r.u32("attempt")?),
        destination: r.set("destination")?,
        lane: read_lane(r)?,
        sync: read_sync(r)?,
        rule: r.u16("rule")?,
        rule_params: r.slice("rule parameters", RULE_PARAMS_BYTES_MAX)?,
        settled_below: CommandId(r.u64("settled id")?),
        open: read_list(r, "open commands", OPEN_COMMANDS_MAX, |r| {
            Ok(CommandId(r.u64("command id")?))
        })?,
        payload: r.slice("payload", PAYLOAD_BYTES_MAX)?,
    })
}

fn read_sync(r: &mut Reader<'_>) -> Result<SyncPolicy, DecodeError> {
    let offset = r.offset();
    match r.u8("sync policy")? {
        0 => Ok(SyncPolicy::WaitForAll),
        1 => Ok(SyncPolicy::TimeOut {
            ms: r.u32("time-out")?,
        }),
        2 => Ok(SyncPolicy::DontWait),
        _ => Err(unexpected("sync policy", offset)),
    }
}

/// Encodes an answer of one block, without an age and without missing tasks, as [`encode_message`] does.
///
/// # Errors
/// A payload that is above its bound.
pub(crate) fn encode_answer(
    id: CommandId,
    attempt: Attempt,
    block: &Block,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut w = Writer::new(out);
    w.u8(ANSWER);
    let blocks = std::slice::from_ref(block);
    write_answer(&mut w, (id, attempt, 0), blocks, (&[], &IdSet::new()));
    w.finish()
}

/// Encodes an answer. `age_us` is the age of its oldest part in microseconds. The last pair holds the missing tasks
/// with their reasons, and the lost tasks.
fn write_answer(
    w: &mut Writer<'_>,
    (id, attempt, age_us): (CommandId, Attempt, u32),
    blocks: &[Block],
    (missing, lost): (&[(IdSet, String)], &IdSet),
) {
    w.u64(id.0);
    w.u32(attempt.0);
    w.u32(age_us);
    w.count("blocks", blocks.len(), BLOCKS_MAX);
    for block in blocks {
        w.u8(match block.status {
            Status::Ok => 0,
            Status::Failed => 1,
            Status::Others => 2,
        });
        w.set(&block.sources);
        w.bytes("payload", &block.payload, PAYLOAD_BYTES_MAX);
    }
    w.count("missing", missing.len(), MISSING_REASONS_MAX);
    for (tasks, why) in missing {
        w.set(tasks);
        w.truncated_text(why, TEXT_BYTES_MAX);
    }
    w.set(lost);
}

fn read_answer(r: &mut Reader<'_>) -> Result<Answer, DecodeError> {
    Ok(Answer {
        id: CommandId(r.u64("command id")?),
        attempt: Attempt(r.u32("attempt")?),
        age_us: r.u32("age")?,
        blocks: read_list(r, "blocks", BLOCKS_MAX, read_block)?,
        missing: read_list(r, "missing", MISSING_REASONS_MAX, read_missing)?,
        lost: r.set("lost tasks")?,
    })
}

fn read_block(r: &mut Reader<'_>) -> Result<Block, DecodeError> {
    Ok(Block {
        status: read_tag(r, "status", &[Status::Ok, Status::Failed, Status::Others])?,
        sources: r.set("sources")?,
        payload: r.bytes("payload", PAYLOAD_BYTES_MAX)?,
    })
}

fn read_missing(r: &mut Reader<'_>) -> Result<(IdSet, String), DecodeError> {
    let tasks = r.set("missing tasks")?;
    Ok((tasks, r.text("reason", TEXT_BYTES_MAX)?.to_owned()))
}

fn write_event(w: &mut Writer<'_>, event: &EventMessage) {
    write_lane(w, event.lane);
    w.u32(event.age_us);
    w.count("blocks", event.blocks.len(), BLOCKS_MAX);
    for block in &event.blocks {
        w.set(&block.sources);
        w.bytes("payload", &block.payload, PAYLOAD_BYTES_MAX);
    }
}

fn read_event(r: &mut Reader<'_>) -> Result<EventMessage, DecodeError> {
    Ok(EventMessage {
        lane: read_lane(r)?,
        age_us: r.u32("age")?,
        blocks: read_list(r, "blocks", BLOCKS_MAX, |r| {
            Ok(EventBlock {
                sources: r.set("sources")?,
                payload: r.bytes("payload", PAYLOAD_BYTES_MAX)?,
            })
        })?,
    })
}

fn write_lane(w: &mut Writer<'_>, lane: Lane) {
    w.u8(match lane {
        Lane::Control => 0,
        Lane::Bulk => 1,
    });
}

fn read_lane(r: &mut Reader<'_>) -> Result<Lane, DecodeError> {
    read_tag(r, "lane", &[Lane::Control, Lane::Bulk])
}

fn write_end_policy(w: &mut Writer<'_>, policy: EndPolicy) {
    w.u8(match policy {
        EndPolicy::KillStarted => 0,
        EndPolicy::Detach => 1,
    });
}

fn read_end_policy(r: &mut Reader<'_>) -> Result<EndPolicy, DecodeError> {
    read_tag(
        r,
        "end policy",
        &[EndPolicy::KillStarted, EndPolicy::Detach],
    )
}

fn read_tag<T: Copy>(
    r: &mut Reader<'_>,
    what: &'static str,
    values: &[T],
) -> Result<T, DecodeError> {
    let offset = r.offset();
    let tag = r.u8(what)?;
    values
        .get(usize::from(tag))
        .copied()
        .ok_or(unexpected(what, offset))
}
