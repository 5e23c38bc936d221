//! A diagnosis of many ranks: the answers that the last member of the tree merges, the bytes that reach the
//! front-end, and the time to find the dependencies between ranks.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sdm_benches::spread::{Spread, millis};
use sdm_benches::table::Table;
use sdm_core::limits::PAYLOAD_BYTES_MAX;
use sdm_debug::probe::{ArgumentRole, Call, CallArgument, Known, TaskProbe, TaskWaits};
use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_debug::rules::{Probes, RULE_PROBE, rule};
use sdm_debug::{Reply, wire};
use sdm_diagnose::{Observed, Step, judge};
use sdm_idset::{IdSet, TaskId};

/// Wait graph of as many ranks, from their answers to the verdict.
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    ranks: Vec<u32>,
    /// Number of repetitions of each
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

/// Number of answers that a member merges at once: its children's, or its own tasks'.
const CHILDREN: usize = 32;
/// The rank that waits in a receive without a sender, while the others wait in a collective.
const ODD: u32 = 3;

/// A pattern of waits, with the expected step of the diagnosis.
type Shape = (&'static str, fn(u32, u32) -> TaskProbe, Step);

const SHAPES: [Shape; 3] = [
    ("a ring of receives", ring, Step::Deadlock),
    (
        "one receive, the others in a collective",
        odd,
        Step::Deadlock,
    ),
    ("a chain to a rank that computes", chain, Step::HeldUp),
];

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "A diagnosis of ranks that wait: the last merge of its tree, and the verdict";
    let head = [
        "ranks",
        "they are",
        "payload at the front-end, bytes",
        "last merge, ms",
        "verdict, median ms",
        "verdict, worst ms",
    ];
    let mut table = Table::new("waits", title, &head);
    for ranks in arguments.ranks {
        for shape in SHAPES {
            let (bytes, merge, verdict) =
                measured(ranks, shape, arguments.rounds).context(shape.0)?;
            table.row(vec![
                ranks.to_string(),
                shape.0.to_owned(),
                bytes.to_string(),
                millis(merge.median),
                millis(verdict.median),
                millis(verdict.p99),
            ]);
        }
    }
    table.finish()
}

fn measured(ranks: u32, (_, probe, step): Shape, rounds: usize) -> Result<(usize, Spread, Spread)> {
    let own = |rank: u32| {
        let reply = Reply::Probe(Box::new(probe(rank, ranks)));
        (IdSet::single(TaskId(rank)), wire::encode(&reply))
    };
    let mut level: Vec<(IdSet, Vec<u8>)> = (0..ranks).map(own).collect();
    let mut merges = Vec::new();
    while level.len() > CHILDREN {
        let parts = level.chunks(CHILDREN).map(merged);
        level = parts.collect::<Result<_>>()?;
    }
    for _ in 0..rounds {
        let began = Instant::now();
        merged(&level)?;
        merges.push(began.elapsed());
    }
    let (all, bytes) = merged(&level)?;
    let mut verdicts = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        let sample = || Probes::decode(&all, &bytes).ok().context("a merged answer");
        let found = judge(&Observed {
            samples: vec![sample()?, sample()?, sample()?],
            span: Duration::from_secs(1),
            ..Observed::default()
        });
        verdicts.push(began.elapsed());
        ensure!(found.step == step, "{:?}: {}", found.step, found.conclusion);
    }
    Ok((bytes.len(), Spread::of(merges), Spread::of(verdicts)))
}

/// Merges the answers at one member.
fn merged(parts: &[(IdSet, Vec<u8>)]) -> Result<(IdSet, Vec<u8>)> {
    let rule = rule(RULE_PROBE, &[]).context("the rule of probes")?;
    let mut whole = rule.start();
    for (tasks, bytes) in parts {
        let taken = rule.merge(&mut whole, tasks, bytes);
        ensure!(taken.is_ok(), "an answer is refused: {taken:?}");
    }
    let all = IdSet::union_all(parts.iter().map(|(tasks, _)| tasks));
    Ok((all, rule.finish(whole, PAYLOAD_BYTES_MAX).to_vec()))
}

fn ring(rank: u32, ranks: u32) -> TaskProbe {
    receive((rank + ranks - 1) % ranks)
}

fn odd(rank: u32, _ranks: u32) -> TaskProbe {
    match rank {
        ODD => receive(ODD + 1),
        _ => waiting("MPI_Allreduce", &[(ArgumentRole::Count, Some(1))]),
    }
}

fn chain(rank: u32, _ranks: u32) -> TaskProbe {
    match rank.checked_sub(1) {
        Some(left) => receive(left),
        None => TaskProbe {
            inner_changed: Some(true),
            outer_changed: Some(false),
            stacks: Some(stacks(&["main", "spin"])),
            cpu_ms: Some(400),
            ..TaskProbe::default()
        },
    }
}

fn receive(from: u32) -> TaskProbe {
    let arguments = [
        (ArgumentRole::Source, Some(i64::from(from))),
        (ArgumentRole::Tag, Some(1)),
    ];
    waiting("MPI_Recv", &arguments)
}

fn waiting(function: &str, arguments: &[(ArgumentRole, Option<i64>)]) -> TaskProbe {
    let world = (ArgumentRole::Communicator, None);
    let argument = |(role, number): &(ArgumentRole, Option<i64>)| CallArgument {
        role: *role,
        expression: match role {
            ArgumentRole::Communicator => "MPI_COMM_WORLD".to_owned(),
            _ => "peer".to_owned(),
        },
        value: None,
        number: *number,
        known: Known::Source,
    };
    let call = Call {
        function: function.to_owned(),
        place: StackFrame::own("exchange", "halo.c", 60),
        source: format!("{function}(...);"),
        arguments: arguments.iter().chain([&world]).map(argument).collect(),
    };
    TaskProbe {
        inner_changed: Some(false),
        outer_changed: Some(false),
        stacks: Some(stacks(&["main", "exchange", function])),
        cpu_ms: Some(490),
        waits: Some(TaskWaits {
            call: Some(call),
            ..TaskWaits::default()
        }),
        ..TaskProbe::default()
    }
}

fn stacks(functions: &[&str]) -> TaskStacks {
    let frames = functions.iter();
    let frames = frames.map(|name| StackFrame::own(*name, "halo.c", 60));
    TaskStacks::of_main(frames.collect(), 0)
}
