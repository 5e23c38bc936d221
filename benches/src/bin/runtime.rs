//! Cost of the runtime model for 100,000 nodes and a job of a million processes, from the bytes of the wire.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use roaring::RoaringBitmap;
use sdm_benches::heap::{self, Counted};
use sdm_benches::table::Table;
use sdm_runtime::ids::Ids;
use sdm_runtime::model::Model;
use sdm_runtime::model::events::ManagerId;
use sdm_runtime::model::listeners::Interest;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::frame::Decoder;
use sdm_runtime::wire::groups::Group;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const NODES: u32 = 100_000;
const PROCESSES: u32 = 1_000_000;
const BASE: u32 = 1;
const MACHINE: u32 = 2;
const QUEUE: u32 = 3;
const JOB: u32 = 4;
const FIRST_NODE: u32 = 1000;
const FIRST_PROCESS: u32 = 1_000_000;

/// Placement of processes on nodes.
#[derive(Clone, Copy)]
enum Layout {
    /// Processes with no attribute but their state.
    Alike,
    /// A node fills before the next.
    Block,
    /// Round robin: one process on each node, then the next.
    Cyclic,
}

/// A cluster of 100,000 nodes and a job of 1,000,000 processes
#[derive(clap::Parser)]
struct Arguments {
    /// Number of repetitions; the smallest time counts
    #[arg(long, default_value_t = 5)]
    turns: u32,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "100,000 nodes with names, and a job of 1,000,000 processes, from the wire";
    let head = [
        "processes",
        "wire, MB",
        "reading the wire alone, ms",
        "wire to model, ms",
        "ratio",
        "model, bytes a process",
        "one state of all, us",
        "all end, us",
        "groups by state and node, ms",
    ];
    let mut table = Table::new("runtime", title, &head);
    for (name, layout, has_pids) in [
        ("alike", Layout::Alike, false),
        ("node by node", Layout::Block, false),
        ("node by node, pids", Layout::Block, true),
        ("round the nodes, pids", Layout::Cyclic, true),
    ] {
        let wire = wire(layout, has_pids)?;
        let mut best: Option<Times> = None;
        for _ in 0..arguments.turns.max(1) {
            let times = turn(&wire)?;
            best = Some(best.map_or(times, |best| best.min(times)));
        }
        let times = best.context("at least one turn")?;
        table.row(vec![
            name.to_owned(),
            format!("{:.1}", wire.len() as f64 / 1e6),
            format!("{:.1}", times.read * 1e3),
            format!("{:.1}", times.build * 1e3),
            format!("{:.2}", times.build / times.read),
            format!("{:.3}", times.bytes as f64 / f64::from(PROCESSES)),
            format!("{:.1}", times.state * 1e6),
            format!("{:.1}", times.end * 1e6),
            format!("{:.2}", times.groups * 1e3),
        ]);
    }
    table.finish()
}

/// Duration of each step in seconds, and the memory that the processes take in bytes.
#[derive(Clone, Copy)]
struct Times {
    read: f64,
    build: f64,
    bytes: u64,
    state: f64,
    end: f64,
    groups: f64,
}

impl Times {
    fn min(self, other: Self) -> Self {
        Self {
            read: self.read.min(other.read),
            build: self.build.min(other.build),
            bytes: self.bytes.min(other.bytes),
            state: self.state.min(other.state),
            end: self.end.min(other.end),
            groups: self.groups.min(other.groups),
        }
    }
}

/// A pseudo-random process id.
fn pid(index: u32) -> u32 {
    index.wrapping_mul(2_654_435_761) >> 10
}

