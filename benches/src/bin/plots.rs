//! Draws the results of the other benches: reads their CSV files, writes SVG files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sdm_benches::columns::Columns;
use sdm_benches::plot::{Line, Plot};

/// Plots of `roundtrip`, `topologies`, `model` and `million`
#[derive(clap::Parser)]
struct Arguments {
    /// Folder of the CSV files
    #[arg(long, default_value = "target/bench")]
    from: PathBuf,
    /// Folder for the SVG files
    #[arg(long, default_value = "docs/plots")]
    to: PathBuf,
}

fn main() -> Result<()> {
    let Arguments { from, to } = clap::Parser::parse();
    let read = |name: &str| Columns::read(&from.join(name).with_extension("csv"));
    round_trip(&read("roundtrip")?, &to)?;
    topologies(&read("topologies")?, &to)?;
    model(&read("model")?, &to)?;
    million(&read("million")?, &to)
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    let name = name.to_owned();
    Line { name, points }
}

fn round_trip(csv: &Columns, to: &Path) -> Result<()> {
    let of = |column| csv.points("servers", column, |_| true);
    let plot = Plot {
        title: "A 200-byte command to all and its merged answer",
        x: "servers, one process each, on this machine",
        y: "median, us",
        lines: vec![
            line("sdm", of("median")?),
            line("blocking floor", of("floor median")?),
        ],
    };
    plot.write(&to.join("roundtrip.svg"))
}

fn topologies(csv: &Columns, to: &Path) -> Result<()> {
    let mut shapes: Vec<String> = Vec::new();
    csv.each(|row| {
        let shape = row("topology").to_owned();
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    });
    let lines = |ours: &str, floor: &str| -> Result<Vec<Line>> {
        let of = |shape: &str, column: &str| {
            csv.points("servers", column, |row| {
                row("topology") == shape && row(column) != "-"
            })
        };
        let mut lines = vec![line("blocking floor, binomial", of("binomial", floor)?)];
        for shape in &shapes {
            lines.push(line(shape, of(shape, ours)?));
        }
        Ok(lines)
    };
    let round_trip = Plot {
        title: "A 200-byte command to all and its merged answer",
        x: "servers, one process each, on this machine",
        y: "median, us",
        lines: lines("median us", "floor median us")?,
    };
    round_trip.write(&to.join("topologies.svg"))?;
    let throughput = Plot {
        title: "Merged answers per second, 8 commands under way",
        x: "servers, one process each, on this machine",
        y: "answers/s",
        lines: lines("answers/s", "floor answers/s")?,
    };
    throughput.write(&to.join("throughput.svg"))
}

fn model(csv: &Columns, to: &Path) -> Result<()> {
    let shapes = csv
        .names()
        .filter(|name| !["servers", "us per hop"].contains(name));
    let lines = shapes.filter(|name| *name != "flat").map(|shape| {
        let points = csv.points("servers", shape, |row| row("us per hop") == "10")?;
        Ok(line(shape, points))
    });
    let plot = Plot {
        title: "Predicted round trip at 10 us a hop, a core for each member",
        x: "servers",
        y: "ms",
        lines: lines.collect::<Result<_>>()?,
    };
    plot.write(&to.join("model.svg"))
}

fn million(csv: &Columns, to: &Path) -> Result<()> {
    let mut whats: Vec<String> = Vec::new();
    csv.each(|row| {
        let what = row("what").to_owned();
        if !whats.contains(&what) {
            whats.push(what);
        }
    });
    // One task costs nothing that could be drawn, and one in a thousand of a thousand is one.
    whats.retain(|what| !what.starts_with("one "));
    let lines = |column: &'static str| {
        let of = |what: &String| {
            let mut points = csv.points("tasks", column, |row| row("what") == what)?;
            // A cost below the clock's resolution is 0, which has no logarithm.
            points.retain(|(_, cost)| *cost > 0.0);
            Ok(line(what, points))
        };
        whats.iter().map(of).collect::<Result<Vec<_>>>()
    };
    let time = Plot {
        title: "Simulated sessions on one core",
        x: "tasks, one server each",
        y: "ms",
        lines: lines("ms").context("million")?,
    };
    time.write(&to.join("million-ms.svg"))?;
    let root = Plot {
        title: "Bytes over the link between the front-end and the master",
        x: "tasks, one server each",
        y: "bytes",
        lines: lines("bytes at the root").context("million")?,
    };
    root.write(&to.join("million-root.svg"))
}
