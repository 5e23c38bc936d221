//! Limits on the cost of inspecting a stopped task.
//!
//! A task stays stopped while gdb reads its stacks and variables. An inspection has a budget of time and of gdb's
//! output. When it is used up the task resumes, and the reply names the missing parts.

use std::cell::Cell;
use std::time::{Duration, Instant};

use sdm_debug::{Failure, FailureCode};

/// Time that gdb has for all questions of one inspection.
pub(super) const LOOK_WAIT: Duration = Duration::from_secs(20);
/// Bytes of gdb's output that one inspection may use. The stacks of a thousand threads take about eight million.
pub(super) const LOOK_BYTES_MAX: u64 = 16 << 20;

/// The time and the bytes that one inspection has left.
#[derive(Debug)]
pub(super) struct Budget {
    until: Instant,
    bytes_left: Cell<u64>,
}

impl Budget {
    /// The full budget of an inspection that begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            until: now + LOOK_WAIT,
            bytes_left: Cell::new(LOOK_BYTES_MAX),
        }
    }

    /// Deducts `bytes` of gdb's output.
    pub(super) fn spend(&self, bytes: u64) {
        self.bytes_left
            .set(self.bytes_left.get().saturating_sub(bytes));
    }

    /// Time left for the next question to gdb.
    ///
    /// # Errors
    /// The budget is used up.
    pub(super) fn wait(&self, now: Instant) -> Result<Duration, Failure> {
        let over = |code, text| Err(Failure::new(code, text));
        let left = self.until.saturating_duration_since(now);
        match (left.is_zero(), self.bytes_left.get()) {
            (true, _) => over(
                FailureCode::TimedOut,
                format!(
                    "the sample took longer than its limit of {} s",
                    LOOK_WAIT.as_secs()
                ),
            ),
            (false, 0) => over(
                FailureCode::Limit,
                format!(
                    "the sample needed more than its limit of {} MiB of memory",
                    LOOK_BYTES_MAX >> 20
                ),
            ),
            (false, _) => Ok(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inspection_budget_is_used_up_by_time_or_bytes() {
        let now = Instant::now();
        let budget = Budget::new(now);
        assert_eq!(budget.wait(now), Ok(LOOK_WAIT));
        let late = budget.wait(now + LOOK_WAIT).unwrap_err();
        assert_eq!(late.code, FailureCode::TimedOut);
        assert_eq!(late.text, "the sample took longer than its limit of 20 s");
        budget.spend(LOOK_BYTES_MAX - 1);
        assert!(budget.wait(now).is_ok());
        budget.spend(u64::MAX);
        let much = budget.wait(now).unwrap_err();
        assert_eq!(much.code, FailureCode::Limit);
        assert_eq!(
            much.text,
            "the sample needed more than its limit of 16 MiB of memory"
        );
    }
}
