//! A command to all servers and its merged answer, compared with two blocking floors in turns: over TCP and over
//! Unix sockets.
//!
//! Real processes, encryption on, scripted tasks in place of gdb.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sdm_benches::floor::{Floor, Sockets};
use sdm_benches::processes::{self, Memory};
use sdm_benches::spread::{Spread, micros, millis};
use sdm_benches::table::Table;
use sdm_benches::tree::{Echo, Kind, Tree, binaries};
use sdm_core::topology::Topology;
use sdm_core::transport::HostTransport;

/// Number of warm-up rounds, which are not measured.
const WARM_UP: usize = 20;

/// Round trips of the real tree and of the floor, in turns.
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of servers
    #[arg(long, value_delimiter = ',', default_value = "16,64,256,1024")]
    sizes: Vec<u32>,
    /// Rounds of each at every size, at most
    #[arg(long, default_value_t = 1000)]
    rounds: usize,
    /// Maximum time at every size, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The length of a command's payload and of its answer's
    #[arg(long, default_value_t = 200)]
    bytes: usize,
    /// Rounds of one before the other has its turn
    #[arg(long, default_value_t = 10)]
    turn: usize,
    /// Commands under way at once when throughput is measured
    #[arg(long, default_value_t = 8)]
    flight: usize,
    /// Time for which the idle tree is watched, in seconds; 0 leaves it out
    #[arg(long, default_value_t = 5)]
    idle: u64,
    /// Only round trips, for profiling
    #[arg(long)]
    only: bool,
    /// Shape of the tree of servers
    #[arg(long, default_value_t)]
    topology: Topology,
    /// Transport of links: unix or tcp
    #[arg(long, default_value_t)]
    transport: HostTransport,
}

/// Measurements at one size.
struct Measured {
    ours: Spread,
    floor: Spread,
    unix_floor: Spread,
    cpu: [Duration; 3],
    switches: [f64; 3],
    rounds: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = format!(
        "Round trip of a {}-byte command and its merged answer, µs",
        arguments.bytes
    );
    let head = [
        "servers",
        "rounds",
        "min",
        "median",
        "p99",
        "floor min",
        "floor median",
        "floor p99",
        "ratio of medians",
        "cpu/server",
        "floor cpu/server",
        "switches/server",
        "floor switches/server",
        "unix floor min",
        "unix floor median",
        "unix floor p99",
        "ratio to it",
        "unix floor cpu/server",
    ];
    let mut trips = Table::new("roundtrip", title, &head);
    let title = format!(
        "Merged answers per second, {} commands under way",
        arguments.flight
    );
    let head = ["servers", "per second", "floor per second", "ratio"];
    let mut throughput = Table::new("throughput", title, &head);
    let title = "Start, end, memory and idle life of the tree";
    let head = [
        "servers",
        "start ms",
        "N x spawn of --exit, ms",
        "ratio",
        "end ms",
        "RSS kB/server",
        "PSS kB/server",
        "idle wake-ups/s/server",
    ];
    let mut life = Table::new("life", title, &head);
    for &servers in &arguments.sizes {
        one_size(&arguments, servers, &mut trips, &mut throughput, &mut life)
            .with_context(|| format!("{servers} servers"))?;
    }
    trips.finish()?;
    if !arguments.only {
        throughput.finish()?;
        life.finish()?;
    }
    Ok(())
}

fn one_size(
    arguments: &Arguments,
    servers: u32,
    trips: &mut Table,
    throughput: &mut Table,
    life: &mut Table,
) -> Result<()> {
    let began = Instant::now();
    let kind = Kind {
        topology: arguments.topology,
        transport: arguments.transport,
    };
    let (mut tree, echo) = Tree::scripted_as(servers, kind, arguments.bytes)?;
    let start = began.elapsed();
    let (down, up) = tree.wire_bytes(&echo)?;
    let program = binaries()?.join("floor");
    let mut floors = Vec::new();
    for sockets in [Sockets::Tcp, Sockets::Unix] {
        floors.push(Floor::start(&program, servers, down, up, sockets)?);
    }
    let measured = take_turns(arguments, &mut tree, &echo, &mut floors)?;
    trips.row(trip_row(servers, &measured));
    if !arguments.only {
        let floor = &mut floors[0];
        throughput.row(flights(arguments, servers, &mut tree, &echo, floor)?);
    }
    drop(floors);
    let memory = processes::memory(&processes::server_pids());
    let idle = idle_switches(arguments.idle);
    let began = Instant::now();
    tree.close()?;
    let end = began.elapsed();
    if !arguments.only {
        let spawn = spawn_all(servers)?;
        life.row(life_row(servers, [start, spawn, end], memory, idle));
    }
    Ok(())
}

