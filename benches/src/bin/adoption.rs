//! Adoption after the death of a server with half of the tree below it: the time until the loss is reported, and
//! the time until the others answer again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_benches::processes;
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_benches::tree::Tree;
use sdm_core::topology::Topology;
use sdm_idset::TaskId;

/// Time that the tree takes to close around a dead member.
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of servers
    #[arg(long, value_delimiter = ',', default_value = "16,64,256")]
    sizes: Vec<u32>,
    /// Number of sessions that lose a server, at every size
    #[arg(long, default_value_t = 5)]
    deaths: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "The largest child of the master is killed, ms";
    let head = [
        "servers",
        "deaths",
        "a round trip before",
        "told, median",
        "told, worst",
        "all others have answered, median",
        "all others have answered, worst",
    ];
    let mut table = Table::new("adoption", title, &head);
    for &servers in &arguments.sizes {
        let (mut before, mut told, mut answered) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..arguments.deaths {
            let [a, b, c] = one_death(servers).with_context(|| format!("{servers} servers"))?;
            before.push(a);
            told.push(b);
            answered.push(c);
        }
        let [before, told, answered] = [before, told, answered].map(Spread::of);
        let mut row = vec![servers.to_string(), arguments.deaths.to_string()];
        let times = [
            before.median,
            told.median,
            told.p99,
            answered.median,
            answered.p99,
        ];
        row.extend(times.map(millis));
        table.row(row);
    }
    table.finish()
}

fn one_death(servers: u32) -> Result<[Duration; 3]> {
    let (mut tree, echo) = Tree::scripted_as(servers, Topology::Binomial, 200)?;
    tree.run(&echo.command)?;
    let began = Instant::now();
    tree.run(&echo.command)?;
    let before = began.elapsed();
    // Position p of the tree is server p - 1; the master's largest child has the highest power.
    let victim = (1 << servers.ilog2()) - 1;
    let (_, pid) = processes::servers()
        .into_iter()
        .find(|(server, _)| *server == victim)
        .with_context(|| format!("server {victim} is nowhere"))?;
    let began = Instant::now();
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).context("kill a server")?;
    tree.wait_for_loss(TaskId(victim))?;
    let told = began.elapsed();
    tree.run(&echo.command)?;
    let answered = began.elapsed();
    tree.close()?;
    Ok([before, told, answered])
}
