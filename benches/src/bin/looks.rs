//! Cost of snapshots of a job: their duration, and the time for which each rank is stopped.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_benches::pauses::Pauses;
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_benches::{program, tree};
use sdm_inspect::looker::{Looker, Question};
use sdm_inspect::snapshot::{CaptureRequest, take_all};
use serde_json::Value;

/// Number of bytes of each stack that a bare snapshot copies.
const WINDOW_BYTES: usize = 256 << 10;
/// Time limit for a thread to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Duration of the idle measurement, which shows the machine's own pauses.
const NOTHING: Duration = Duration::from_millis(300);
/// Number of looks by the same looker after its first.
const FURTHER: u64 = 10;

/// Looks at ranks that sleep a millisecond at a time and note for how long they did not run
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_value = "8,32,128")]
    sizes: Vec<u32>,
    /// Rounds, in each of which each way of looking is taken once
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// A way of looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nothing,
    Bare,
    EuStack,
    Snapshot,
    Gdb,
}

impl Way {
    const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Bare,
        Self::EuStack,
        Self::Snapshot,
        Self::Gdb,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no look",
            Self::Bare => "bare snapshots",
            Self::EuStack => "`eu-stack`, one after the other",
            Self::Snapshot => "`sdm stacks`",
            Self::Gdb => "`sdm stacks --by gdb`",
        }
    }

    fn take(self, job: &Pauses) -> Result<Duration> {
        let pids = job.pids()?;
        let began = Instant::now();
        match self {
            Self::Nothing => std::thread::sleep(NOTHING),
            Self::Bare => bare(&pids)?,
            Self::EuStack => {
                for pid in &pids {
                    said(Command::new("eu-stack").arg("-p").arg(pid.to_string()))?;
                }
            }
            Self::Snapshot => stacks(job, "snapshot")?,
            Self::Gdb => stacks(job, "gdb")?,
        }
        Ok(began.elapsed())
    }
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let program = program::build("pauses", "pauses.c", "mpicc", &["-pthread"])?;
    let title = "A look at ranks that sleep a millisecond at a time: from the command to its end, and for how long each does not run";
    let head = [
        "ranks",
        "look",
        "count",
        "median ms",
        "of `eu-stack`",
        "pause of a rank, median ms",
        "of bare snapshots",
        "longest ms",
    ];
    let mut looks = Table::new("looks", title, &head);
    let title = "Looks of one looker, and ten looks a second for 3 s (`sdm profile`)";
    let head = [
        "ranks",
        "first look, ms",
        "further ones, median ms",
        "ratio",
        "their processor time, ms",
        "pauses of a rank by a profile, most, %",
        "processor time of SDM's looks, %",
    ];
    let mut further = Table::new("further", title, &head);
    for size in arguments.sizes {
        let job = Pauses::start(&program, size)?;
        for row in rows(&job, size, arguments.rounds)? {
            looks.row(row);
        }
        further.row(again(&job, size)?);
    }
    looks.finish()?;
    further.finish()
}

/// Measures each way to take snapshots, in turns.
fn rows(job: &Pauses, size: u32, rounds: usize) -> Result<Vec<Vec<String>>> {
    let mut taken = Way::ALL.map(|way| (way, Vec::new(), Vec::new()));
    for _ in 0..rounds {
        for (way, times, pauses) in &mut taken {
            let (time, more) = job.during(|| way.take(job))?;
            times.push(time);
            pauses.extend(more);
        }
    }
    let spread = |way: Way, of_pauses: bool| {
        let mut known = taken.iter();
        let (_, times, pauses) = known
            .find(|(known, ..)| *known == way)
            .context("it was taken")?;
        let all = if of_pauses { pauses } else { times };
        Ok::<_, anyhow::Error>(Spread::of(all.clone()))
    };
    let (floor, peer) = (spread(Way::Bare, true)?, spread(Way::EuStack, false)?);
    let row = |(way, _, pauses): &(Way, Vec<Duration>, Vec<Duration>)| {
        let (time, pause) = (spread(*way, false)?, spread(*way, true)?);
        let longest = pauses.iter().max().copied().unwrap_or_default();
        let (time, ratio) = match way {
            Way::Nothing => (String::new(), String::new()),
            _ => (millis(time.median), format!("{:.2}", time.ratio(&peer))),
        };
        Ok(vec![
            size.to_string(),
            way.name().to_owned(),
            rounds.to_string(),
            time,
            ratio,
            millis(pause.median),
            format!("{:.2}", pause.ratio(&floor)),
            millis(longest),
        ])
    };
    taken.iter().map(row).collect()
}

