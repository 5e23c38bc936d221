//! A session of as many nodes as are wanted, one task each: what it costs at a million.
//!
//! The nodes are the real ones, alone: no links, no keys, no network. What one sends the other has at
//! once. Messages are encoded to count their bytes, and handed over as they are.

mod crowd;
#[cfg(test)]
mod silence;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use sdm_core::node::Node;
use sdm_core::topology::Topology;
use sdm_debug::reply::{StackFrame, TaskStacks, Value};
use sdm_debug::rules::{RULE_HASH, RULE_STACK_TREE, RULE_STATS};
use sdm_debug::{Reply, wire};
use sdm_idset::{IdSet, TaskId};

use crowd::{Crowd, Paced};

/// What one thing cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// What was done, in a few words.
    pub what: &'static str,
    /// Messages between two members.
    pub messages: u64,
    /// Their bytes, framed but not encrypted.
    pub bytes: u64,
    /// Bytes that went over the link between the front-end and the master, in both directions.
    pub root_bytes: u64,
    /// The most messages under way at once.
    pub queue_peak: usize,
    /// Tasks that answered.
    pub answered: u64,
    /// Bytes on the heap per node afterwards: what the node itself keeps, and its part of the plan.
    pub heap_per_node: u64,
    /// How long it took on one core, the encoding of all messages included.
    pub cpu: Duration,
}

/// A session that was measured.
#[derive(Clone, Debug)]
pub struct Sized {
    /// How many tasks, and servers.
    pub tasks: u32,
    /// Links between the front-end and the farthest server.
    pub depth: u32,
    /// The size of a node that keeps nothing, in bytes.
    pub node_bytes: usize,
    /// What each thing cost, in the order in which they were done.
    pub costs: Vec<Cost>,
}

/// What the caller measures by.
#[derive(Clone, Copy, Debug)]
pub struct Meters {
    /// Bytes that are allocated now.
    pub heap: fn() -> u64,
    /// How long this thread has run.
    pub clock: fn() -> Duration,
}

/// What members and links take in a session whose members have a core each.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What a member spends on itself: taking a command, carrying it out, answering.
    pub own: Duration,
    /// What it spends on each child: half of it on passing the command on, half on taking the answer.
    pub child: Duration,
    /// On each way over a link.
    pub hop: Duration,
}

/// The command that all are given, as long as one of a user is.
const COMMAND_BYTES: usize = 200;

fn cost(what: &'static str) -> Cost {
    Cost {
        what,
        messages: 0,
        bytes: 0,
        root_bytes: 0,
        queue_peak: 0,
        answered: 0,
        heap_per_node: 0,
        cpu: Duration::ZERO,
    }
}

/// Runs a session of `tasks` servers with one task each.
#[must_use]
pub fn measure(tasks: u32, meters: Meters) -> Sized {
    let (mut crowd, depth) = Crowd::new(tasks, meters);
    let all = IdSet::all_below(tasks);
    let half: IdSet = format!("0-{}/2", tasks - 1).parse().expect("a set");
    let one = IdSet::single(TaskId(tasks / 2));
    let mut costs = vec![crowd.start()];
    let mut run = |what, set: &IdSet, rule, answer: fn(TaskId) -> Option<Bytes>| {
        costs.push(crowd.command(what, set, rule, answer));
    };
    run("all, one answer", &all, RULE_HASH, uniform);
    run("every other one, one answer", &half, RULE_HASH, uniform);
    run("one task", &one, RULE_HASH, uniform);
    run("all, 1000 answers", &all, RULE_HASH, thousand);
    run("all, stacks", &all, RULE_STACK_TREE, stacks);
    run("all, statistics", &all, RULE_STATS, number);
    costs.push(crowd.deaths());
    let left = crowd.living();
    costs.push(crowd.command("all, after that", &left, RULE_HASH, uniform));
    Sized {
        tasks,
        depth,
        node_bytes: std::mem::size_of::<Node>(),
        costs,
    }
}

/// How long one command to all and its answer take, from when the master has the command until it has
/// answered, where every member has a core of its own: the nodes are the real ones, the time is reckoned.
#[must_use]
pub fn round_trip(tasks: u32, topology: Topology, pace: Pace) -> Duration {
    let meters = Meters {
        heap: || 0,
        clock: || Duration::ZERO,
    };
    let (mut crowd, _) = Crowd::new(tasks, meters);
    crowd.topology = topology;
    crowd.start();
    crowd.paced = Some(Paced {
        pace,
        under_way: BTreeMap::new(),
        sent: 0,
        busy: vec![Duration::ZERO; crowd.nodes.len()],
    });
    let all = IdSet::all_below(tasks);
    crowd.command("all, one answer", &all, RULE_HASH, uniform);
    let busy = crowd.paced.map(|paced| paced.busy[tasks as usize]);
    busy.expect("it was just set")
}

fn text(text: String) -> Option<Bytes> {
    let cut = None;
    Some(wire::encode(&Reply::Value(Value { text, cut })).into())
}

fn uniform(_: TaskId) -> Option<Bytes> {
    text("x".repeat(COMMAND_BYTES))
}

fn thousand(task: TaskId) -> Option<Bytes> {
    text(format!("answer {}", task.0 % 1000))
}

fn number(task: TaskId) -> Option<Bytes> {
    text(task.0.to_string())
}

/// Most wait in a collective, some are late, one is elsewhere.
fn stacks(task: TaskId) -> Option<Bytes> {
    let names: &[&str] = match task.0 {
        63 => &["main", "solve", "halo", "MPI_Recv"],
        id if id % 10 == 0 => &["main", "solve", "compute"],
        _ => &["main", "solve", "MPI_Allreduce"],
    };
    let frames = names.iter().zip(1..);
    let frames = frames.map(|(name, line)| StackFrame::own(*name, "solver.c", line));
    let stacks = TaskStacks::of_main(frames.collect(), 2);
    Some(wire::encode(&Reply::Stacks(stacks)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_what_its_members_and_links_do() {
        let micros = Duration::from_micros;
        let check = |tasks, topology, [own, child, hop]: [u64; 3], expect| {
            let (own, child, hop) = (micros(own), micros(child), micros(hop));
            let took = round_trip(tasks, topology, Pace { own, child, hop });
            assert_eq!(took, micros(expect), "{tasks} {topology}");
        };
        check(3, Topology::Flat, [0, 0, 5], 10);
        check(7, Topology::Binomial, [0, 0, 5], 30);
        // Three are told and heard, and each works meanwhile.
        check(3, Topology::Flat, [1, 2, 0], 7);
        check(3, Topology::Flat, [10, 0, 1], 12);
    }
}
