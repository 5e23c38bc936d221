//! One member of the tree alone: messages per second, instructions and allocations, compared with those of its
//! links and of copies of the messages.

use anyhow::{Context, Result};
use sdm_benches::alone;
use sdm_benches::heap::Counted;
use sdm_benches::meter::{self, Cost, Part};
use sdm_benches::table::Table;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// A member of the tree by itself
#[derive(clap::Parser)]
struct Arguments {
    /// Commands in each of a few turns
    #[arg(long, default_value_t = 2000)]
    rounds: u32,
    /// Do the parts, for callgrind to count
    #[arg(long, hide = true)]
    under_callgrind: bool,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    if arguments.under_callgrind {
        return meter::serve(&all());
    }
    let all = all();
    let mut instructions = all.iter().zip(meter::instructions(&all)?);
    let mut next = |rounds| -> Result<(Cost, f64)> {
        let (part, instructions) = instructions.next().context("one count a part")?;
        Ok((meter::cost(part, rounds)?, instructions))
    };
    let title = "A member by itself: a 200-byte command to all behind it, and its merged answer";
    let head = [
        "children",
        "what",
        "messages/command",
        "messages/s",
        "us/command",
        "instructions/command",
        "allocations/command",
        "floor us",
        "floor instructions",
        "floor allocations",
        "ratio of times",
    ];
    let mut table = Table::new("alone", title, &head);
    for children in alone::CHILDREN {
        // Down and up, and as often for each child.
        let messages = 2 + 2 * children;
        for what in WHATS {
            let [ours, least] = [next(arguments.rounds)?, next(arguments.rounds)?];
            table.row(vec![
                children.to_string(),
                what.to_owned(),
                messages.to_string(),
                format!("{:.0}", f64::from(messages) * 1e9 / ours.0.nanos),
                format!("{:.2}", ours.0.nanos / 1e3),
                format!("{:.0}", ours.1),
                format!("{:.1}", ours.0.allocations),
                format!("{:.2}", least.0.nanos / 1e3),
                format!("{:.0}", least.1),
                format!("{:.1}", least.0.allocations),
                format!("{:.1}", ours.0.nanos / least.0.nanos),
            ]);
        }
    }
    table.finish()?;
    let title = "Pieces of what a member does";
    let head = ["piece", "us", "instructions", "allocations"];
    let mut table = Table::new("pieces", title, &head);
    for piece in alone::pieces() {
        let (cost, instructions) = next(arguments.rounds)?;
        table.row(vec![
            piece.name,
            format!("{:.2}", cost.nanos / 1e3),
            format!("{instructions:.0}"),
            format!("{:.1}", cost.allocations),
        ]);
    }
    table.finish()
}

/// Names of the parts that have a row for each size, with their floors.
const WHATS: [&str; 2] = [
    "node; floor: clones",
    "node with its links; floor: the links",
];

/// All measured parts, in the order of the tables' rows. Each part is followed by its floor, where it has one.
fn all() -> Vec<Part> {
    let sizes = alone::sizes().into_iter();
    let of_sizes = sizes.flat_map(|of| [of.node, of.messages, of.member, of.links]);
    of_sizes.chain(alone::pieces()).collect()
}
