//! Counts per command to all: messages, bytes, hops, system calls, and the allocations and instructions of
//! a member alone. No times: the counts are the same on every machine, so that a test detects a change that costs
//! more.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use sdm_benches::heap::Counted;
use sdm_benches::meter::{self, Part};
use sdm_benches::table::Table;
use sdm_benches::threads::Threads;
use sdm_benches::{alone, editor, floor};
use sdm_core::transport::tcp::Calls;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Counts per command to all and its merged answer, held against a baseline.
#[derive(clap::Parser)]
struct Arguments {
    /// The file that the counts are held against
    #[arg(long)]
    baseline: Option<PathBuf>,
    /// Write the file instead
    #[arg(long, requires = "baseline")]
    write: bool,
    /// Do the parts of a member, for callgrind to count
    #[arg(long, hide = true)]
    under_callgrind: bool,
}

/// Commands that are counted at every size.
const ROUNDS: u32 = 200;
/// Number of commands before the counted ones.
const WARM_UP: u32 = 10;
/// The length of a command's payload and of its answer's.
const PAYLOAD_BYTES: usize = 200;

/// A count, with the maximum by which it may grow.
struct Count {
    name: String,
    value: f64,
    tolerance_percent: f64,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    if arguments.under_callgrind {
        return meter::serve(&parts());
    }
    let mut counts = Vec::new();
    for servers in [4, 16, 64] {
        count(servers, &mut counts).with_context(|| format!("{servers} servers"))?;
    }
    count_parts(&mut counts)?;
    match &arguments.baseline {
        Some(path) if arguments.write => write(path, &counts),
        Some(path) => hold_against(path, &counts),
        None => show(&counts, &[]),
    }
}

fn count(servers: u32, counts: &mut Vec<Count>) -> Result<()> {
    // The cost of starting and ending is the same in both, and cancels out.
    let before = life(servers, WARM_UP)?;
    let after = life(servers, WARM_UP + ROUNDS)?;
    let per_round =
        |before: u64, after: u64| after.saturating_sub(before) as f64 / f64::from(ROUNDS);
    // The number of bytes per read or wait depends on the machine's thread scheduling; hence the tolerances.
    let found = [
        ("hops", f64::from(floor::depth(servers + 1) + 1), 0.0),
        ("messages", per_round(before.sends, after.sends), 3.0),
        ("bytes", per_round(before.sent_bytes, after.sent_bytes), 3.0),
        ("reads", per_round(before.recvs, after.recvs), 15.0),
        ("waits", per_round(before.polls, after.polls), 25.0),
    ];
    counts.extend(found.map(|(name, value, tolerance_percent)| Count {
        name: format!("{name} at {servers} servers"),
        value,
        tolerance_percent,
    }));
    Ok(())
}

/// The counted parts of a member alone, and of an editor.
fn parts() -> Vec<Part> {
    let members = alone::sizes().map(|of| of.member).into_iter();
    let members = members.take(2).chain(alone::pieces());
    members.chain(editor::stops()).collect()
}

fn count_parts(counts: &mut Vec<Count>) -> Result<()> {
    let parts = parts();
    let instructions = meter::instructions(&parts)?;
    for (part, instructions) in parts.iter().zip(instructions) {
        let allocations = meter::cost(part, WARM_UP)?.allocations;
        // Compilers differ, and so do the ways in which processors can encrypt and copy.
        let found = [
            ("allocations", allocations, 0.0),
            ("instructions", instructions, 10.0),
        ];
        counts.extend(found.map(|(what, value, tolerance_percent)| Count {
            name: format!("{what}: {}", part.name),
            value,
            tolerance_percent,
        }));
    }
    Ok(())
}

/// System calls of a tree in its whole life.
fn life(servers: u32, rounds: u32) -> Result<Calls> {
    let mut threads = Threads::start(servers)?;
    let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
    for _ in 0..rounds {
        threads.round(&payload)?;
    }
    threads.close()
}

fn write(path: &PathBuf, counts: &[Count]) -> Result<()> {
    let mut text = String::from("count per command to all,value,tolerance %\n");
    for count in counts {
        let _ = writeln!(
            text,
            "{},{:.2},{}",
            count.name, count.value, count.tolerance_percent
        );
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    println!("counts: wrote {}", path.display());
    Ok(())
}

fn hold_against(path: &PathBuf, counts: &[Count]) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let mut baseline = Vec::new();
    for line in text.lines().skip(1) {
        let mut cells = line.split(',');
        let (name, value) = (cells.next().unwrap_or_default(), cells.next());
        let value = value.and_then(|value| value.parse::<f64>().ok());
        let value = value.with_context(|| format!("{}: {line:?} is no count", path.display()))?;
        baseline.push((name.to_owned(), value));
    }
    show(counts, &baseline)?;
    let mut worse = Vec::new();
    for count in counts {
        let Some((_, before)) = baseline.iter().find(|(name, _)| *name == count.name) else {
            bail!(
                "{}: {} is not in it; write it anew",
                path.display(),
                count.name
            );
        };
        if count.value > before * (1.0 + count.tolerance_percent / 100.0) {
            worse.push(format!(
                "{}: {:.2}, was {before:.2}",
                count.name, count.value
            ));
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    let flags = "--baseline benches/baseline.csv --write";
    bail!(
        "more than before:\n  {}\nIf that is worth it: cargo run -p sdm-benches --bin counts -- {flags}",
        worse.join("\n  ")
    )
}

fn show(counts: &[Count], baseline: &[(String, f64)]) -> Result<()> {
    let title = format!("Counts per {PAYLOAD_BYTES}-byte command to all and its merged answer");
    let mut table = Table::new(
        "counts",
        title,
        &["count", "now", "baseline", "may rise by"],
    );
    for count in counts {
        let before = baseline.iter().find(|(name, _)| *name == count.name);
        table.row(vec![
            count.name.clone(),
            format!("{:.2}", count.value),
            before.map_or_else(|| "-".to_owned(), |(_, value)| format!("{value:.2}")),
            format!("{} %", count.tolerance_percent),
        ]);
    }
    table.finish()
}
