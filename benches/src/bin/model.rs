//! Costs of a member, measured in a real tree, and the round trips that a model derives from them for trees up to a
//! million.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sdm_benches::floor;
use sdm_benches::model::{Model, ModelCost, Shape};
use sdm_benches::processes;
use sdm_benches::spread::Spread;
use sdm_benches::table::Table;
use sdm_benches::tree::Tree;
use sdm_core::topology::Topology;
use sdm_sim::Pace;

/// The latency of trees of any size, from what one member spends.
#[derive(clap::Parser)]
struct Arguments {
    /// Number of servers of the tree that is measured
    #[arg(long, default_value_t = 64)]
    servers: u32,
    /// Number of commands that are measured
    #[arg(long, default_value_t = 1000)]
    rounds: u32,
}

const SHAPES: [(&str, Shape); 7] = [
    ("binomial", Shape::Binomial),
    ("2-ary", Shape::Kary(2)),
    ("4-ary", Shape::Kary(4)),
    ("8-ary", Shape::Kary(8)),
    ("16-ary", Shape::Kary(16)),
    ("32-ary", Shape::Kary(32)),
    ("flat", Shape::Flat),
];

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let (own, child, median) = measure(&arguments)?;
    let title = "What a member spends on a 200-byte command to all, and the model checked with it";
    let head = [
        "servers",
        "on itself, us",
        "on each child, us",
        "work of all members on this machine's cores, ms",
        "measured round trip, ms",
    ];
    let mut table = Table::new("model-cost", title, &head);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let members = f64::from(arguments.servers + 1);
    // Few cores and many members: the work of all divided by the cores, the tree does not matter.
    let work = (own * members + child * f64::from(arguments.servers)) / cores as f64;
    table.row(vec![
        arguments.servers.to_string(),
        format!("{own:.1}"),
        format!("{child:.1}"),
        format!("{:.2}", work / 1e3),
        format!("{:.2}", median.as_secs_f64() * 1e3),
    ]);
    table.finish()?;
    check(own, child)?;
    let title = "Predicted round trip, ms, one core for each member";
    let head: Vec<&str> = ["servers", "us per hop"]
        .into_iter()
        .chain(SHAPES.map(|(name, _)| name))
        .collect();
    let mut table = Table::new("model", title, &head);
    for servers in [1000, 10_000, 100_000, 1_000_000] {
        for hop_us in [1.0, 10.0, 50.0] {
            let cost = ModelCost {
                own_us: own,
                child_us: child,
                hop_us,
            };
            let mut row = vec![servers.to_string(), hop_us.to_string()];
            row.extend(SHAPES.map(|(_, shape)| {
                let us = Model::new(cost, shape).round_trip_us(servers + 1);
                format!("{:.2}", us / 1e3)
            }));
            table.row(row);
        }
    }
    table.finish()
}

/// Compares the model with the simulator, in which the real nodes decide the order of messages.
fn check(own_us: f64, child_us: f64) -> Result<()> {
    let title = "The model beside the simulator: the same costs, the real nodes, ms";
    let head = [
        "servers",
        "us per hop",
        "topology",
        "model",
        "simulator",
        "ratio",
    ];
    let mut table = Table::new("model-check", title, &head);
    let shapes = [
        ("binomial", Shape::Binomial, Topology::Binomial),
        ("4-ary", Shape::Kary(4), Topology::Kary(4)),
        ("16-ary", Shape::Kary(16), Topology::Kary(16)),
        ("flat", Shape::Flat, Topology::Flat),
    ];
    let span = |us: f64| Duration::from_secs_f64(us / 1e6);
    for (servers, hop_us) in [(1000, 1.0), (1000, 50.0), (10_000, 10.0)] {
        for (name, shape, topology) in shapes {
            let cost = ModelCost {
                own_us,
                child_us,
                hop_us,
            };
            let model = Model::new(cost, shape).round_trip_us(u64::from(servers) + 1) / 1e3;
            let pace = Pace {
                own: span(own_us),
                child: span(child_us),
                hop: span(hop_us),
            };
            let simulated = sdm_sim::round_trip(servers, topology, pace).as_secs_f64() * 1e3;
            table.row(vec![
                servers.to_string(),
                hop_us.to_string(),
                name.to_owned(),
                format!("{model:.2}"),
                format!("{simulated:.2}"),
                format!("{:.2}", model / simulated),
            ]);
        }
    }
    table.finish()
}

/// Processor time per command of a member on itself and on each child, in microseconds, and how
/// long a command took.
fn measure(arguments: &Arguments) -> Result<(f64, f64, Duration)> {
    let (mut tree, echo) = Tree::scripted(arguments.servers, 200)?;
    for _ in 0..50 {
        tree.run(&echo.command)?;
    }
    // Position p of the tree is server p - 1.
    let children = |id| floor::children(id + 1, arguments.servers + 1).len();
    let members: Vec<(u32, usize)> = processes::servers()
        .into_iter()
        .map(|(id, pid)| (pid, children(id)))
        .collect();
    let spent = |want_leaf: bool| {
        let pids = members
            .iter()
            .filter(|(_, children)| (*children == 0) == want_leaf);
        let pids: Vec<u32> = pids.map(|(pid, _)| *pid).collect();
        (processes::cpu(&pids), pids.len())
    };
    let before = [spent(true), spent(false)];
    let mut took = Vec::new();
    for _ in 0..arguments.rounds {
        let began = Instant::now();
        tree.run(&echo.command)?;
        took.push(began.elapsed());
    }
    let after = [spent(true), spent(false)];
    tree.close()?;
    let each = |at: usize| {
        let spent = (after[at].0 - before[at].0).as_secs_f64() * 1e6;
        spent / f64::from(arguments.rounds)
    };
    let (leaves, inner) = (after[0].1, after[1].1);
    let edges: usize = members.iter().map(|(_, children)| children).sum();
    let own = each(0) / leaves as f64;
    let child = (each(1) - own * inner as f64) / edges.max(1) as f64;
    let median = Spread::of(took).median;
    (own > 0.0)
        .then_some((own, child.max(0.0), median))
        .context("the kernel counts no time")
}
