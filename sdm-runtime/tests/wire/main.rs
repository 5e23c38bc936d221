//! The wire protocol: both ends against each other and against recorded traces.

mod agent;
mod element_ids;
mod filters;

use proptest::prelude::*;
use sdm_runtime::wire::agent::{Agent, Phase};
use sdm_runtime::wire::client::Client;
use sdm_runtime::wire::command::Command;
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::{Dialect, fuzz};

const INIT: &str = "00000041 0001:00000000:00000002 0000000b:version=2.0 0000000b:baseId=1000";
const OK: &str = "00000017 0000:00000000:00000000";
const DEFINED: &str = "0000009b 00fb:00000000:0000000a 00000001:1 00000001:8 00000008:fakeEnum 0000000a:ENUMERATED 00000001:E 00000004:enum 00000004:true 00000001:A 00000001:A 00000001:B";
const NODES: &str = "0000008e 00de:00000000:00000007 00000004:1001 00000001:1 00000009:1010-1013 00000001:3 00000009:name=node 0000000c:nodeState=UP 0000000d:fakeStr=x=y z";

#[allow(clippy::unwrap_used)]
fn event(text: &str) -> Event {
    let mut decoder = sdm_runtime::wire::frame::Decoder::default();
    decoder.push(text.as_bytes());
    Event::decode(Dialect::Ptp, decoder.poll().unwrap().unwrap()).unwrap()
}

#[test]
fn agent_output_matches_the_ptp_agent() {
    let mut agent = Agent::new(vec![event(DEFINED)]);
    for byte in INIT.bytes() {
        agent.receive(&[byte]);
        assert_eq!(agent.poll(), Ok(None));
    }
    agent.receive(b"00000017 0002:00000000:0000000000000017 0003:00000000:00000000");
    assert_eq!(agent.poll(), Ok(None));
    agent.send(event(NODES)).unwrap();
    let told = String::from_utf8(agent.take_output()).unwrap();
    assert_eq!(told, [OK, DEFINED, OK, NODES].concat());
}

#[test]
fn client_output_equals_the_recorded_ptp_output() {
    let mut client = Client::new(Dialect::Ptp, "1000").unwrap();
    client.receive([OK, DEFINED, OK, NODES].concat().as_bytes());
    while client.poll().unwrap().is_some() {}
    let asked = String::from_utf8(client.take_output()).unwrap();
    let then = "00000017 0002:00000000:0000000000000017 0003:00000000:00000000";
    assert_eq!(asked, [INIT, then].concat());
}

#[test]
fn phases_follow_the_example_of_the_document() {
    let mut agent = Agent::new(vec![Event::AttrDef(vec![]), Event::AttrDef(vec![])]);
    let mut client = Client::new(Dialect::Document, "1000").unwrap();
    let mut told = Vec::new();
    let mut turn = |agent: &mut Agent, client: &mut Client| {
        loop {
            agent.receive(&client.take_output());
            agent.poll().unwrap();
            let output = agent.take_output();
            let mut decoder = sdm_runtime::wire::frame::Decoder::default();
            decoder.push(&output);
            while let Some(message) = decoder.poll().unwrap() {
                told.push((message.id, message.tid));
            }
            client.receive(&output);
            while client.poll().unwrap().is_some() {}
            if output.is_empty() {
                break;
            }
        }
    };
    turn(&mut agent, &mut client);
    for kind in [Kind::Machine, Kind::Node] {
        agent.send(Event::New(kind, "1".into(), vec![])).unwrap();
    }
    for command in [Command::StopEvents, Command::StartEvents] {
        client.send(command).unwrap();
        turn(&mut agent, &mut client);
    }
    agent
        .send(Event::New(Kind::Queue, "1".into(), vec![]))
        .unwrap();
    client.send(Command::Quit).unwrap();
    turn(&mut agent, &mut client);
    let wanted = [
        (0, 1),
        (251, 2),
        (251, 2),
        (0, 2),
        (221, 3),
        (222, 3),
        (0, 3),
        (0, 4),
        (224, 5),
        (0, 5),
        (6, 6),
    ];
    assert_eq!(
        (told.as_slice(), agent.phase()),
        (&wanted[..], Phase::Ended)
    );
}

proptest! {
    #[test]
    fn decoders_never_panic_on_any_bytes(at in 0..INIT.len() + 140, byte in any::<u8>(), any in proptest::collection::vec(any::<u8>(), 0..80)) {
        fuzz::fuzz_messages(&any);
        let mut bytes = [INIT, NODES, DEFINED].concat().into_bytes();
        bytes[at] = byte;
        fuzz::fuzz_messages(&bytes);
    }
}

