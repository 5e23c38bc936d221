//! The parts of a member one by one: sets, messages, merging, links, each compared with another implementation or a
//! floor.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::{Context, Result};
use bytes::Bytes;
use roaring::RoaringBitmap;
use sdm_benches::table::Table;
use sdm_benches::turns::{compare, nanos};
use sdm_core::aggregate::Aggregate;
use sdm_core::frame::{self, Deframer};
use sdm_core::ids::{Attempt, CommandId, Epoch, ServerId};
use sdm_core::link::{Link, LinkConfig};
use sdm_core::message::{Answer, Block, CommandMessage, Lane, Message, Status, SyncPolicy};
use sdm_core::secure::{Hello, Role, SessionKey, draw_session_id};
use sdm_idset::{IdSet, TaskId};

/// The parts of a member one by one.
#[derive(clap::Parser)]
struct Arguments {}

fn main() -> Result<()> {
    let Arguments {} = clap::Parser::parse();
    sets()?;
    messages()?;
    merging()?;
    links()
}

/// Number of ids in the sets.
const MILLION: u32 = 1_000_000;

/// Sets of different structure: dense, regular, sparse and random.
fn kinds() -> [(&'static str, Vec<u32>); 4] {
    // A generator of no quality, but the same everywhere.
    let mut state = 1u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let some = (0..1000).map(|_| draw() % MILLION).collect();
    let half = (0..MILLION).filter(|_| draw() & 64 == 0).collect();
    [
        ("all", (0..MILLION).collect()),
        ("every other", (0..MILLION).step_by(2).collect()),
        ("1000 at random", some),
        ("half at random", half),
    ]
}

fn sets() -> Result<()> {
    let title = "Sets of a million ids, ns per operation, beside a plain roaring bitmap";
    let head = ["set", "operation", "ours", "roaring", "ratio"];
    let mut table = Table::new("sets", title, &head);
    let title = "Their bytes on the wire and as text";
    let head = ["set", "ids", "wire bytes", "roaring bytes", "text bytes"];
    let mut sizes = Table::new("set-bytes", title, &head);
    for (name, ids) in kinds() {
        let set: IdSet = ids.iter().map(|id| TaskId(*id)).collect();
        let bits: RoaringBitmap = ids.into_iter().collect();
        let mut wire = Vec::new();
        set.encode(0, &mut wire);
        let mut plain = Vec::new();
        bits.serialize_into(&mut plain).context("write to memory")?;
        for (operation, [ours, other]) in operations(&set, &bits, &wire, &plain) {
            let ratio = format!("{:.2}", ours / other);
            let cells = [name, operation, &nanos(ours), &nanos(other), &ratio];
            table.row(cells.map(str::to_owned).into());
        }
        let text = set.to_string().len() as u64;
        let counts = [set.len(), wire.len() as u64, plain.len() as u64, text];
        let mut row = vec![name.to_owned()];
        row.extend(counts.map(|count| count.to_string()));
        sizes.row(row);
    }
    table.finish()?;
    sizes.finish()
}

/// Duration of each operation, ours and roaring's; in nanoseconds.
fn operations(
    set: &IdSet,
    bits: &RoaringBitmap,
    wire: &[u8],
    plain: &[u8],
) -> [(&'static str, [f64; 2]); 5] {
    let part = IdSet::from_range(300_000..=699_999);
    let mut part_bits = RoaringBitmap::new();
    part_bits.insert_range(300_000..700_000);
    let encode = || {
        let mut out = Vec::with_capacity(wire.len());
        set.encode(0, &mut out);
        out
    };
    let serialize = || {
        let mut out = Vec::with_capacity(plain.len());
        bits.serialize_into(&mut out).map(|()| out)
    };
    let read = || RoaringBitmap::deserialize_from(plain);
    [
        ("union", compare(|| set.union(&part), || bits | &part_bits)),
        (
            "intersection",
            compare(|| set.intersection(&part), || bits & &part_bits),
        ),
        (
            "difference",
            compare(|| set.difference(&part), || bits - &part_bits),
        ),
        ("encode", compare(encode, serialize)),
        ("decode", compare(|| IdSet::decode(0, wire), read)),
    ]
}

fn command(destination: IdSet, payload: &Bytes) -> Message {
    Message::Command(CommandMessage {
        id: CommandId(1000),
        attempt: Attempt(0),
        destination,
        lane: Lane::Control,
        sync: SyncPolicy::WaitForAll,
        rule: 0,
        rule_params: Bytes::new(),
        settled_below: CommandId(1000),
        open: Vec::new(),
        payload: payload.clone(),
    })
}

fn answer(classes: u32, payload: &Bytes) -> Message {
    let block = |class: u32| Block {
        status: Status::Ok,
        sources: IdSet::single(TaskId(class)),
        payload: payload.clone(),
    };
    Message::Answer(Answer {
        id: CommandId(1000),
        attempt: Attempt(0),
        age_us: 1000,
        blocks: (0..classes).map(block).collect(),
        missing: Vec::new(),
        lost: IdSet::new(),
    })
}

fn messages() -> Result<()> {
    let title = "Messages of 200-byte payloads, ns each, beside a copy of the same bytes";
    let head = ["message", "bytes", "encode", "copy", "decode", "copy"];
    let mut table = Table::new("messages", title, &head);
    let payload = Bytes::from(vec![7; 200]);
    let kinds = [
        (
            "command to a million",
            command(IdSet::all_below(MILLION), &payload),
        ),
        ("answer, 1 class", answer(1, &payload)),
        ("answer, 10 classes", answer(10, &payload)),
        ("answer, 1000 classes", answer(1000, &payload)),
    ];
    for (name, message) in kinds {
        let mut bytes = Vec::new();
        frame::encode_message(&message, &mut bytes).context("encode")?;
        let body = Bytes::copy_from_slice(&bytes[frame::HEADER_BYTES..]);
        let mut out = Vec::with_capacity(bytes.len());
        let encode = || {
            out.clear();
            frame::encode_message(&message, &mut out)
        };
        let mut copy = Vec::with_capacity(bytes.len());
        let encoded = compare(encode, || {
            copy.clear();
            copy.extend_from_slice(&bytes);
        });
        let decoded = compare(|| frame::decode(&body), || Bytes::copy_from_slice(&body));
        let mut row = vec![name.to_owned(), bytes.len().to_string()];
        row.extend([encoded, decoded].concat().into_iter().map(nanos));
        table.row(row);
    }
    table.finish()
}

fn merging() -> Result<()> {
    let title = "Merging 10000 answers of 200 bytes, beside a hash map of the payloads";
    let head = ["distinct", "million answers/s", "hash map", "ratio"];
    let mut table = Table::new("merging", title, &head);
    const ANSWERS: u32 = 10_000;
    for distinct in [1, 10, 1000] {
        let payloads: Vec<Bytes> = (0..distinct)
            .map(|class: u32| Bytes::from(class.to_le_bytes().repeat(50)))
            .collect();
        let of = |task: u32| payloads[(task % distinct) as usize].clone();
        let ours = || {
            let mut aggregate = Aggregate::default();
            for task in 0..ANSWERS {
                let sources = IdSet::single(TaskId(task));
                let (status, payload) = (Status::Ok, of(task));
                aggregate.add(
                    None,
                    4096,
                    Block {
                        status,
                        sources,
                        payload,
                    },
                );
            }
            aggregate.take(None, usize::MAX)
        };
        let plain = || {
            let mut classes: HashMap<Bytes, Vec<u32>> = HashMap::new();
            for task in 0..ANSWERS {
                classes.entry(of(task)).or_default().push(task);
            }
            classes
        };
        let rates = compare(ours, plain).map(|nanos| f64::from(ANSWERS) * 1e3 / nanos);
        let mut row = vec![distinct.to_string()];
        row.extend(rates.map(|rate| format!("{rate:.1}")));
        row.push(format!("{:.2}", rates[0] / rates[1]));
        table.row(row);
    }
    table.finish()
}

/// Both ends of an established link.
fn linked() -> Result<(Link, Link)> {
    let config = LinkConfig::new(SessionKey::draw()?, draw_session_id()?);
    let hello = |role, id| Hello {
        role,
        id: ServerId(id),
        expect: None,
        epoch: Epoch(1),
        incarnation: 0,
        build: String::new(),
        features: 0,
    };
    let now = Instant::now();
    let mut above = Link::initiate(now, &config, hello(Role::Parent, 1));
    let mut below = Link::respond(now, &config, hello(Role::Child, 2));
    while !(above.is_up() && below.is_up()) {
        pass(now, &mut above, &mut below)?;
        pass(now, &mut below, &mut above)?;
    }
    Ok((above, below))
}

fn pass(now: Instant, from: &mut Link, to: &mut Link) -> Result<()> {
    let mut bytes = Vec::new();
    while from.poll_transmit(&mut bytes) {}
    to.handle_bytes(now, &mut bytes)?;
    while to.poll_event().is_some() {}
    Ok(())
}

fn links() -> Result<()> {
    let title = "A message over a link in memory, ns, beside the same frames without encryption";
    let head = [
        "payload bytes",
        "encrypted",
        "plain frames",
        "ratio",
        "handshake of both ends, us",
    ];
    let mut table = Table::new("links", title, &head);
    let [handshake, _] = compare(linked, || ());
    for bytes in [16, 200, 4096, 65_536] {
        let message = command(IdSet::all_below(1024), &Bytes::from(vec![7; bytes]));
        let (mut above, mut below) = linked()?;
        let now = Instant::now();
        let encrypted = || -> Result<()> {
            above.send(&message)?;
            pass(now, &mut above, &mut below)
        };
        let mut deframer = Deframer::default();
        let mut out = Vec::new();
        let plain = || -> Result<()> {
            out.clear();
            frame::encode_message(&message, &mut out)?;
            let mut input = &out[..];
            while let Some(body) = deframer.poll_frame(&mut input)? {
                frame::decode(&body)?;
            }
            Ok(())
        };
        let [ours, other] = compare(encrypted, plain);
        let mut row = vec![bytes.to_string(), nanos(ours), nanos(other)];
        row.push(format!("{:.2}", ours / other));
        row.push(format!("{:.0}", handshake / 1e3));
        table.row(row);
    }
    table.finish()
}
