//! Measures the costs of a session of any number of nodes with one task each, up to a million.
//!
//! The nodes are the real ones, without links, keys or network: a message reaches its receiver at once, or after a
//! computed time in [`round_trip`]. Messages are encoded to count their bytes, and passed on unencoded.

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

/// The cost of one operation.
#[derive(Clone, Debug)]
pub struct Cost {
    /// The operation, in a few words.
    pub what: &'static str,
    /// Number of messages between members.
    pub messages: u64,
    /// Size of the messages in bytes, framed but not encrypted.
    pub bytes: u64,
    /// Bytes on the link between the front-end and the master, in both directions.
    pub root_bytes: u64,
    /// Maximum number of messages in transit at once.
    pub queue_peak: usize,
    /// Number of tasks that answered.
    pub answered: u64,
    /// Heap size per node after the operation, in bytes: the node's own data, and its share of the plan.
    pub heap_per_node: u64,
    /// Processor time on one core, including the encoding of all messages.
    pub cpu: Duration,
}

/// The measured costs of a session.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Number of tasks, which is also the number of servers.
    pub tasks: u32,
    /// Number of links between the front-end and the farthest server.
    pub depth: u32,
    /// Size of a node without any data, in bytes.
    pub node_bytes: usize,
    /// The cost of each operation, in order.
    pub costs: Vec<Cost>,
}

/// The caller's measuring functions.
#[derive(Clone, Copy, Debug)]
pub struct Meters {
    /// Number of currently allocated bytes.
    pub heap: fn() -> u64,
    /// Processor time of this thread.
    pub clock: fn() -> Duration,
}

/// Times of members and links in a session where each member has a processor core of its own.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time for a member's own work: receiving a command, executing it, answering it.
    pub own: Duration,
    /// Time for each child: half for passing the command on, half for receiving the answer.
    pub child: Duration,
    /// Time of one transfer over a link.
    pub hop: Duration,
}

/// Length of the command that is given to all tasks, in bytes. A typical user command has this length.
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

/// Measures a session of `tasks` servers with one task each.
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

/// Time of one command to all tasks, from its arrival at the master to the master's answer.
///
/// Each member has a core of its own. The nodes are the real ones; the time is computed.
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

/// Sample stacks: most tasks wait in a collective, some compute, and one waits in a receive.
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
    fn round_trip_time_sums_members_and_links() {
        let micros = Duration::from_micros;
        let check = |tasks, topology, [own, child, hop]: [u64; 3], expect| {
            let (own, child, hop) = (micros(own), micros(child), micros(hop));
            let took = round_trip(tasks, topology, Pace { own, child, hop });
            assert_eq!(took, micros(expect), "{tasks} {topology}");
        };
        check(3, Topology::Flat, [0, 0, 5], 10);
        check(7, Topology::Binomial, [0, 0, 5], 30);
        // Three children are sent the command and answer, and each works meanwhile.
        check(3, Topology::Flat, [1, 2, 0], 7);
        check(3, Topology::Flat, [10, 0, 1], 12);
    }
}
