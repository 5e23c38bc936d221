//! Trees of several shapes, by default of up to ten thousand servers, compared with the blocking floor in turns.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sdm_benches::floor::{Floor, Sockets};
use sdm_benches::spread::{Spread, micros, millis};
use sdm_benches::table::Table;
use sdm_benches::tree::{Tree, binaries};
use sdm_core::topology::Topology;

/// Round trips and throughput of trees of several shapes
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of servers
    #[arg(long, value_delimiter = ',', default_value = "16,256,1024,10000")]
    sizes: Vec<u32>,
    /// Rounds of each tree and of the floor, at most
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Maximum time with each tree, in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Commands under way at once when throughput is measured
    #[arg(long, default_value_t = 8)]
    flight: usize,
}

/// Maximum number of servers of a flat tree, in which one process has a connection to each of them.
const FLAT_MAX: u32 = 1024;
/// Maximum number of servers for which a floor is started as well: twice as many processes would take minutes.
const FLOOR_MAX: u32 = 1024;
/// Number of rounds of the tree, and then of the floor, before the tree has its next turn.
const TURN: usize = 4;
const PAYLOAD_BYTES: usize = 200;

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = format!(
        "Trees of several shapes: a {PAYLOAD_BYTES}-byte command to all and its merged answer, and {} commands under way; the floor is binomial",
        arguments.flight
    );
    let head = [
        "servers",
        "topology",
        "start ms",
        "rounds",
        "median us",
        "floor median us",
        "ratio of medians",
        "answers/s",
        "floor answers/s",
        "ratio of rates",
        "end ms",
    ];
    let mut table = Table::new("topologies", title, &head);
    let shapes = [
        ("by-host", Topology::default()),
        ("binomial", Topology::Binomial),
        ("4-ary", Topology::Kary(4)),
        ("16-ary", Topology::Kary(16)),
        ("32-ary", Topology::Kary(32)),
        ("64-ary", Topology::Kary(64)),
        ("flat", Topology::Flat),
    ];
    for &servers in &arguments.sizes {
        for (name, topology) in shapes {
            if topology != Topology::Flat || servers <= FLAT_MAX {
                let row = one_tree(&arguments, servers, name, topology);
                table.row(row.with_context(|| format!("{servers} servers, {name}"))?);
            }
        }
    }
    table.finish()
}

fn one_tree(
    arguments: &Arguments,
    servers: u32,
    name: &str,
    topology: Topology,
) -> Result<Vec<String>> {
    let began = Instant::now();
    let (mut tree, echo) = Tree::scripted_as(servers, topology, PAYLOAD_BYTES)?;
    let start = began.elapsed();
    let (down, up) = tree.wire_bytes(&echo)?;
    let program = binaries()?.join("floor");
    let floor = || Floor::start(&program, servers, down, up, Sockets::Tcp);
    let floor = (servers <= FLOOR_MAX).then(floor);
    let mut floor = floor.transpose()?;
    let mut took = [Vec::new(), Vec::new()];
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    // The first turn is for warming up.
    let mut is_first = true;
    while is_first || (took[0].len() < arguments.rounds && Instant::now() < until) {
        for _ in 0..TURN {
            let began = Instant::now();
            tree.run(&echo.command)?;
            took[0].push(began.elapsed());
        }
        for _ in 0..TURN {
            let Some(floor) = &mut floor else { break };
            let began = Instant::now();
            floor.send()?;
            floor.receive()?;
            took[1].push(began.elapsed());
        }
        if std::mem::take(&mut is_first) {
            took = [Vec::new(), Vec::new()];
        }
    }
    let rounds = took[0].len();
    let [ours, least] = took.map(Spread::of);
    // As many commands as the rounds above, within limits, so that this takes about as long.
    let count = rounds.clamp(
        2 * arguments.flight,
        arguments.rounds.max(2 * arguments.flight),
    );
    let rate = |took: Duration| count as f64 / took.as_secs_f64();
    let own_rate = rate(tree.flights(&echo, count, arguments.flight)?);
    let floor_rate = match &mut floor {
        Some(floor) => Some(rate(floor.flights(count, arguments.flight)?)),
        None => None,
    };
    drop(floor);
    let beside = |text: &dyn Fn(f64) -> String| floor_rate.map_or_else(|| "-".to_owned(), text);
    let began = Instant::now();
    tree.close()?;
    Ok(vec![
        servers.to_string(),
        name.to_owned(),
        millis(start),
        rounds.to_string(),
        micros(ours.median),
        beside(&|_| micros(least.median)),
        beside(&|_| format!("{:.2}", ours.ratio(&least))),
        format!("{own_rate:.1}"),
        beside(&|rate| format!("{rate:.1}")),
        beside(&|rate| format!("{:.2}", own_rate / rate)),
        millis(began.elapsed()),
    ])
}
