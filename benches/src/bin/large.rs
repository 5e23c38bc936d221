//! Commands to ranks with references to large objects in their frames, compared with one plain gdb, and the time
//! for which these ranks are stopped.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use sdm_benches::pauses::Pauses;
use sdm_benches::plain::PlainGdbs;
use sdm_benches::program;
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_benches::tree::{self, Tree};
use sdm_debug::Command;
use sdm_debug::command::{BacktraceSpec, BreakSpec, FrameSelect, StartSpec};

/// The tests' program with large objects: 494,543 bytes each, as text.
const DOMAIN: &str = "../../tests/fixtures/domain.cc";

/// The MI command by which a plain gdb runs `bt` as at its prompt.
const BT: &str = r#"-interpreter-exec console "bt""#;

/// Shows frames with large objects, and looks at running ranks that have some
#[derive(clap::Parser)]
struct Arguments {
    /// Number of ranks
    #[arg(long, default_value_t = 8)]
    ranks: u32,
    /// Number of rounds of each session, in each of which every command is run once
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Number of sessions, each with a first `bt`
    #[arg(long, default_value_t = 3)]
    starts: usize,
    /// Number of looks at the running ranks in each way
    #[arg(long, default_value_t = 3)]
    looks: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "Ranks that stand with large objects by reference in their frames: a command to all, and plain gdb's `bt`";
    let head = [
        "ranks",
        "what",
        "count",
        "median ms",
        "one gdb's `bt`, ms",
        "ratio",
        "as many gdbs' `bt`, ms",
        "ratio",
    ];
    let mut table = Table::new("large", title, &head);
    commands(&arguments, &mut table)?;
    table.finish()?;
    let title = "Such ranks that run: a look at all, and for how long each does not run";
    let head = [
        "ranks",
        "look",
        "count",
        "median ms",
        "pause of a rank, median ms",
        "longest ms",
    ];
    let mut table = Table::new("large-looks", title, &head);
    looks(&arguments, &mut table)?;
    table.finish()
}

/// The first `bt` and further ones, `frame 1` and `frame` of all ranks, in turns with plain gdbs' `bt`.
fn commands(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let program = program::build("domain", DOMAIN, "c++", &[])?;
    let commands = [
        ("`bt`", Command::Backtrace(BacktraceSpec::default())),
        ("`frame 1`", Command::SelectFrame(FrameSelect::Level(1))),
        ("`frame`", Command::SelectFrame(FrameSelect::Current)),
    ];
    let mut took = commands.each_ref().map(|_| Vec::new());
    let (mut first, mut first_plain) = (Vec::new(), [Vec::new(), Vec::new()]);
    let mut plain = [Vec::new(), Vec::new()];
    for _ in 0..arguments.starts {
        let mut tree = standing(arguments.ranks, &program)?;
        first.push(timed(|| tree.run(&commands[0].1))?);
        let mut gdbs = [1, arguments.ranks].map(|count| standing_plain(count, &program));
        for (gdbs, times) in gdbs.iter_mut().zip(&mut first_plain) {
            let gdbs = gdbs.as_mut().map_err(|error| anyhow!("{error:#}"))?;
            times.push(timed(|| gdbs.query(BT))?);
        }
        for _ in 0..arguments.rounds {
            for (gdbs, times) in gdbs.iter_mut().flatten().zip(&mut plain) {
                times.push(timed(|| gdbs.query(BT))?);
            }
            for ((_, command), took) in commands.iter().zip(&mut took) {
                took.push(timed(|| tree.run(command))?);
            }
        }
        tree.close()?;
    }
    let (plain, first_plain) = (plain.map(Spread::of), first_plain.map(Spread::of));
    let mut row = |what: &str, took: Vec<Duration>, plain: &[Spread; 2]| {
        let mut row = vec![
            arguments.ranks.to_string(),
            what.to_owned(),
            took.len().to_string(),
        ];
        let took = Spread::of(took);
        row.push(millis(took.median));
        let floors = plain.iter();
        row.extend(floors.flat_map(|it| [millis(it.median), format!("{:.2}", took.ratio(it))]));
        table.row(row);
    };
    row("the first `bt`", first, &first_plain);
    for ((what, _), took) in commands.iter().zip(took) {
        row(what, took, &plain);
    }
    Ok(())
}

/// A tree whose ranks are stopped where they have the most frames.
fn standing(ranks: u32, program: &Path) -> Result<Tree> {
    let mut tree = Tree::with_gdb(ranks, ranks)?;
    tree.run(&Command::Start(StartSpec {
        program: program.as_os_str().as_bytes().to_vec(),
        ..StartSpec::default()
    }))?;
    tree.run(&Command::BreakInsert(BreakSpec {
        number: 1,
        location: "deepest".to_owned(),
        ..BreakSpec::default()
    }))?;
    tree.run(&Command::Continue)?;
    Ok(tree)
}

/// Plain gdbs whose programs are stopped where they have the most frames.
fn standing_plain(count: u32, program: &Path) -> Result<PlainGdbs> {
    let mut gdbs = PlainGdbs::start(count, program)?;
    gdbs.query("-break-insert deepest")?;
    gdbs.run("-exec-continue")?;
    Ok(gdbs)
}

fn timed(what: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let began = Instant::now();
    what()?;
    Ok(began.elapsed())
}

fn looks(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let program = program::build("pauses-large", "pauses.c", "mpicxx", &["-pthread"])?;
    let job = Pauses::start(&program, arguments.ranks)?;
    let ways: [(&str, &[&str], &str); 3] = [
        ("`sdm stacks`", &["stacks"], "deepest"),
        (
            "`sdm stacks --by gdb`",
            &["stacks", "--by", "gdb"],
            "deepest",
        ),
        ("`sdm diagnose`", &["diagnose"], "No hang seen"),
    ];
    let mut taken = ways.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..arguments.looks {
        for ((_, words, expect), (times, pauses)) in ways.iter().zip(&mut taken) {
            let (time, more) = job.during(|| timed(|| look(&job, words, expect)))?;
            times.push(time);
            pauses.extend(more);
        }
    }
    for ((what, ..), (times, pauses)) in ways.iter().zip(taken) {
        let longest = pauses.iter().max().copied().unwrap_or_default();
        table.row(vec![
            arguments.ranks.to_string(),
            (*what).to_owned(),
            arguments.looks.to_string(),
            millis(Spread::of(times).median),
            millis(Spread::of(pauses).median),
            millis(longest),
        ]);
    }
    Ok(())
}

/// Runs `sdm` with `words` on the job, and checks that the output contains `expect`.
fn look(job: &Pauses, words: &[&str], expect: &str) -> Result<()> {
    let mut command = Process::new(tree::binaries()?.join("sdm"));
    command.args(words).arg(job.launcher().to_string());
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(text.contains(expect), "{command:?}: {text}");
    Ok(())
}
