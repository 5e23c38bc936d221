//! Statistics of measured times.

use std::time::Duration;

/// Statistics of a number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The shortest time.
    pub min: Duration,
    /// The median.
    pub median: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl Spread {
    /// Statistics of some samples; all zero where there are none.
    #[must_use]
    pub fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |part: usize| {
            let index = samples.len() * part / 100;
            let last = samples.len().saturating_sub(1);
            samples.get(index.min(last)).copied().unwrap_or_default()
        };
        Self {
            min: at(0),
            median: at(50),
            p99: at(99),
        }
    }

    /// Ratio of the median of `self` to that of `other`.
    #[must_use]
    pub fn ratio(&self, other: &Self) -> f64 {
        self.median.as_secs_f64() / other.median.as_secs_f64()
    }
}

/// A time in microseconds, for a table.
#[must_use]
pub fn micros(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 100.0 {
        format!("{micros:.1}")
    } else {
        format!("{micros:.0}")
    }
}

/// A time in milliseconds, for a table.
#[must_use]
pub fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 100.0 {
        format!("{millis:.2}")
    } else {
        format!("{millis:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_minimum_median_and_percentile() {
        let samples = (1..=200).rev().map(Duration::from_micros).collect();
        let spread = Spread::of(samples);
        assert_eq!(spread.min, Duration::from_micros(1));
        assert_eq!(spread.median, Duration::from_micros(101));
        assert_eq!(spread.p99, Duration::from_micros(199));
        assert_eq!(Spread::of(Vec::new()).median, Duration::ZERO);
    }
}
