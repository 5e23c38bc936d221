//! Merged stacks of running processes, compared with one plain gdb that attaches to all of them.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_benches::{program, tree};

/// The values of `--by` of `sdm stacks`.
const WAYS: [&str; 2] = ["snapshot", "gdb"];

/// `sdm stacks` of running processes, and `thread apply all bt` of as many inferiors of one gdb
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_value = "16,64")]
    sizes: Vec<u32>,
    /// Number of repetitions of each
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Run this command once, and print microseconds and the most kB that one of its processes had
    #[arg(long, num_args = 1.., allow_hyphen_values = true, hide = true)]
    once: Vec<OsString>,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    if let Some((command, words)) = arguments.once.split_first() {
        return once(Command::new(command).args(words));
    }
    let waits = program::build("waits", "waits.c", "cc", &[])?;
    let title =
        "Merged stacks of running processes, beside one gdb with as many inferiors, in turns";
    let head = [
        "processes",
        "by",
        "count",
        "median ms",
        "floor median ms",
        "ratio of medians",
        "largest process, MB",
        "floor, MB",
        "ratio",
    ];
    let mut table = Table::new("attach", title, &head);
    for size in arguments.sizes {
        let crowd = Crowd::start(&waits, size)?;
        for way in WAYS {
            table.row(row(&crowd, size, way, arguments.rounds)?);
        }
    }
    table.finish()
}

/// Measures the attaching to all processes by one value of `--by` (`way`), compared with the plain gdb.
fn row(crowd: &Crowd, size: u32, way: &str, rounds: usize) -> Result<Vec<String>> {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(apart(crowd.sdm(way)?)?);
        floor.push(apart(crowd.gdb())?);
    }
    let [(own, own_kb), (base, base_kb)] = [ours, floor].map(|taken| {
        let times = taken.iter().map(|(time, _)| *time).collect();
        let most = taken.iter().map(|(_, kb)| *kb).max().unwrap_or_default();
        (Spread::of(times), most as f64)
    });
    Ok(vec![
        size.to_string(),
        way.to_owned(),
        rounds.to_string(),
        millis(own.median),
        millis(base.median),
        format!("{:.2}", own.ratio(&base)),
        format!("{:.0}", own_kb / 1024.0),
        format!("{:.0}", base_kb / 1024.0),
        format!("{:.2}", own_kb / base_kb),
    ])
}

/// Processes that wait.
struct Crowd(Vec<Child>);

impl Crowd {
    fn start(program: &std::path::Path, size: u32) -> Result<Self> {
        let mut crowd = Self(Vec::new());
        for _ in 0..size {
            let child = Command::new(program).stdout(Stdio::piped()).spawn();
            let child = child.with_context(|| format!("start {}", program.display()))?;
            crowd.0.push(child);
        }
        for child in &mut crowd.0 {
            let out = child.stdout.as_mut().context("it is piped")?;
            BufReader::new(out).read_line(&mut String::new())?;
        }
        Ok(crowd)
    }

    fn pids(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|child| child.id().to_string())
    }

    fn sdm(&self, way: &str) -> Result<Vec<OsString>> {
        let sdm = tree::binaries()?.join("sdm");
        let pids = self.pids().collect::<Vec<_>>().join(",");
        Ok(vec![
            sdm.into(),
            "stacks".into(),
            "--pids".into(),
            pids.into(),
            "--by".into(),
            way.into(),
        ])
    }

    /// The command line of a gdb that attaches to all processes. It has the settings that SDM uses as well: no
    /// debuginfod, and no confirmations.
    fn gdb(&self) -> Vec<OsString> {
        let mut words = vec!["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
            .into_iter()
            .map(OsString::from)
            .collect::<Vec<_>>();
        let mut say = |text: String| words.extend(["-ex".into(), text.into()]);
        say("set schedule-multiple on".to_owned());
        for (nth, pid) in self.pids().enumerate() {
            if nth > 0 {
                say("add-inferior".to_owned());
                say(format!("inferior {}", nth + 1));
            }
            say(format!("attach {pid}"));
        }
        say("thread apply all bt".to_owned());
        words
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It was ours to end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a command in a separate process, so that the process's children are those of the command only.
fn apart(words: Vec<OsString>) -> Result<(Duration, u64)> {
    let own = std::env::current_exe().context("find this program")?;
    let output = Command::new(own).arg("--once").args(&words).output();
    let output = output.context("start this program again")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {complaint}");
    let (micros, kilobytes) = text.trim().split_once(' ').context("two numbers")?;
    Ok((Duration::from_micros(micros.parse()?), kilobytes.parse()?))
}

fn once(command: &mut Command) -> Result<()> {
    let began = Instant::now();
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("wait_here"), "{said}{complaint}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    println!("{} {}", took.as_micros(), usage.max_rss());
    Ok(())
}
