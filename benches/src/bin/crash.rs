//! Time from a rank's crash to its report in a batch, with and without a gdb for each rank from the start.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_benches::{program, tree};
use sdm_system::proc;

/// The tests' program with large objects by reference, as LULESH has.
const DOMAIN: &str = "../../tests/fixtures/domain.cc";
/// An option that gives each rank a gdb from the start.
const WITH_GDB: [&str; 2] = ["--gdb-setting", "print elements 200"];
/// Part of the line that reports the crash.
const CRASH: &str = "received signal SIGSEGV";

/// A rank of a batch crashes some time after the start
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_value = "8,32")]
    sizes: Vec<u32>,
    /// Seconds from the start to the crash
    #[arg(long, default_value_t = 10)]
    after: u64,
    /// Number of crashes of each
    #[arg(long, default_value_t = 3)]
    crashes: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "One of some spinning ranks with large objects by reference crashes in a batch: ms until its line, until the values of its frames, and until all ranks' stacks and the end";
    let head = [
        "ranks",
        "gdbs from the start",
        "count",
        "its line",
        "its values",
        "the end",
    ];
    let mut table = Table::new("crash", title, &head);
    let program = program::build("domain", DOMAIN, "c++", &[])?;
    let after = Duration::from_secs(arguments.after);
    for &ranks in &arguments.sizes {
        for (options, text) in [(&[][..], "no"), (&WITH_GDB[..], "yes")] {
            let mut took = [const { Vec::new() }; 3];
            for _ in 0..arguments.crashes {
                for (one, took) in crash(ranks, options, &program, after)?
                    .into_iter()
                    .zip(&mut took)
                {
                    took.push(one);
                }
            }
            let mut row = vec![
                ranks.to_string(),
                text.to_owned(),
                took[0].len().to_string(),
            ];
            row.extend(took.map(|took| millis(Spread::of(took).median)));
            table.row(row);
        }
    }
    table.finish()
}

/// Times from the crash of one rank to the lines that report it.
fn crash(ranks: u32, options: &[&str], program: &Path, after: Duration) -> Result<[Duration; 3]> {
    let mut sdm = Command::new(tree::binaries()?.join("sdm"));
    let mut child = sdm
        .args(["run", "--batch", "--no-report", "--launcher", "local"])
        .args(["-n", &ranks.to_string()])
        .args(options)
        .arg("--")
        .arg(program)
        .arg("spin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("start sdm")?;
    thread::sleep(after);
    let told = first_of(program).and_then(|rank| told(&mut child, rank));
    // The server ends its ranks when `sdm` is gone.
    let _ = child.kill();
    child.wait()?;
    told
}

fn told(child: &mut Child, rank: Pid) -> Result<[Duration; 3]> {
    let lines = BufReader::new(child.stdout.take().context("it was piped")?).lines();
    let began = Instant::now();
    kill(rank, Signal::SIGSEGV)?;
    let (mut line_after, mut values_after) = (None, None);
    for line in lines {
        let line = line.context("read what sdm prints")?;
        if line.contains(CRASH) {
            line_after.get_or_insert(began.elapsed());
        } else if line.ends_with("stacks") {
            values_after.get_or_insert(began.elapsed());
        }
    }
    let end = began.elapsed();
    let times = line_after.zip(values_after);
    let (line, values) = times.context("sdm did not report the crash")?;
    Ok([line, values, end])
}

/// A process of a program.
fn first_of(program: &Path) -> Result<Pid> {
    let is_it = |pid: &i32| proc::of(*pid).program().is_ok_and(|path| path == program);
    let found = proc::pids()?.find(is_it);
    found.map(Pid::from_raw).context("no rank runs")
}
