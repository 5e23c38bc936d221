//! Log lines about refused clients, limited so that many refused clients neither fill the log nor delay others.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Minimum time between two lines about refused clients.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A count of the refused clients, and the time of the last line about them.
#[derive(Debug, Default)]
pub struct Refusals {
    said: Option<Instant>,
    /// Number of refusals since the last line.
    unsaid: u64,
}

impl Refusals {
    /// Counts a refusal. Returns the line to log now; `None` if no line is due.
    pub fn line(&mut self, now: Instant, why: &dyn Display) -> Option<String> {
        if self.said.is_some_and(|said| now < said + SAY_EVERY) {
            self.unsaid += 1;
            return None;
        }
        self.said = Some(now);
        Some(match std::mem::take(&mut self.unsaid) {
            0 => why.to_string(),
            more => format!("{why} (and {more} more since the last report)"),
        })
    }

    /// The last line, about refusals that were not logged; `None` if all were.
    pub fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.unsaid);
        (rest > 0).then(|| format!("clients disconnected since the last report: {rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_are_logged_at_intervals() {
        let start = Instant::now();
        let mut refusals = Refusals::default();
        let mut at = |seconds, why: &str| {
            let now = start + Duration::from_secs(seconds);
            refusals.line(now, &why)
        };
        assert_eq!(at(0, "a").as_deref(), Some("a"));
        for n in 0..1000 {
            assert_eq!(at(1, &n.to_string()), None);
        }
        let expect = "b (and 1000 more since the last report)";
        assert_eq!(at(60, "b").as_deref(), Some(expect));
        assert_eq!(at(120, "c").as_deref(), Some("c"));
        assert_eq!(at(121, "c"), None);
        assert_eq!(
            refusals.rest().as_deref(),
            Some("clients disconnected since the last report: 1")
        );
        assert_eq!(refusals.rest(), None);
    }
}
