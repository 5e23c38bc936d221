//! Strategies that generate arbitrary messages, and functions that make simple ones.
#![allow(dead_code)]

use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use sdm_core::message::*;
use sdm_core::{Attempt, CommandId, Config, ServerId};
use sdm_idset::{IdSet, TaskId};

pub(crate) fn set() -> impl Strategy<Value = IdSet> {
    prop_oneof![
        Just(IdSet::new()),
        (0..4_000_000_u32).prop_map(|id| IdSet::single(TaskId(id))),
        (1..2_000_000_u32).prop_map(IdSet::all_below),
        (any::<u16>(), any::<u16>())
            .prop_map(|(a, n)| { IdSet::from_range(u32::from(a)..=u32::from(a) + u32::from(n)) }),
        vec(0..10_000_u32, 0..60).prop_map(|ids| ids.into_iter().map(TaskId).collect()),
    ]
}

pub(crate) fn payload() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..100).prop_map(Bytes::from)
}

fn id() -> impl Strategy<Value = CommandId> {
    any::<u64>().prop_map(CommandId)
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![Just(Lane::Control), Just(Lane::Bulk)]
}

fn end_policy() -> impl Strategy<Value = EndPolicy> {
    prop_oneof![Just(EndPolicy::KillStarted), Just(EndPolicy::Detach)]
}

fn ms() -> impl Strategy<Value = Duration> {
    any::<u32>().prop_map(|ms| Duration::from_millis(ms.into()))
}

fn config() -> impl Strategy<Value = Config> {
    let times = (ms(), ms(), ms(), ms(), ms(), ms());
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<bool>());
    (times, numbers, end_policy(), payload()).prop_map(|(t, n, on_lost, backend)| Config {
        start_wait: t.0,
        grace: t.1,
        event_window: t.2,
        ping_after: t.3,
        rejoin_wait: t.4,
        orphan_wait: t.5,
        pings_unanswered_max: n.0,
        bulk_window_bytes: n.1,
        classes_max: n.2,
        partial: n.3,
        on_lost,
        backend,
    })
}

fn entry() -> impl Strategy<Value = PlanEntry> {
    let addresses = vec("(tcp://10\\.0\\.0\\.[0-9]:70[0-9]{2}|ä[äö]{0,3})", 0..4);
    (
        any::<u32>(),
        1..u32::MAX,
        set(),
        "(node[0-9]{1,2}|ä[äöü]{0,3})",
        addresses,
    )
        .prop_map(
            |(server, subtree_count, tasks, host, addresses)| PlanEntry {
                server: ServerId(server),
                subtree_count,
                tasks,
                host: host.into(),
                addresses: addresses.iter().collect(),
            },
        )
}

fn command() -> impl Strategy<Value = CommandMessage> {
    let sync = prop_oneof![
        Just(SyncPolicy::WaitForAll),
        any::<u32>().prop_map(|ms| SyncPolicy::TimeOut { ms }),
        Just(SyncPolicy::DontWait),
    ];
    let names = (id(), any::<u32>(), id(), vec(id(), 0..5));
    let rule = (any::<u16>(), payload());
    (names, set(), lane(), sync, rule, payload()).prop_map(
        |(names, destination, lane, sync, rule, payload)| CommandMessage {
            id: names.0,
            attempt: Attempt(names.1),
            destination,
            lane,
            sync,
            rule: rule.0,
            rule_params: rule.1,
            settled_below: names.2,
            open: names.3,
            payload,
        },
    )
}

fn answer() -> impl Strategy<Value = Answer> {
    let status = prop_oneof![Just(Status::Ok), Just(Status::Failed), Just(Status::Others)];
    let block = (status, set(), payload()).prop_map(|(status, sources, payload)| Block {
        status,
        sources,
        payload,
    });
    (
        id(),
        any::<(u32, u32)>(),
        vec(block, 0..5),
        vec((set(), ".{0,20}"), 0..3),
        set(),
    )
        .prop_map(|(id, numbers, blocks, missing, lost)| Answer {
            id,
            attempt: Attempt(numbers.0),
            age_us: numbers.1,
            blocks,
            missing,
            lost,
        })
}

fn event() -> impl Strategy<Value = EventMessage> {
    let block = (set(), payload()).prop_map(|(sources, payload)| EventBlock { sources, payload });
    (lane(), any::<u32>(), vec(block, 0..5)).prop_map(|(lane, age_us, blocks)| EventMessage {
        lane,
        age_us,
        blocks,
    })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let health = prop_oneof![
        Just(Health::Reachable),
        Just(Health::Silent),
        Just(Health::Lost)
    ];
    prop_oneof![
        (config(), vec(entry(), 0..6)).prop_map(|(config, slice)| {
            let (config, slice) = (config.into(), Slice::new(slice));
            Message::Init(Box::new(Init { config, slice }))
        }),
        command().prop_map(Message::Command),
        id().prop_map(Message::Cancel),
        end_policy().prop_map(Message::End),
        answer().prop_map(Message::Answer),
        event().prop_map(Message::Event),
        (set(), health, ".{0,40}").prop_map(|(tasks, health, why)| Message::Reach(ReachChange {
            tasks,
            health,
            why
        })),
    ]
}

/// A typical command of a front-end.
pub(crate) fn plain_command(id: u64, destination: IdSet, payload: impl Into<Bytes>) -> Message {
    Message::Command(CommandMessage {
        id: CommandId(id),
        attempt: Attempt(0),
        destination,
        lane: Lane::Control,
        sync: SyncPolicy::WaitForAll,
        rule: 0,
        rule_params: Bytes::new(),
        settled_below: CommandId(id),
        open: Vec::new(),
        payload: payload.into(),
    })
}

/// Output of one task.
pub(crate) fn output(task: u32, payload: impl Into<Bytes>) -> Message {
    Message::Event(EventMessage {
        lane: Lane::Bulk,
        age_us: 0,
        blocks: vec![EventBlock {
            sources: IdSet::single(TaskId(task)),
            payload: payload.into(),
        }],
    })
}

/// A plan whose hosts hold 128 servers each.
pub(crate) fn plan(servers: std::ops::Range<u32>, host: &str) -> Message {
    let slice = servers
        .map(|server| PlanEntry {
            server: ServerId(server),
            subtree_count: 1,
            tasks: IdSet::single(TaskId(server)),
            host: format!("{host}{}", server / 128).into(),
            addresses: [format!(
                "tcp://10.0.0.{}:{}",
                server / 128 % 250,
                7000 + server % 128
            )]
            .iter()
            .collect(),
        })
        .collect();
    Message::Init(Box::new(Init {
        config: Config::default().into(),
        slice: Slice::new(slice),
    }))
}
