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
    /// The number of debug servers, each with one emulated rank.
    #[arg(short = 'n', long = "processes", value_name = "N", default_value = "16",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASKS_MAX)))]
    pub count: u32,

    /// The commands to carry out, and the form of their output.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// The tree of servers.
    #[command(flatten)]
    pub tree: TreeArgs,

    /// Emulate this many hosts: the servers are spread over host names, each with its own loopback address.
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub hosts: Option<u32>,

    /// Latency to add to every connection between servers, in each direction: `50us`, `2ms`, at most 1 s. With --hosts
    /// only to connections between hosts.
    #[arg(long, value_name = "TIME", value_parser = latency)]
    pub latency: Option<Duration>,

    /// Bandwidth of such a connection in each direction, in bytes per second: `10k` (the minimum), `100M`, `1G`.
    #[arg(long, value_name = "BYTES", value_parser = bandwidth)]
    pub bandwidth: Option<NonZeroU64>,

    /// A file that describes the behaviour of the emulated ranks (see the guide). Without it one rank is a step behind
    /// and the others wait for it: try `stacks`, `outliers step` and `stats residual`. `continue` ends the ranks.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Measure instead of opening a prompt: the time from a command to all ranks until their merged answer arrives, R
    /// times.
    #[arg(long, value_name = "R", conflicts_with_all = ["files", "commands", "interactive", "json"],
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub roundtrips: Option<u32>,

    /// With --roundtrips, the size of the command and of each rank's answer, in bytes.
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
        return Err(ValueError::Wrong("the maximum is 1 s"));
    }
    Ok(latency)
}

fn bandwidth(text: &str) -> Result<NonZeroU64, ValueError> {
    let wrong = || ValueError::Wrong("expected bytes per second, as in 10k, 100M or 1G");
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
    bytes.ok_or(ValueError::Wrong("the minimum is 10k bytes per second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_and_bandwidth_options_are_parsed() {
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
            ("0", "minimum"),
            ("9k", "minimum"),
        ] {
            let error = bandwidth(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
