//! Cost of a small piece of work: time, allocations, and instructions as callgrind counts them.
//!
//! A [`Part`] repeats its work and wraps the measured part of it in [`metered`]; its other work,
//! the other end of a link for instance, is not counted.

use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::heap;

/// Rounds before those that are counted.
const WARM_UP: u32 = 5;
/// Argument with which [`instructions`] runs the program.
pub const COUNT_FLAG: &str = "--under-callgrind";
/// Rounds that callgrind counts.
const COUNTED_ROUNDS: u32 = 20;

/// A piece of work that is repeated and measured.
pub struct Part {
    /// Its name.
    pub name: String,
    make: fn() -> Result<Round>,
}

impl Part {
    /// A part of this name. `make` prepares the work and returns one round of it.
    pub fn new(name: impl Into<String>, make: fn() -> Result<Round>) -> Self {
        let name = name.into();
        Self { name, make }
    }
}

/// One round of a [`Part`].
pub type Round = Box<dyn FnMut() -> Result<()>>;

/// Cost of one round of a [`Part`].
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Time, in nanoseconds: the median of some turns.
    pub nanos: f64,
    /// Number of allocations.
    pub allocations: f64,
}

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// Runs the measured part of a round.
pub fn metered<R>(act: impl FnOnce() -> R) -> R {
    if !ARMED.get() {
        return act();
    }
    let allocations = heap::allocations();
    let began = Instant::now();
    let result = counted(act);
    SPENT.set(SPENT.get() + began.elapsed());
    ALLOCATED.set(ALLOCATED.get() + heap::allocations() - allocations);
    result
}

/// Runs `act`. Callgrind counts only the instructions within this function; see [`instructions`].
#[inline(never)]
fn counted<R>(act: impl FnOnce() -> R) -> R {
    black_box(act())
}

/// Measures the cost of a round. Allocations are counted where [`heap::Counted`] is the allocator.
///
/// # Errors
/// The part's own error.
pub fn cost(part: &Part, rounds: u32) -> Result<Cost> {
    const TURNS: u32 = 5;
    let mut round = prepare(part)?;
    let mut nanos = Vec::new();
    let mut allocations = 0;
    for _ in 0..TURNS {
        SPENT.set(Duration::ZERO);
        ALLOCATED.set(0);
        (0..rounds).try_for_each(|_| round())?;
        nanos.push(SPENT.get().as_nanos() as f64 / f64::from(rounds));
        allocations += ALLOCATED.get();
    }
    ARMED.set(false);
    nanos.sort_by(f64::total_cmp);
    Ok(Cost {
        nanos: nanos[nanos.len() / 2],
        allocations: allocations as f64 / f64::from(TURNS * rounds),
    })
}

/// Makes a part's round, runs the warm-up rounds, and starts to measure.
fn prepare(part: &Part) -> Result<Round> {
    let mut round = (part.make)().with_context(|| format!("prepare {}", part.name))?;
    (0..WARM_UP).try_for_each(|_| round())?;
    ARMED.set(true);
    Ok(round)
}

/// Number of instructions of a round of each part. Runs this program under callgrind; the program is to call
/// [`serve`] with the same parts when [`COUNT_FLAG`] is its argument.
///
/// # Errors
/// There is no valgrind, or a part failed.
pub fn instructions(parts: &[Part]) -> Result<Vec<f64>> {
    let program = std::env::current_exe().context("this program's path")?;
    let folder = std::env::temp_dir().join(format!("sdm-counts-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let dumps = folder.join("part");
    let counts = run_callgrind(&program, &dumps).and_then(|()| {
        // Callgrind numbers its dumps.
        let of = |part: usize| count_in(&PathBuf::from(format!("{}.{part}", dumps.display())));
        (1..=parts.len()).map(of).collect()
    });
    fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    counts
}

fn run_callgrind(program: &Path, dumps: &Path) -> Result<()> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--read-inline-info=no"])
        .arg("--toggle-collect=*meter*counted*")
        .arg("--dump-after=*part_is_over*")
        .arg(format!("--callgrind-out-file={}", dumps.display()))
        .arg(program)
        .arg(COUNT_FLAG)
        .output()
        .context("run valgrind: scripts/install-deps installs it")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "under callgrind: {said}");
    Ok(())
}

/// The instructions per round in a dump.
fn count_in(dump: &Path) -> Result<f64> {
    let text = fs::read_to_string(dump).with_context(|| format!("read {}", dump.display()))?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals:"));
    let total = totals.and_then(|count| count.trim().parse::<f64>().ok());
    let total = total.with_context(|| format!("{}: no totals", dump.display()))?;
    ensure!(
        total > 0.0,
        "{}: callgrind has seen nothing",
        dump.display()
    );
    Ok(total / f64::from(COUNTED_ROUNDS))
}

/// Runs the counted rounds of all parts, in a program that [`instructions`] has started.
///
/// # Errors
/// A part fails.
pub fn serve(parts: &[Part]) -> Result<()> {
    for part in parts {
        let mut round = prepare(part)?;
        (0..COUNTED_ROUNDS).try_for_each(|_| round())?;
        ARMED.set(false);
        // Callgrind notices the marker only where it counts.
        counted(part_is_over);
    }
    Ok(())
}

/// Marker function: callgrind writes its counts when it returns.
#[inline(never)]
fn part_is_over() {
    black_box(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: heap::Counted = heap::Counted;

    #[test]
    fn benchmark_counts_only_allocations_in_metered_code() {
        let part = Part::new("three allocations, one beside", || {
            Ok(Box::new(|| {
                drop(black_box(vec![1_u8; 100]));
                metered(|| (0..3).for_each(|_| drop(black_box(vec![1_u8; 100]))));
                Ok(())
            }))
        });
        let cost = cost(&part, 10).unwrap();
        assert_eq!(cost.allocations, 3.0);
        assert!(cost.nanos > 0.0);
    }
}