/// Round trips of the tree and of both floors, a few of each in turns. The first floor uses TCP, the second Unix
/// sockets.
fn take_turns(
    arguments: &Arguments,
    tree: &mut Tree,
    echo: &Echo,
    floors: &mut [Floor],
) -> Result<Measured> {
    for _ in 0..WARM_UP {
        tree.run(&echo.command)?;
        for floor in &mut *floors {
            floor.send()?;
            floor.receive()?;
        }
    }
    let pids = [processes::server_pids(), floors[0].pids(), floors[1].pids()];
    let used = |at: usize| (processes::cpu(&pids[at]), processes::switches(&pids[at]));
    let before = [0, 1, 2].map(used);
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    let (mut ours, mut least) = (Vec::new(), [Vec::new(), Vec::new()]);
    while ours.len() < arguments.rounds && Instant::now() < until {
        for _ in 0..arguments.turn {
            let began = Instant::now();
            tree.run(&echo.command)?;
            ours.push(began.elapsed());
        }
        for (floor, least) in floors.iter_mut().zip(&mut least) {
            for _ in 0..arguments.turn {
                let began = Instant::now();
                floor.send()?;
                floor.receive()?;
                least.push(began.elapsed());
            }
        }
    }
    let rounds = ours.len();
    let per_round = |at: usize| {
        let count = pids[at].len().max(1) * rounds;
        let (cpu, switches) = used(at);
        let cpu = cpu.saturating_sub(before[at].0);
        let switches = switches.saturating_sub(before[at].1);
        (cpu.div_f64(count as f64), switches as f64 / count as f64)
    };
    let used = [0, 1, 2].map(per_round);
    let [floor, unix_floor] = least.map(Spread::of);
    Ok(Measured {
        ours: Spread::of(ours),
        floor,
        unix_floor,
        cpu: used.map(|(cpu, _)| cpu),
        switches: used.map(|(_, switches)| switches),
        rounds,
    })
}

fn trip_row(servers: u32, measured: &Measured) -> Vec<String> {
    let Measured {
        ours,
        floor,
        unix_floor,
        ..
    } = measured;
    let times = [
        ours.min,
        ours.median,
        ours.p99,
        floor.min,
        floor.median,
        floor.p99,
    ];
    let mut row = vec![servers.to_string(), measured.rounds.to_string()];
    row.extend(times.map(micros));
    row.push(format!("{:.2}", ours.ratio(floor)));
    row.extend(measured.cpu[..2].iter().copied().map(micros));
    let switches = measured.switches[..2].iter();
    row.extend(switches.map(|count| format!("{count:.2}")));
    let times = [unix_floor.min, unix_floor.median, unix_floor.p99];
    row.extend(times.map(micros));
    row.push(format!("{:.2}", ours.ratio(unix_floor)));
    row.push(micros(measured.cpu[2]));
    row
}

/// The table row of the throughput of the tree and of a floor, with several commands under way at once.
fn flights(
    arguments: &Arguments,
    servers: u32,
    tree: &mut Tree,
    echo: &Echo,
    floor: &mut Floor,
) -> Result<Vec<String>> {
    const TURNS: u32 = 5;
    let count = (arguments.rounds / 10).clamp(40, 400);
    let mut took = [Duration::ZERO; 2];
    for _ in 0..TURNS {
        took[0] += tree.flights(echo, count, arguments.flight)?;
        took[1] += floor.flights(count, arguments.flight)?;
    }
    let total = count as f64 * f64::from(TURNS);
    let rates = took.map(|took| total / took.as_secs_f64());
    Ok(vec![
        servers.to_string(),
        format!("{:.0}", rates[0]),
        format!("{:.0}", rates[1]),
        format!("{:.2}", rates[0] / rates[1]),
    ])
}

/// Wake-ups of an idle server per second; `None` if they were not measured.
fn idle_switches(seconds: u64) -> Option<f64> {
    let pids = processes::server_pids();
    if seconds == 0 || pids.is_empty() {
        return None;
    }
    let before = processes::switches(&pids);
    std::thread::sleep(Duration::from_secs(seconds));
    let count = processes::switches(&pids).saturating_sub(before);
    Some(count as f64 / pids.len() as f64 / seconds as f64)
}

/// Time to start as many processes that do nothing.
fn spawn_all(servers: u32) -> Result<Duration> {
    let program = binaries()?.join("sdm-server");
    let began = Instant::now();
    for _ in 0..servers {
        let status = Command::new(&program).arg("--exit").status();
        let status = status.with_context(|| format!("start {}", program.display()))?;
        ensure!(status.success(), "sdm-server --exit: {status}");
    }
    Ok(began.elapsed())
}

fn life_row(
    servers: u32,
    [start, spawn, end]: [Duration; 3],
    memory: Memory,
    idle: Option<f64>,
) -> Vec<String> {
    let each = |sum: u64| (sum / u64::from(servers)).to_string();
    vec![
        servers.to_string(),
        millis(start),
        millis(spawn),
        format!("{:.2}", start.as_secs_f64() / spawn.as_secs_f64()),
        millis(end),
        each(memory.rss),
        each(memory.pss),
        idle.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}")),
    ]
}
