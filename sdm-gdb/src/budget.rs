//! What a look may cost. A task stands while it is looked at: when the budget is used up it runs on, and the answer says what is missing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use sdm_debug::{Failure, FailureCode};

/// How long gdb may take for all questions of one look.
pub(super) const LOOK_WAIT: Duration = Duration::from_secs(20);
/// How much gdb may say to them, in bytes: the stacks of a thousand threads are some eight million.
pub(super) const LOOK_BYTES_MAX: u64 = 16 << 20;

/// What is left for a look.
#[derive(Debug)]
pub(super) struct Budget {
    until: Instant,
    bytes_left: Cell<u64>,
}

impl Budget {
    /// That of a look which begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            until: now + LOOK_WAIT,
            bytes_left: Cell::new(LOOK_BYTES_MAX),
        }
    }

    /// gdb has said so much.
    pub(super) fn spend(&self, bytes: u64) {
        self.bytes_left
            .set(self.bytes_left.get().saturating_sub(bytes));
    }

    /// How long gdb may take for one question more.
    ///
    /// # Errors
    /// The budget is used up.
    pub(super) fn wait(&self, now: Instant) -> Result<Duration, Failure> {
        let over = |code, text| Err(Failure::new(code, text));
        let left = self.until.saturating_duration_since(now);
        match (left.is_zero(), self.bytes_left.get()) {
            (true, _) => over(
                FailureCode::TimedOut,
                format!("a look of {} s was not enough", LOOK_WAIT.as_secs()),
            ),
            (false, 0) => over(
                FailureCode::Limit,
                format!("a look of {} MiB was not enough", LOOK_BYTES_MAX >> 20),
            ),
            (false, _) => Ok(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_ends_with_its_time_or_its_bytes() {
        let now = Instant::now();
        let budget = Budget::new(now);
        assert_eq!(budget.wait(now), Ok(LOOK_WAIT));
        let late = budget.wait(now + LOOK_WAIT).unwrap_err();
        assert_eq!(late.code, FailureCode::TimedOut);
        assert_eq!(late.text, "a look of 20 s was not enough");
        budget.spend(LOOK_BYTES_MAX - 1);
        assert!(budget.wait(now).is_ok());
        budget.spend(u64::MAX);
        let much = budget.wait(now).unwrap_err();
        assert_eq!(much.code, FailureCode::Limit);
        assert_eq!(much.text, "a look of 16 MiB was not enough");
    }
}
