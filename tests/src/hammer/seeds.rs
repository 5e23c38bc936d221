//! Seeds of the hammer: messages and handshakes of members, plans, and valid inputs of the other decoders.

use bytes::Bytes;
use sdm_core::codec::{encode_message, encode_slice};
use sdm_core::frame as core_frame;
use sdm_core::message::{
    Answer, Block, CommandMessage, Datagram, EndPolicy, EventBlock, EventMessage, ExchangeId,
    ExchangeMessage, ExchangeStep, Health, Init, Lane, Message, Piece, PlanEntry, ReachChange,
    Slice, Status, SyncPolicy,
};
use sdm_core::topology::Topology;
use sdm_core::{Attempt, CommandId, Config, ServerId};
use sdm_debug::{Failure, FailureCode, wire};
use sdm_idset::{IdSet, TaskId};
use sdm_rm::{Kind, Look, Question};

pub(super) fn framed(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    core_frame::encode_message(message, &mut out).expect("a small message");
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

pub(super) fn sets() -> Vec<Vec<u8>> {
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

pub(super) fn set_texts() -> Vec<Vec<u8>> {
    let texts = some_sets().into_iter().map(|set| set.to_string());
    texts.take(4).map(String::into_bytes).collect()
}

pub(super) fn expressions() -> Vec<Vec<u8>> {
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

fn exchange(step: ExchangeStep) -> Message {
    let tasks = some_sets()[2].clone();
    let id = ExchangeId { tasks, number: 0 };
    Message::Exchange(Box::new(ExchangeMessage { id, step }))
}

/// Messages of an exchange (as for a PMIx fence), and a datagram.
fn meetings(sets: &[IdSet], payload: &Bytes) -> Vec<Message> {
    vec![
        exchange(ExchangeStep::Taken(sets[2].clone())),
        exchange(ExchangeStep::Given {
            empty: sets[0].clone(),
            pieces: vec![Piece {
                sources: sets[2].clone(),
                total: 40,
                offset: 0,
                bytes: payload.clone(),
            }],
        }),
        exchange(ExchangeStep::All {
            total: 40,
            offset: 0,
            bytes: payload.clone(),
        }),
        Message::Datagram(Box::new(Datagram {
            to: sets[0].clone(),
            from: TaskId(0),
            number: 9,
            is_brought: true,
            bytes: payload.clone(),
        })),
    ]
}

pub(super) fn messages() -> Vec<Message> {
    let payload = Bytes::from_static(b"a payload of some bytes");
    let sets = some_sets();
    let block = |set: &IdSet, status| Block {
        status,
        sources: set.clone(),
        payload: payload.clone(),
    };
    let mut messages = vec![
        init(),
        Message::Command(CommandMessage {
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
        Message::Ended,
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
        Message::Event(EventMessage {
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
    ];
    messages.extend(meetings(&sets, &payload));
    messages
}

fn init() -> Message {
    let entry = |server, tasks| PlanEntry {
        server,
        subtree_count: 0,
        tasks,
        host: "node7".into(),
        addresses: ["tcp://10.0.0.7:40311"].iter().collect(),
    };
    let servers = (0..9).map(|id| entry(ServerId(id), IdSet::single(TaskId(id))));
    let root = entry(ServerId::MASTER, IdSet::new());
    let plan = Topology::Binomial.plan(root, servers.collect());
    Message::Init(Box::new(Init {
        config: Config::default().into(),
        slice: Slice::new(plan),
    }))
}

/// The unencrypted beginning of a handshake, followed by the length of a record.
pub(super) fn handshakes() -> Vec<Vec<u8>> {
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

pub(super) fn failures() -> Vec<Vec<u8>> {
    let failure = Failure::new(FailureCode::Gdb, "no symbol \"x\" in current context");
    vec![
        failure.encode().to_vec(),
        failure.with_hint("is it optimised away?").encode().to_vec(),
    ]
}

pub(super) fn payloads() -> Vec<Vec<u8>> {
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

pub(super) fn mi_lines() -> Vec<Vec<u8>> {
    [
        "12^done,stack=[frame={level=\"0\",addr=\"0x55\",func=\"main\",args=[]}]\n(gdb) \n",
        "*stopped,reason=\"breakpoint-hit\",disp=\"keep\",bkptno=\"1\",thread-id=\"1\"\n",
        "=thread-group-exited,id=\"i1\",exit-code=\"011\"\n~\"a \\\"quoted\\\" \\303\\244\\n\"\n",
        "7^error,msg=\"No symbol \\\"x\\\" in current context.\"\n(gdb) \n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub(super) fn keeper_frames() -> Vec<Vec<u8>> {
    vec![
        b"\x01\x04\0\0\0\x28\0\x50\0\x02\x03\0\0\0bt\n".to_vec(),
        b"\x07\x10\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x08\x05\0\0\0hello".to_vec(),
    ]
}

/// Messages that PTP's own client and agents wrote.
pub(super) fn proxy_messages() -> Vec<Vec<u8>> {
    [
        "00000041 0001:00000000:00000002 0000000b:version=2.0 0000000b:baseId=1000",
        "00000047 0005:00000001:00000002 0000000e:jobSubId=JOB_1 0000000e:execName=a.out",
        "0000009b 00fb:00000000:0000000a 00000001:1 00000001:8 00000008:fakeEnum 0000000a:ENUMERATED 00000001:E \
         00000004:enum 00000004:true 00000001:A 00000001:A 00000001:B",
        "0000008e 00de:00000000:00000007 00000004:1001 00000001:1 00000009:1010-1013 00000001:3 00000009:name=node \
         0000000c:nodeState=UP 0000000d:fakeStr=x=y z",
        "00000058 00e8:00000000:00000004 00000001:1 00000009:1010-1013 00000001:1 0000000e:nodeState=DOWN",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Inputs of `fuzz_model`, whose bytes choose events: a machine with nodes, a queue with a job, and processes that run
/// and end on those nodes.
pub(super) fn agents() -> Vec<Vec<u8>> {
    // The kind, the parent's id, the action, the number of groups; for each group its ids, the number of attributes,
    // and the attributes.
    let cluster = [
        &[1_u8, 0, 1, 2, 0, 0][..],
        &[2, 0, 1, 3, 0, 0],
        &[3, 2, 0, 0, 1, 4, 3, 1, 3, 4],
        &[4, 3, 0, 0, 1, 8, 0, 1, 2, 0],
        &[5, 8, 0, 0, 2, 9, 3, 2, 0, 1, 1, 8, 13, 2, 2, 0, 0, 5, 8],
        &[5, 8, 0, 7, 1, 9, 2, 1, 0, 2],
    ]
    .concat();
    let removed = [&cluster[..], &[4, 0, 0, 12, 8, 0], &[0, 1, 0, 14]].concat();
    let announced = [&[0_u8, 1, 0, 15, 10, 4, 7][..], &cluster].concat();
    vec![cluster, removed, announced]
}

/// Plans of every kind of tree, with server 0 as the root in place of the master.
fn plans() -> Vec<Vec<PlanEntry>> {
    let entry = |id: u32| PlanEntry {
        server: ServerId(id),
        subtree_count: 0,
        tasks: IdSet::single(TaskId(id)),
        host: format!("node{}", id / 3).into(),
        addresses: [format!("tcp://10.0.0.{id}:40311")].iter().collect(),
    };
    let kinds = ["binomial", "flat", "kary:2", "by-host:2"];
    let kinds = kinds.map(|kind| kind.parse::<Topology>().expect("a topology"));
    let plan = |kind: Topology| kind.plan(entry(0), (1..12).map(entry).collect());
    kinds.map(plan).into()
}

pub(super) fn slices() -> Vec<Vec<u8>> {
    let encoded = |plan: Vec<PlanEntry>| {
        let mut out = Vec::new();
        encode_slice(&plan, &mut out).expect("a small slice");
        out
    };
    plans().into_iter().map(encoded).collect()
}

/// A sequence of inputs of a member, as `sdm_core::node::fuzz_member` reads it.
#[derive(Clone, Default)]
struct Steps(Vec<u8>);

impl Steps {
    fn message(mut self, kind: u8, number: u8, message: &Message) -> Self {
        let mut body = Vec::new();
        encode_message(message, &mut body).expect("a small message");
        let length = u16::try_from(body.len()).expect("a small message");
        self.0.extend([kind, number]);
        self.0.extend(length.to_le_bytes());
        self.0.extend(body);
        self
    }

    /// Appends an input of this kind for each of the numbers.
    fn each(mut self, kind: u8, numbers: std::ops::Range<u8>) -> Self {
        self.0.extend(numbers.flat_map(|number| [kind, number]));
        self
    }
}

/// Lives of a member: a start, a command to all with answers, deaths, and a smaller plan.
pub(super) fn lives() -> Vec<Vec<u8>> {
    let init = |plan| {
        Message::Init(Box::new(Init {
            config: Config::default().into(),
            slice: Slice::new(plan),
        }))
    };
    let answer = |id, attempt| {
        Message::Answer(Answer {
            id: CommandId(id),
            attempt: Attempt(attempt),
            age_us: 5,
            blocks: vec![Block {
                status: Status::Ok,
                sources: (0..10).map(TaskId).collect(),
                payload: Bytes::from_static(b"a"),
            }],
            missing: vec![(IdSet::single(TaskId(10)), "quiet".to_owned())],
            lost: IdSet::single(TaskId(11)),
        })
    };
    let command = |id: u64| {
        Message::Command(CommandMessage {
            id: CommandId(id),
            attempt: Attempt(1),
            destination: (0..12).map(TaskId).collect(),
            lane: Lane::Control,
            sync: SyncPolicy::TimeOut { ms: 500 },
            rule: 0,
            rule_params: Bytes::new(),
            settled_below: CommandId(id.saturating_sub(1)),
            open: Vec::new(),
            payload: Bytes::from_static(b"do it"),
        })
    };
    let mut lives = Vec::new();
    for plan in plans() {
        let alone = PlanEntry {
            subtree_count: 1,
            ..plan[0].clone()
        };
        let begun = Steps::default()
            .message(0, 0, &init(plan))
            .each(3, 0..4)
            .message(0, 0, &command(1));
        // Own tasks answer, and a child; two are silent, one comes back, one dies and is back.
        let torn = begun
            .each(10, 1..2)
            .message(1, 0, &answer(1, 1))
            .each(7, 0..2)
            .each(8, 1..2)
            .each(4, 2..3)
            .each(3, 0..8)
            .message(0, 0, &command(2))
            .message(1, 3, &answer(2, 2));
        let other_parent = torn.clone().each(2, 1..2).message(0, 0, &init(vec![alone]));
        let end = Message::End(EndPolicy::Detach);
        lives.push(other_parent.each(9, 8..12).message(0, 0, &end).0);
        lives.push(
            torn.each(5, 0..3)
                .each(6, 0..3)
                .each(11, 0..2)
                .each(12, 0..2)
                .each(9, 8..24)
                .0,
        );
    }
    lives
}

/// Answers of Slurm's programs and of hosts.
pub(super) fn manager_answers() -> Vec<Vec<u8>> {
    let part = '\u{1f}';
    let fields = "12 (null) 12_3 RUNNING None ann (null) normal debug 4 n[1-2,7] 1795410403 N/A 1795410400 1-02:03:00 /home j";
    let jobs = fields.replace(' ', &part.to_string());
    let json = r#"{"jobs":[{"job_id":7,"array_job_id":{"set":true,"number":7},"array_task_id":3,"job_state":["RUNNING"],
        "name":"j","user_name":"ann","partition":"debug","nodes":"n[1-2]","cpus":4,"comment":"held by sdm","job_resources":
        {"allocated_nodes":[{"nodename":"n1","cpus_used":2}]},"time_limit":{"infinite":true}}],"nodes":[{"name":"n1",
        "state":["IDLE"],"cpus":16,"real_memory":100}]}"#;
    let step = "StepId=12.0 UserId=1000 StartTime=2026-11-23T10:00:00 TimeLimit=UNLIMITED State=RUNNING Partition=debug \
                NodeList=n[1-2] Nodes=2 CPUs=4 Tasks=4 Name=a Network=(null) ResvPorts=12000-12001";
    let reply = r#"{"Looked":[{"name":"h"},{"1":{"queue":"q","attributes":{},"processes":[{"node":"h","attributes":{}}]}}]}"#;
    let note = r#"{"Starts":[1,{"Ssh":{"host":"h","options":[],"agent":null}},"name"]}"#;
    let all = [
        &*jobs,
        json,
        step,
        "debug|up|infinite|*",
        "n1|idle|16|100|(null)|none",
        reply,
        note,
    ];
    all.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Requests of a GridRPC client.
pub(super) fn invoke_lines() -> Vec<Vec<u8>> {
    let job = "JOB_CREATE 1\r\nhostname localhost\r\nport 0\r\nclient_name c\r\nexecutable_path /bin/true\r\nbackend \
               NORMAL\r\ncount 1\r\nstaging false\r\nargument -x\r\nredirect_enable false\r\nstatus_polling \
               0\r\nrefresh_credential 0\r\nJOB_CREATE_END\r\n";
    let rest = "JOB_STATUS j-1\r\nJOB_DESTROY j-1\r\nEXIT\r\n";
    let all = format!("QUERY_FEATURES\r\n{job}{job}{rest}");
    [job, rest, &all]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

pub(super) fn manager_lines() -> Vec<Vec<u8>> {
    let questions = [
        Question::State,
        Question::Elements {
            looks: vec![Look {
                kinds: vec![Kind::Job, Kind::Process],
                ids: Some(vec!["1000".to_owned()]),
                sets: vec!["processPID".to_owned()],
                ..Look::default()
            }],
            is_fresh: true,
        },
        Question::Submit {
            attributes: vec![("execName".to_owned(), "a.out".to_owned())],
        },
    ];
    questions
        .iter()
        .map(|question| serde_json::to_vec(question).expect("it is plain data"))
        .map(|line| [&line[..], b"\n"].concat())
        .collect()
}