/// The bytes of the agent's events.
fn wire(layout: Layout, has_pids: bool) -> Result<Vec<u8>> {
    let one = |kind, parent: u32, id: u32| {
        let attributes = vec![("name".to_owned(), format!("it{id}"))];
        let ids = Ids::one(&id.to_string());
        Event::New(kind, parent.to_string(), vec![Group { ids, attributes }])
    };
    let mut events = vec![
        one(Kind::Machine, BASE, MACHINE),
        one(Kind::Queue, BASE, QUEUE),
        one(Kind::Job, QUEUE, JOB),
    ];
    let nodes = (0..NODES).map(|node| {
        let attributes = [
            ("name", format!("node{node:06}")),
            ("nodeState", "UP".to_owned()),
        ];
        let attributes = attributes.map(|(key, value)| (key.to_owned(), value));
        let ids = Ids::one(&(FIRST_NODE + node).to_string());
        let attributes = attributes.into();
        Group { ids, attributes }
    });
    events.push(Event::New(Kind::Node, MACHINE.to_string(), nodes.collect()));
    let each = PROCESSES / NODES;
    let node = |index: u32| match layout {
        Layout::Alike => 0,
        Layout::Block => index / each,
        Layout::Cyclic => index % NODES,
    };
    let group = |indices: RoaringBitmap| {
        let first = indices.min().unwrap_or_default();
        let mut attributes = vec![("processState".to_owned(), "STARTING".to_owned())];
        if !matches!(layout, Layout::Alike) {
            let node = FIRST_NODE + node(first);
            attributes.push(("processNodeId".to_owned(), node.to_string()));
        }
        if has_pids {
            attributes.push(("processPID".to_owned(), pid(first).to_string()));
            attributes.push(("processIndex".to_owned(), first.to_string()));
        }
        let ids = indices.into_iter().map(|index| FIRST_PROCESS + index);
        let ids = Ids::Numbers(ids.collect());
        Group { ids, attributes }
    };
    let groups: Vec<Group> = match layout {
        _ if has_pids => (0..PROCESSES)
            .map(|index| group(std::iter::once(index).collect()))
            .collect(),
        Layout::Alike => vec![group((0..PROCESSES).collect())],
        _ => (0..NODES)
            .map(|node| group((node * each..(node + 1) * each).collect()))
            .collect(),
    };
    for part in groups.chunks(100_000) {
        events.push(Event::New(Kind::Process, JOB.to_string(), part.to_vec()));
    }
    let mut bytes = Vec::new();
    for event in events {
        event.encode(Dialect::Ptp, 0)?.encode(&mut bytes)?;
    }
    Ok(bytes)
}

fn events(wire: &[u8], mut each: impl FnMut(Event)) -> Result<()> {
    let mut decoder = Decoder::default();
    for part in wire.chunks(1 << 16) {
        decoder.push(part);
        while let Some(message) = decoder.poll()? {
            each(Event::decode(Dialect::Ptp, message)?);
        }
    }
    Ok(())
}

fn turn(wire: &[u8]) -> Result<Times> {
    let began = Instant::now();
    events(wire, drop)?;
    let read = began.elapsed().as_secs_f64();

    let mut model = Model::default();
    let manager = model.add_manager(BASE, "bench")?;
    let listener = model.listen(Interest::All).context("there is room")?;
    let mut errors = 0;
    let began = Instant::now();
    events(wire, |event| {
        errors += model.apply(manager, &event);
        while model.poll(listener).is_some() {}
    })?;
    let build = began.elapsed().as_secs_f64();
    let processes = model.elements(manager, Kind::Process);
    let processes = processes.context("they are there")?.clone();
    let count = processes.len();
    ensure!(
        errors == 0 && count == u64::from(PROCESSES),
        "{errors} errors, {count} processes"
    );

    let state = say(&mut model, manager, "RUNNING")?;
    let notices = std::iter::from_fn(|| model.poll(listener)).count();
    ensure!(notices == 1, "{notices} notices of one event");
    let end = say(&mut model, manager, "EXITED")?;
    let began = Instant::now();
    let groups = model.alike(
        manager,
        Kind::Process,
        &processes,
        &["processState", "processNodeId"],
    );
    let elapsed = began.elapsed().as_secs_f64();
    ensure!(!groups.is_empty(), "they have a state");
    drop(groups);
    // The memory freed with the job is the memory that it took, apart from a ten thousandth part for rounding of
    // allocations.
    let job = Event::Remove(Kind::Job, String::new(), Ids::one(&JOB.to_string()));
    let left = heap::bytes();
    model.apply(manager, &job);
    while model.poll(listener).is_some() {}
    let bytes = left.wrapping_sub(heap::bytes());
    Ok(Times {
        read,
        build,
        bytes,
        state,
        end,
        groups: elapsed,
    })
}

/// Sets the state of all processes by one event. Returns the duration in seconds.
fn say(model: &mut Model, manager: ManagerId, state: &str) -> Result<f64> {
    let last = FIRST_PROCESS + PROCESSES - 1;
    let ids: Ids = format!("{FIRST_PROCESS}-{last}").parse()?;
    let attributes = vec![("processState".to_owned(), state.to_owned())];
    let groups = vec![Group { ids, attributes }];
    let event = Event::Change(Kind::Process, JOB.to_string(), groups);
    let began = Instant::now();
    let errors = model.apply(manager, &event);
    let elapsed = began.elapsed().as_secs_f64();
    ensure!(errors == 0, "a state that may follow");
    Ok(elapsed)
}
