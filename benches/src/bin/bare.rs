//! Start, two answers and end of very many servers, compared with a bare tree of as many processes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use sdm_benches::bare;
use sdm_benches::spread::millis;
use sdm_benches::table::Table;
use sdm_benches::tree::binaries;

/// Time of a session of very many tasks from its command to its end, and of a bare tree of as many processes as it has servers.
#[derive(Parser)]
struct Arguments {
    /// Numbers of tasks
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    sizes: Vec<u32>,
    /// Tasks of one server
    #[arg(long, value_delimiter = ',', default_value = "1,32")]
    each: Vec<u32>,
    /// Turns of each
    #[arg(long, default_value_t = 3)]
    turns: usize,
    #[command(subcommand)]
    part: Option<OtherSelf>,
}

#[derive(clap::Subcommand)]
enum OtherSelf {
    /// Be members of a bare tree; started by the bench
    Fork {
        run: u32,
        first: u32,
        count: u32,
        members: u32,
    },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(OtherSelf::Fork {
        run,
        first,
        count,
        members,
    }) = arguments.part
    {
        return bare::fork_members(run, first, count, members);
    }
    let title = "From the command to its end: start, two answers, end (`sdm emulate -c stacks -c 'print rank % 7'`), beside a bare tree of as many processes as servers and master, ms";
    let head = [
        "tasks",
        "tasks per server",
        "servers",
        "ours, median",
        "bare start",
        "bare answers",
        "bare end",
        "bare, median",
        "ratio of medians",
    ];
    let mut table = Table::new("bare", title, &head);
    for &tasks in &arguments.sizes {
        for &each in &arguments.each {
            table.row(one_size(&arguments, tasks, each)?);
        }
    }
    table.finish()
}

fn one_size(arguments: &Arguments, tasks: u32, each: u32) -> Result<Vec<String>> {
    let servers = tasks.div_ceil(each);
    let program = std::env::current_exe().context("this program's path")?;
    let (mut ours, mut lives) = (Vec::new(), Vec::new());
    for _ in 0..arguments.turns.max(1) {
        ours.push(emulate(tasks, each)?);
        lives.push(bare::live(&program, servers + 1)?);
    }
    ours.sort();
    lives.sort_by_key(|life| life.start + life.answers + life.end);
    let (own, life) = (ours[ours.len() / 2], lives[lives.len() / 2]);
    let least = life.start + life.answers + life.end;
    let mut row: Vec<String> = [tasks, each, servers].map(|it| it.to_string()).into();
    row.extend([own, life.start, life.answers, life.end, least].map(millis));
    row.push(format!("{:.2}", own.as_secs_f64() / least.as_secs_f64()));
    Ok(row)
}

fn emulate(tasks: u32, each: u32) -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new(binaries()?.join("sdm"))
        .args(["emulate", "-n", &tasks.to_string()])
        .args(["--tasks-per-server", &each.to_string()])
        .args(["-c", "stacks", "-c", "print rank % 7", "-c", "quit"])
        .stdout(Stdio::null())
        .status()
        .context("start sdm")?;
    ensure!(status.success(), "sdm emulate -n {tasks}: {status}");
    Ok(began.elapsed())
}
