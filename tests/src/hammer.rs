//! Every decoder under bytes that are almost right: the fuzz entries of all crates in one table,
//! and a mutator that starts from what real members send.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use sdm_core::frame::{self, HEADER_BYTES};
use sdm_core::message::{
    Answer, Block, Command, EndPolicy, Event, EventBlock, Health, Init, Lane, Message, PlanEntry,
    ReachChange, Slice, Status, SyncPolicy,
};
use sdm_core::topology::Topology;
use sdm_core::{Attempt, CommandId, Config, Failure, ServerId};
use sdm_debug::{FailureCode, wire};
use sdm_idset::{IdSet, TaskId};
use sdm_sim::Rng;

/// A decoder, and what it should be able to read.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What panics where a law is broken.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: Vec<Vec<u8>>,
    /// How many executions a test run has time for: a few bytes can be a set of millions, and a
    /// handshake is mostly arithmetic.
    pub quick: u64,
}

/// All of them.
#[must_use]
pub fn targets() -> Vec<Target> {
    let messages: Vec<Vec<u8>> = messages().iter().map(framed).collect();
    let bodies = messages.iter().map(|m| m[HEADER_BYTES..].to_vec());
    let target = |name, run, seeds| Target {
        name,
        run,
        seeds,
        quick: match name {
            "handshake" => 10,
            "set" | "set-text" => 100,
            _ => 2_000,
        },
    };
    vec![
        target("set", sdm_idset::fuzz::fuzz_set, sets()),
        target("set-text", sdm_idset::fuzz::fuzz_set_text, set_texts()),
        target("message", frame::fuzz_message, bodies.collect()),
        target("frame", frame::fuzz_frame, messages),
        target(
            "claim",
            sdm_core::transport::reversed::fuzz_claim,
            handshakes(),
        ),
        target("handshake", sdm_core::link::fuzz_handshake, handshakes()),
        target("failure", sdm_core::outcome::fuzz_failure, failures()),
        target("debug", wire::fuzz_payload, payloads()),
        target("merge", sdm_debug::rules::fuzz_rules, payloads()),
        target("mi", sdm_backend_gdbmi::mi::fuzz_mi, mi_lines()),
        target("set-grammar", sdm::commands::fuzz_set_expr, expressions()),
        target("keeper", sdm_keep::fuzz_frames, keeper_frames()),
    ]
}

/// Runs a target on so many mutated inputs; the same seed gives the same inputs.
///
/// # Errors
/// The input on which it panicked.
pub fn hammer(target: &Target, executions: u64, seed: u64) -> Result<(), Vec<u8>> {
    let mut mutator = Mutator(Rng::new(seed));
    for _ in 0..executions {
        let input = mutator.input(&target.seeds);
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            return Err(input);
        }
    }
    Ok(())
}

/// Makes inputs: they need be varied, not unpredictable.
struct Mutator(Rng);

impl Mutator {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        // What lengths and tags are made of comes more often.
        match self.below(4) {
            0 => [0, 1, 0x7f, 0x80, 0xff, b'"', b'\\', b'\n'][self.below(8)],
            _ => self.0.word().to_le_bytes()[3],
        }
    }

    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if seeds.is_empty() || self.below(16) == 0 {
            let length = self.below(64);
            return (0..length).map(|_| self.byte()).collect();
        }
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..self.below(5) {
            self.change(&mut input, seeds);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(7) {
            0 => input.truncate(at),
            1 => input.insert(at, self.byte()),
            2 if at < input.len() => {
                input.remove(at);
            }
            3 if at < input.len() => input[at] ^= 1 << self.below(8),
            4 if at < input.len() => input[at] = self.byte(),
            5 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let end = at + self.below(input.len() + 1 - at).min(64);
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
        }
    }
}

fn framed(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_message(message, &mut out).expect("a small message");
    out
}

fn some_sets() -> Vec<IdSet> {
    let texts = ["0", "0-62,64-999999", "1-999/2", "3,9-12,77,4000-4100/7"];
    let mut sets: Vec<IdSet> = texts.map(|t| t.parse().expect("a set")).into();
    sets.push(
        (0..200_u32)
            .map(|id| TaskId(id * id * id % 65_521))
            .collect(),
    );
    sets.push(IdSet::new());
    sets
}

fn sets() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for set in some_sets() {
        for base in [0_u32, 64] {
            let mut wire = base.to_le_bytes().to_vec();
            set.encode(base, &mut wire);
            seeds.push(wire);
        }
    }
    seeds
}

fn set_texts() -> Vec<Vec<u8>> {
    let texts = some_sets().into_iter().map(|set| set.to_string());
    texts.take(4).map(String::into_bytes).collect()
}

