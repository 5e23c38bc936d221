//! Runs seeds of the simulation, on every core, and prints the one command that replays a failure.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use sdm_sim::{Broken, Options, Report, Violation, run};

/// Simulates the tree under faults: each seed decides everything.
#[derive(Parser)]
struct Args {
    /// Run this many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Run this seed only, twice, and compare.
    #[arg(long)]
    seed: Option<u64>,
    /// With this many tasks; drawn from the seed otherwise.
    #[arg(long)]
    tasks: Option<u32>,
    /// Begin with the seed that this text stands for, the id of a commit for example.
    #[arg(long)]
    seed_from: Option<String>,
    /// Go on for this many seconds instead of a number of seeds.
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Go on after a failure, and tell of every seed that failed.
    #[arg(long)]
    all: bool,
    /// On a failure print the last lines of the log, this many.
    #[arg(long, num_args = 0..=1, default_missing_value = "200", default_value_t = 0)]
    log: usize,
}

impl Args {
    fn options(&self) -> Options {
        Options {
            tasks: self.tasks,
            log_lines: self.log,
        }
    }

    fn first_seed(&self) -> u64 {
        let hash = |text: &String| xxhash_rust::xxh3::xxh3_64(text.as_bytes()) >> 16;
        self.seed.or(self.seed_from.as_ref().map(hash)).unwrap_or(0)
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    // A panic is reported with its seed, like other violations.
    std::panic::set_hook(Box::new(|panic| LAST_PANIC.set(panic.to_string())));
    let broken = match args.seed {
        Some(seed) => replay(seed, &args),
        None => run_many(&args),
    };
    match broken {
        None => ExitCode::SUCCESS,
        Some((seed, broken)) => {
            print_broken(seed, &broken, &args);
            ExitCode::FAILURE
        }
    }
}

thread_local! {
    static LAST_PANIC: Cell<String> = const { Cell::new(String::new()) };
}

/// Runs one seed; a panic counts as a violation.
fn run_caught(seed: u64, options: Options) -> Result<Report, Box<Broken>> {
    catch_unwind(AssertUnwindSafe(|| run(seed, options))).unwrap_or_else(|_| {
        let violation = Violation {
            check: "assertion",
            text: LAST_PANIC.take(),
        };
        let lines = Vec::new();
        Err(Box::new(Broken { violation, lines }))
    })
}

/// Runs one seed twice. Returns the failure of a run, or that the two runs differ; `None` if both are equal.
fn replay(seed: u64, args: &Args) -> Option<(u64, Box<Broken>)> {
    let first = run_caught(seed, args.options());
    let second = run_caught(seed, args.options());
    match (first, second) {
        (Err(broken), _) | (_, Err(broken)) => Some((seed, broken)),
        (Ok(first), Ok(second)) if first != second => Some((seed, differs(&first, &second))),
        (Ok(report), Ok(_)) => {
            println!("seed {seed}: {report:?}");
            None
        }
    }
}

fn differs(first: &Report, second: &Report) -> Box<Broken> {
    Box::new(Broken {
        violation: Violation {
            check: "same seed, same run",
            text: format!("{first:?}, then {second:?}"),
        },
        lines: Vec::new(),
    })
}

fn run_many(args: &Args) -> Option<(u64, Box<Broken>)> {
    let start = Instant::now();
    let until = args
        .seconds
        .map(|seconds| start + Duration::from_secs(seconds));
    let first = args.first_seed();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = AtomicBool::new(false);
    let broken: Mutex<Option<(u64, Box<Broken>)>> = Mutex::new(None);
    let peak = AtomicU64::new(0);
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let over = match until {
                Some(until) => Instant::now() >= until,
                None => nth >= args.seeds,
            };
            if over {
                return;
            }
            let seed = first + nth;
            match run_caught(seed, args.options()) {
                Ok(report) => {
                    peak.fetch_max(report.peak_queue_bytes as u64, Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Err(found) => {
                    failed.store(!args.all, Ordering::Relaxed);
                    if args.all {
                        println!(
                            "seed {seed}: {}: {}",
                            found.violation.check, found.violation.text
                        );
                    }
                    let mut broken = broken.lock().expect("nobody panics while holding it");
                    // The smallest seed is reported, so that the output is the same each time.
                    if broken.as_ref().is_none_or(|(other, _)| seed < *other) {
                        *broken = Some((seed, found));
                    }
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    println!(
        "{} seeds from {first} clean in {:.1} s, at most {} bytes queued in a member",
        done.load(Ordering::Relaxed),
        start.elapsed().as_secs_f64(),
        peak.load(Ordering::Relaxed)
    );
    broken.into_inner().expect("nobody panics while holding it")
}

fn print_broken(seed: u64, broken: &Broken, args: &Args) {
    for line in &broken.lines {
        println!("{line}");
    }
    let tasks = args
        .tasks
        .map_or_else(String::new, |tasks| format!(" --tasks {tasks}"));
    println!(
        "seed {seed}: {}: {}",
        broken.violation.check, broken.violation.text
    );
    println!("replay: scripts/sim --seed {seed}{tasks} --log");
}