/// One of each command of a dialect but INIT.
fn commands(dialect: Dialect) -> Vec<Command> {
    let text = || "1".to_owned();
    let sub = || {
        vec![
            ("jobSubId".to_owned(), "ä=b".to_owned()),
            ("env".into(), "".into()),
        ]
    };
    let mut all = vec![
        Command::ModelDef,
        Command::StartEvents,
        Command::StopEvents,
        Command::SubmitJob(sub()),
        Command::TerminateJob(text()),
        Command::SetFilters(vec!["stdout".into()]),
        Command::Quit,
    ];
    all.extend(match dialect {
        Dialect::Document => vec![
            Command::MoveJob {
                job: text(),
                queue: text(),
            },
            Command::ChangeJob {
                job: text(),
                attributes: sub(),
            },
            Command::ListFilters,
            Command::Look,
        ],
        Dialect::Ptp => vec![
            Command::FilterEvents(sub()),
            Command::SuspendEvents,
            Command::ResumeEvents,
            Command::ClearFilters(vec![]),
            Command::GetAttributes(vec![text()]),
            Command::QueryAttributes,
        ],
    });
    all
}

#[test]
fn commands_decode_unchanged() {
    for dialect in [Dialect::Document, Dialect::Ptp] {
        for command in commands(dialect) {
            let message = command.encode(dialect, 7).unwrap();
            assert_eq!(Command::decode(dialect, message), Ok(command));
        }
    }
}

#[test]
fn each_phase_allows_its_commands() {
    use sdm_runtime::wire::agent::is_legal;
    // ModelDef, Start, Stop, Submit, Terminate, SetFilters, Quit, Move, Change, List, Look.
    for (phase, row) in [
        (Phase::Initialize, "......q...."),
        (Phase::Discovery, "m.....q...."),
        (Phase::Normal, "..xxxxxxxxx"),
        (Phase::Suspended, ".x.xxxxxxx."),
        (Phase::Ended, "..........."),
    ] {
        for (command, wanted) in commands(Dialect::Document).iter().zip(row.chars()) {
            assert_eq!(
                is_legal(phase, command),
                wanted != '.',
                "{phase:?} {}",
                command.name()
            );
        }
    }
}

#[test]
fn output_for_unread_client_is_bounded() {
    let mut agent = Agent::new(vec![]);
    agent.receive(INIT.as_bytes());
    agent.receive(b"00000017 0002:00000000:0000000000000017 0003:00000000:00000000");
    agent.poll().unwrap();
    while agent
        .send(Event::New(Kind::Node, "x".repeat(1 << 20), vec![]))
        .is_ok()
    {}
    assert!(agent.take_output().len() <= 16 << 20);
}

#[test]
#[ignore = "a measurement, for --release"]
fn million_processes_are_sent() {
    use sdm_runtime::wire::groups::by_value;
    let start = std::time::Instant::now();
    let groups = by_value(
        "processPID",
        (0..1_000_000).map(|at| (at, (at + 2_000_000).to_string())),
    );
    let (mut bytes, mut messages) = (0, 0);
    for part in groups.chunks(100_000) {
        let event = Event::Change(Kind::Process, "9".into(), part.to_vec());
        let mut wire = Vec::new();
        event
            .encode(Dialect::Ptp, 0)
            .unwrap()
            .encode(&mut wire)
            .unwrap();
        let mut decoder = sdm_runtime::wire::frame::Decoder::default();
        decoder.push(&wire);
        let back = Event::decode(Dialect::Ptp, decoder.poll().unwrap().unwrap());
        assert_eq!(back, Ok(event));
        (bytes, messages) = (bytes + wire.len(), messages + 1);
    }
    println!("{messages} messages, {bytes} bytes, {:?}", start.elapsed());
}

proptest! {
    #[test]
    fn ptp_messages_are_equal_at_any_chunk_size(cuts in proptest::collection::vec(1..9_usize, 1..40), is_ptp in any::<bool>()) {
        let dialect = if is_ptp { Dialect::Ptp } else { Dialect::Document };
        let (mut agent, mut client) = (Agent::new(vec![]), Client::new(dialect, "1000").unwrap());
        let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
        let (mut has_sent, mut events, mut done) = (false, 0, 0);
        for cut in cuts.iter().cycle().take(4000) {
            to_agent.extend(client.take_output());
            let piece: Vec<u8> = to_agent.drain(..(*cut).min(to_agent.len())).collect();
            agent.receive(&piece);
            while let Some((tid, _)) = agent.poll().unwrap() {
                agent.complete(tid, Ok(()));
            }
            if agent.phase() == Phase::Normal && !has_sent {
                has_sent = true;
                agent.send(event(NODES)).unwrap();
                client.send(Command::TerminateJob("1".into())).unwrap();
            }
            to_client.extend(agent.take_output());
            let piece: Vec<u8> = to_client.drain(..(*cut).min(to_client.len())).collect();
            client.receive(&piece);
            while let Some(report) = client.poll().unwrap() {
                match report {
                    sdm_runtime::wire::client::Report::Done(..) => done += 1,
                    _ => events += 1,
                }
            }
        }
        prop_assert_eq!((events, done), (1, 3));
    }
}
