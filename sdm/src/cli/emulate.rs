//! Options of `sdm emulate`.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sdm_core::transport::Shape;

use super::ValueError;
use super::{ScriptArgs, TASKS_MAX, TreeArgs};

/// `sdm emulate`.
#[derive(Debug, Args)]
pub struct EmulateArgs {
    /// The number of servers, with one scripted task each.
    #[arg(short = 'n', long = "processes", value_name = "N", default_value = "16",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASKS_MAX)))]
    pub count: u32,

    /// Commands, and how what comes of them is shown.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// The tree of servers.
    #[command(flatten)]
    pub tree: TreeArgs,

    /// Spread them over this many hosts: names, each with a loopback address of its own.
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub hosts: Option<u32>,

    /// Latency added to every link between servers, each way: `50us`, `2ms`, 1 s at most. With --hosts
    /// only those between hosts.
    #[arg(long, value_name = "TIME", value_parser = latency)]
    pub latency: Option<Duration>,

    /// Bandwidth of such a link each way, in bytes a second: `10k` (at least), `100M`, `1G`.
    #[arg(long, value_name = "BYTES", value_parser = bandwidth)]
    pub bandwidth: Option<NonZeroU64>,

    /// A scenario of what the tasks do; the guide has its words. Without it one task is a step behind the others, which wait for it: `stacks`,
    /// `outliers step`, `stats residual` show it. `continue` ends them.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Measure instead: the time from a command to all until their merged answer is here, R times.
    #[arg(long, value_name = "R", conflicts_with_all = ["files", "commands", "interactive", "json"],
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub roundtrips: Option<u32>,

    /// The size of the command and of each task's answer, in bytes.
    #[arg(long, value_name = "B", default_value = "200", requires = "roundtrips",
          value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub bytes: u32,
}

impl EmulateArgs {
    /// Artificial delay and bandwidth of the links. None if no option sets them.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        let is_shaped = self.latency.is_some() || self.bandwidth.is_some();
        is_shaped.then(|| Shape {
            latency: self.latency.unwrap_or_default(),
            bandwidth: self.bandwidth,
            between_hosts: self.hosts.is_some(),
        })
    }
}

/// Maximum of `--latency`. With a longer delay a peer would count as silent.
const LATENCY_MAX: Duration = Duration::from_secs(1);
/// Minimum of `--bandwidth`, in bytes per second. With less, the tree would not connect in time.
const BANDWIDTH_MIN: u64 = 10_000;

fn latency(text: &str) -> Result<Duration, ValueError> {
    let latency = humantime::parse_duration(text)?;
    if latency > LATENCY_MAX {
        return Err(ValueError::Wrong("1 s is the most"));
    }
    Ok(latency)
}

fn bandwidth(text: &str) -> Result<NonZeroU64, ValueError> {
    let wrong = || ValueError::Wrong("expected bytes a second, as in 10k, 100M or 1G");
    let digits = text.trim_end_matches(['k', 'M', 'G']);
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let bytes = digits.parse::<u64>().map_err(|_| wrong())?;
    let bytes = bytes.checked_mul(factor).ok_or_else(wrong)?;
    let bytes = NonZeroU64::new(bytes).filter(|bytes| bytes.get() >= BANDWIDTH_MIN);
    bytes.ok_or(ValueError::Wrong("10k is the least"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_options_are_parsed() {
        assert_eq!(latency("50us").unwrap(), Duration::from_micros(50));
        for (text, part) in [("2s", "1 s"), ("x", "number"), ("5", "unit")] {
            let error = latency(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for (text, bytes) in [("10k", 10_000), ("25000", 25_000), ("2G", 2_000_000_000)] {
            assert_eq!(bandwidth(text).unwrap().get(), bytes, "{text}");
        }
        for (text, part) in [
            ("", "expected"),
            ("M", "expected"),
            ("1kM", "expected"),
            ("1m", "expected"),
            ("99999999999G", "expected"),
            ("0", "least"),
            ("9k", "least"),
        ] {
            let error = bandwidth(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
