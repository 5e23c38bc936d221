//! Encoding of a plan: each text is stored as the length of the prefix that it shares with the previous entry's,
//! and the rest. So a million members on a few thousand hosts take some 35 MB. A plan is sent in parts, and each
//! part begins anew.

use bytes::Bytes;

use super::{DecodeError, EncodeError, Reader, Writer, read_list};
use crate::ids::ServerId;
use crate::limits::{ADDRESSES_MAX, NAME_BYTES_MAX, PLAN_TEXT_BYTES_MAX, SERVERS_MAX};
use crate::message::PlanEntry;

/// Appends a slice as an `Init` message contains it.
///
/// # Errors
/// A part of the slice that is above its bound.
pub fn encode_slice(slice: &[PlanEntry], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut w = Writer::new(out);
    write_slice(&mut w, slice);
    w.finish()
}

/// Reads a slice, which must use all the bytes. It does not check that the slice is a tree; the receiver does.
///
/// # Errors
/// The bytes do not form a slice.
pub fn decode_slice(bytes: &Bytes) -> Result<Vec<PlanEntry>, DecodeError> {
    let r = &mut Reader::new(bytes);
    let slice = read_slice(r)?;
    r.finish("slice")?;
    Ok(slice)
}

pub(super) fn write_slice(w: &mut Writer<'_>, slice: &[PlanEntry]) {
    w.count("plan", slice.len(), SERVERS_MAX as usize + 1);
    let mut text_bytes = 0;
    let mut previous: Option<&PlanEntry> = None;
    for entry in slice {
        let before = previous.map_or(0, |p| p.server.0);
        w.u32(zigzag(entry.server.0.wrapping_sub(before)));
        w.u32(entry.subtree_count);
        w.set(&entry.tasks);
        write_text(w, previous.map_or("", |p| &p.host), &entry.host);
        w.count("addresses", entry.addresses.iter().count(), ADDRESSES_MAX);
        let mut models = previous.into_iter().flat_map(|p| p.addresses.iter());
        for address in entry.addresses.iter() {
            write_text(w, models.next().unwrap_or(""), address);
            text_bytes += address.len();
        }
        text_bytes += entry.host.len();
        previous = Some(entry);
    }
    w.check(
        "text with the host names and addresses of the server tree",
        text_bytes,
        PLAN_TEXT_BYTES_MAX,
    );
}

pub(super) fn read_slice(r: &mut Reader<'_>) -> Result<Vec<PlanEntry>, DecodeError> {
    let count = r.count("plan", SERVERS_MAX as usize + 1)?;
    let mut slice: Vec<PlanEntry> = Vec::with_capacity(count.min(64));
    let mut text_bytes = 0;
    for _ in 0..count {
        let entry = read_entry(r, slice.last())?;
        text_bytes += entry.host.len() + entry.addresses.iter().map(str::len).sum::<usize>();
        if text_bytes > PLAN_TEXT_BYTES_MAX {
            return Err(DecodeError::TooLarge {
                what: "text with the host names and addresses of the server tree",
                offset: r.offset(),
                max: PLAN_TEXT_BYTES_MAX as u64,
            });
        }
        slice.push(entry);
    }
    Ok(slice)
}

fn read_entry(r: &mut Reader<'_>, previous: Option<&PlanEntry>) -> Result<PlanEntry, DecodeError> {
    let before = previous.map_or(0, |p| p.server.0);
    let server = ServerId(before.wrapping_add(unzigzag(r.u32("server id")?)));
    let offset = r.offset();
    let subtree_count = r.u32("subtree count")?;
    if subtree_count == 0 {
        let what = "subtree count";
        return Err(DecodeError::Unexpected { what, offset });
    }
    let tasks = r.set("tasks")?;
    let host = read_text(r, "host", previous.map_or("", |p| &p.host))?;
    let mut models = previous.into_iter().flat_map(|p| p.addresses.iter());
    let addresses = read_list(r, "addresses", ADDRESSES_MAX, |r| {
        read_text(r, "address", models.next().unwrap_or(""))
    })?;
    Ok(PlanEntry {
        server,
        subtree_count,
        tasks,
        host: host.into(),
        addresses: addresses.iter().collect(),
    })
}

fn write_text(w: &mut Writer<'_>, model: &str, text: &str) {
    w.check("name", text.len(), NAME_BYTES_MAX);
    let mut shared = model
        .bytes()
        .zip(text.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    while !text.is_char_boundary(shared) {
        shared -= 1;
    }
    w.u64(shared as u64);
    w.text("name", &text[shared..], NAME_BYTES_MAX);
}

fn read_text(r: &mut Reader<'_>, what: &'static str, model: &str) -> Result<String, DecodeError> {
    let offset = r.offset();
    let shared = r.u64(what)?;
    let shared = usize::try_from(shared)
        .ok()
        .and_then(|shared| model.get(..shared))
        .ok_or(DecodeError::Unexpected { what, offset })?;
    let rest = r.text(what, NAME_BYTES_MAX - shared.len())?;
    Ok([shared, rest].concat())
}

/// Encodes a wrapping difference such that small positive and small negative ones become small numbers.
fn zigzag(step: u32) -> u32 {
    (step << 1) ^ 0_u32.wrapping_sub(step >> 31)
}

fn unzigzag(code: u32) -> u32 {
    (code >> 1) ^ 0_u32.wrapping_sub(code & 1)
}