/// Seizes all threads of each process, reads registers and stacks, and detaches.
fn bare(pids: &[i32]) -> Result<()> {
    let wanted = pids.iter().map(|pid| CaptureRequest {
        window_bytes: WINDOW_BYTES,
        ..CaptureRequest::of(*pid)
    });
    let taken = take_all(&wanted.collect::<Vec<_>>(), PATIENCE);
    for snapshot in taken {
        snapshot?;
    }
    Ok(())
}

fn stacks(job: &Pauses, way: &str) -> Result<()> {
    let mut command = Command::new(tree::binaries()?.join("sdm"));
    let text = said(command.args(["stacks", &job.launcher().to_string(), "--by", way]))?;
    ensure!(text.contains("sleep_here"), "{text}");
    Ok(())
}

/// The standard output of a program. Its exit status does not count, but an empty output is an error.
fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !text.is_empty(),
        "{command:?}: {}: {complaint}",
        output.status
    );
    Ok(text)
}

/// Measures the first snapshot of one looker, further ones, and a profile.
fn again(job: &Pauses, size: u32) -> Result<Vec<String>> {
    let pids = job.pids()?;
    let server: PathBuf = tree::binaries()?.join("sdm-server");
    let mut looker = Looker::start(&server, false)?;
    let (first, mut spent) = look(&mut looker, 0, &pids)?;
    let before = spent;
    let mut times = Vec::new();
    for number in 1..=FURTHER {
        let (time, all) = look(&mut looker, number, &pids)?;
        times.push(time);
        spent = all;
    }
    let further = Spread::of(times);
    let each = (spent - before) / u32::try_from(FURTHER)?;
    let (stood, processor) = profile(job)?;
    Ok(vec![
        size.to_string(),
        millis(first),
        millis(further.median),
        format!("{:.2}", further.median.as_secs_f64() / first.as_secs_f64()),
        millis(each),
        format!("{stood:.2}"),
        format!("{processor:.1}"),
    ])
}

/// Takes one snapshot. Returns its duration, and the looker's total processor time since its start.
fn look(looker: &mut Looker, number: u64, pids: &[i32]) -> Result<(Duration, Duration)> {
    let began = Instant::now();
    looker.ask(began, number, pids.to_vec(), Question::Stacks);
    let (mut answers, mut spent) = (Vec::new(), Duration::ZERO);
    let mut left = pids.len();
    while left > 0 {
        poll(
            &mut [PollFd::new(looker.as_fd(), PollFlags::POLLIN)],
            PollTimeout::NONE,
        )?;
        ensure!(
            !looker.take(Instant::now(), &mut answers),
            "the looker has ended"
        );
        for answer in answers.drain(..) {
            answer.seen?;
            spent = answer.processor;
            left -= 1;
        }
    }
    Ok((began.elapsed(), spent))
}

/// Measures `sdm profile`. Returns the longest stopped time of a rank and SDM's processor time, both as a
/// percentage of the profiled time.
fn profile(job: &Pauses) -> Result<(f64, f64)> {
    let mut command = Command::new(tree::binaries()?.join("sdm"));
    let launcher = job.launcher().to_string();
    let text = said(command.args(["profile", &launcher, "--for", "3", "--json"]))?;
    let records = text.lines().map(serde_json::from_str::<Value>);
    let record = records
        .filter_map(Result::ok)
        .find(|record| record["kind"] == "profile")
        .with_context(|| text.clone())?;
    let number = |field: &str| record[field].as_f64().with_context(|| field.to_owned());
    let span_us = number("span_ms")? * 1000.0;
    let part = |us: f64| us * 100.0 / span_us;
    Ok((
        part(number("stood_most_us")?),
        part(number("processor_us")?),
    ))
}
