//! Benchmarks: the cost of SDM compared with a lower bound for the same work, measured in one run.
//!
//! Each program in `src/bin` measures one thing, prints a table and writes it as CSV;
//! `scripts/bench` runs them all and writes `target/bench/report.md`. Absolute times are those of one
//! machine on one day; only the ratios within a run are meaningful.

pub mod alone;
pub mod bare;
pub mod columns;
pub mod editor;
pub mod floor;
pub mod heap;
pub mod launched;
pub mod meter;
pub mod model;
pub mod pauses;
pub mod plain;
#[cfg(feature = "all")]
pub mod plot;
pub mod processes;
pub mod program;
pub mod spread;
pub(crate) mod sys;
pub mod table;
pub mod threads;
pub mod tree;
pub mod turns;