fn expressions() -> Vec<Vec<u8>> {
    [
        "0-3,7!2&(1..9^@stopped)",
        "all!@host:n[01-04,7]",
        "@if:(x > 3 && (y < 2)),@1",
        "0-998/2.3",
        "@at:solve,@halo.c:44,@bp:3",
        "((0))",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

fn messages() -> Vec<Message> {
    let payload = Bytes::from_static(b"a payload of some bytes");
    let sets = some_sets();
    let block = |set: &IdSet, status| Block {
        status,
        sources: set.clone(),
        payload: payload.clone(),
    };
    vec![
        init(),
        Message::Command(Command {
            id: CommandId(7),
            attempt: Attempt(2),
            destination: sets[2].clone(),
            lane: Lane::Control,
            sync: SyncPolicy::TimeOut { ms: 5000 },
            rule: 1,
            rule_params: payload.clone(),
            settled_below: CommandId(5),
            open: vec![CommandId(3), CommandId(4)],
            payload: payload.clone(),
        }),
        Message::Cancel(CommandId(u64::MAX)),
        Message::End(EndPolicy::Detach),
        Message::Leave,
        Message::Answer(Answer {
            id: CommandId(9),
            attempt: Attempt(0),
            age_us: 77,
            blocks: vec![
                block(&sets[3], Status::Ok),
                block(&sets[0], Status::Failed),
                block(&sets[4], Status::Others),
            ],
            missing: vec![(sets[1].clone(), "server 3 (host n1): no answer".to_owned())],
            lost: sets[0].clone(),
        }),
        Message::Event(Event {
            lane: Lane::Bulk,
            age_us: 3,
            blocks: vec![EventBlock {
                sources: sets[3].clone(),
                payload: payload.clone(),
            }],
        }),
        Message::Reach(ReachChange {
            tasks: sets[1].clone(),
            health: Health::Silent,
            why: "server 9: quiet".to_owned(),
        }),
    ]
}

fn init() -> Message {
    let entry = |server, tasks| PlanEntry {
        server,
        subtree_count: 0,
        tasks,
        host: "node7".to_owned(),
        addresses: vec!["tcp://10.0.0.7:40311".to_owned()],
    };
    let servers = (0..9).map(|id| entry(ServerId(id), IdSet::single(TaskId(id))));
    let root = entry(ServerId::MASTER, IdSet::new());
    let plan = Topology::Binomial.plan(root, servers.collect());
    Message::Init(Box::new(Init {
        config: Config::default(),
        slice: Slice::new(plan),
    }))
}

/// The plain front of a handshake, and a record's length behind it.
fn handshakes() -> Vec<Vec<u8>> {
    use sdm_core::link::{Link, LinkConfig};
    use sdm_core::secure::{Hello, Role, SessionKey};
    let config = LinkConfig::new(SessionKey::from_bytes([7; 32]), sdm_core::SessionId([1; 8]));
    let hello = Hello {
        role: Role::Parent,
        id: ServerId(1),
        expect: None,
        epoch: sdm_core::Epoch(2),
        incarnation: 0,
        build: "a build".to_owned(),
        features: 0,
    };
    let mut link = Link::initiate(std::time::Instant::now(), &config, hello);
    let mut first = Vec::new();
    link.poll_transmit(&mut first);
    let mut long = first.clone();
    long.extend_from_slice(&[0xff; 300]);
    vec![first[..8].to_vec(), first, long]
}

fn failures() -> Vec<Vec<u8>> {
    let failure = Failure::new(FailureCode::Gdb, "no symbol \"x\" in current context");
    vec![
        failure.encode().to_vec(),
        failure.with_hint("is it optimised away?").encode().to_vec(),
    ]
}

fn payloads() -> Vec<Vec<u8>> {
    use sdm_debug::event::Stream;
    let output = sdm_debug::Event::Output {
        stream: Stream::Stdout,
        bytes: b"step 3 of 10\n".to_vec(),
    };
    let stdin = sdm_debug::Command::Stdin {
        offset: 10,
        bytes: b"7\n".to_vec(),
        eof: true,
    };
    let mut seeds = vec![wire::encode(&output), wire::encode(&stdin)];
    seeds.extend(replies().iter().map(wire::encode));
    seeds
}

fn replies() -> Vec<sdm_debug::Reply> {
    vec![
        sdm_debug::Reply::Done,
        sdm_debug::Reply::Exited {
            code: 3,
            before_finalize: true,
        },
    ]
}

fn mi_lines() -> Vec<Vec<u8>> {
    [
        "12^done,stack=[frame={level=\"0\",addr=\"0x55\",func=\"main\",args=[]}]\n(gdb) \n",
        "*stopped,reason=\"breakpoint-hit\",disp=\"keep\",bkptno=\"1\",thread-id=\"1\"\n",
        "=thread-group-exited,id=\"i1\",exit-code=\"011\"\n~\"a \\\"quoted\\\" \\303\\244\\n\"\n",
        "7^error,msg=\"No symbol \\\"x\\\" in current context.\"\n(gdb) \n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

fn keeper_frames() -> Vec<Vec<u8>> {
    vec![
        b"\x01\x04\0\0\0\x28\0\x50\0\x02\x03\0\0\0bt\n".to_vec(),
        b"\x07\x10\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x08\x05\0\0\0hello".to_vec(),
    ]
}

#[cfg(test)]
mod tests {
    use sdm_core::frame::Frame;

    use super::*;

    #[test]
    fn the_seeds_are_what_they_stand_for() {
        for message in messages() {
            let bytes = framed(&message);
            let read = frame::decode(&Bytes::from(bytes).slice(HEADER_BYTES..));
            assert_eq!(read, Ok(Frame::Message(message)));
        }
    }

    #[test]
    fn a_broken_law_is_found() {
        let target = Target {
            name: "planted",
            run: |bytes| assert!(!bytes.starts_with(b"\x01\x80")),
            seeds: vec![b"\x01\x02\x03".to_vec()],
            quick: 0,
        };
        let found = hammer(&target, 100_000, 1).expect_err("it is planted");
        assert!(found.starts_with(b"\x01\x80"));
    }
}
