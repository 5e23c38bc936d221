//! Encoding of exchanges and datagrams.

use sdm_idset::TaskId;

use super::{DecodeError, Reader, Writer, read_list, unexpected};
use crate::limits::{BLOCKS_MAX, EXCHANGE_CHUNK_BYTES, TEXT_BYTES_MAX};
use crate::message::{Datagram, ExchangeId, ExchangeMessage, ExchangeStep, Piece};

const GIVEN: u8 = 0;
const TAKEN: u8 = 1;
const ALL: u8 = 2;
const FAILED: u8 = 3;

pub(super) fn write_exchange(w: &mut Writer<'_>, message: &ExchangeMessage) {
    w.set(&message.id.tasks);
    w.u32(message.id.number);
    match &message.step {
        ExchangeStep::Given { empty, pieces } => {
            w.u8(GIVEN);
            w.set(empty);
            w.count("pieces", pieces.len(), BLOCKS_MAX);
            for piece in pieces {
                w.set(&piece.sources);
                w.u64(piece.total);
                w.u64(piece.offset);
                w.bytes("piece", &piece.bytes, EXCHANGE_CHUNK_BYTES);
            }
        }
        ExchangeStep::Taken(tasks) => {
            w.u8(TAKEN);
            w.set(tasks);
        }
        ExchangeStep::All {
            total,
            offset,
            bytes,
        } => {
            w.u8(ALL);
            w.u64(*total);
            w.u64(*offset);
            w.bytes("part", bytes, EXCHANGE_CHUNK_BYTES);
        }
        ExchangeStep::Failed { lost, why } => {
            w.u8(FAILED);
            w.set(lost);
            w.truncated_text(why, TEXT_BYTES_MAX);
        }
    }
}

pub(super) fn read_exchange(r: &mut Reader<'_>) -> Result<ExchangeMessage, DecodeError> {
    let id = ExchangeId {
        tasks: r.set("participants")?,
        number: r.u32("number of an exchange")?,
    };
    let offset = r.offset();
    let step = match r.u8("step")? {
        GIVEN => ExchangeStep::Given {
            empty: r.set("tasks")?,
            pieces: read_list(r, "pieces", BLOCKS_MAX, |r| {
                Ok(Piece {
                    sources: r.set("sources")?,
                    total: r.u64("total")?,
                    offset: r.u64("offset")?,
                    bytes: r.bytes("piece", EXCHANGE_CHUNK_BYTES)?,
                })
            })?,
        },
        TAKEN => ExchangeStep::Taken(r.set("tasks")?),
        ALL => ExchangeStep::All {
            total: r.u64("total")?,
            offset: r.u64("offset")?,
            bytes: r.bytes("part", EXCHANGE_CHUNK_BYTES)?,
        },
        FAILED => ExchangeStep::Failed {
            lost: r.set("lost tasks")?,
            why: r.text("reason", TEXT_BYTES_MAX)?.to_owned(),
        },
        _ => return Err(unexpected("step", offset)),
    };
    Ok(ExchangeMessage { id, step })
}

pub(super) fn write_letter(w: &mut Writer<'_>, letter: &Datagram) {
    w.set(&letter.to);
    w.u32(letter.from.0);
    w.u64(letter.number);
    w.u8(letter.is_brought.into());
    w.bytes("bytes of a datagram", &letter.bytes, EXCHANGE_CHUNK_BYTES);
}

pub(super) fn read_letter(r: &mut Reader<'_>) -> Result<Datagram, DecodeError> {
    Ok(Datagram {
        to: r.set("addressees")?,
        from: read_task(r, "sender")?,
        number: r.u64("number of a datagram")?,
        is_brought: r.bool("brought")?,
        bytes: r.bytes("bytes of a datagram", EXCHANGE_CHUNK_BYTES)?,
    })
}

fn read_task(r: &mut Reader<'_>, what: &'static str) -> Result<TaskId, DecodeError> {
    let offset = r.offset();
    match TaskId(r.u32(what)?) {
        task if task <= TaskId::MAX => Ok(task),
        _ => Err(unexpected(what, offset)),
    }
}
