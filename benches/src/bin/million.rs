//! Cost of sessions of up to a million tasks: the real nodes alone, one per task, in one thread.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::ClockId;
use sdm_benches::heap::{self, Counted};
use sdm_benches::table::Table;
use sdm_sim::{Meters, measure};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Sessions of 1000 tasks, of ten times as many and so on, without links and faults.
#[derive(clap::Parser)]
struct Arguments {
    /// Maximum number of tasks
    #[arg(default_value_t = 1_000_000)]
    tasks: u32,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    time_on_core().context("ask how long this thread has run")?;
    let meters = Meters {
        heap: heap::bytes,
        clock: || time_on_core().unwrap_or_default(),
    };
    let title = "Nodes alone, bytes before encryption, one core";
    let head = [
        "tasks",
        "hops",
        "what",
        "answered",
        "messages",
        "bytes",
        "bytes at the root",
        "most in the queue",
        "heap per node",
        "ms",
    ];
    let mut table = Table::new("million", title, &head);
    let most = arguments.tasks;
    let sizes = (3..).map(|digits| 10_u32.saturating_pow(digits).min(most));
    let mut before = 0;
    for tasks in sizes.take_while(|tasks| std::mem::replace(&mut before, *tasks) < most) {
        let sized = measure(tasks, meters);
        for cost in &sized.costs {
            table.row(vec![
                tasks.to_string(),
                sized.depth.to_string(),
                cost.what.to_owned(),
                cost.answered.to_string(),
                cost.messages.to_string(),
                cost.bytes.to_string(),
                cost.root_bytes.to_string(),
                cost.queue_peak.to_string(),
                cost.heap_per_node.to_string(),
                format!("{:.1}", cost.cpu.as_secs_f64() * 1e3),
            ]);
        }
    }
    table.finish()
}

/// Processor time of this thread, so that other processes on the machine do not count.
fn time_on_core() -> nix::Result<Duration> {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from)
}
