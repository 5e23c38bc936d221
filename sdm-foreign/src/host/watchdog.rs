//! Ends this process if a call of libpmix does not return: the main loop could report nothing then, and nothing else
//! would ever end the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Interval of the checks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of consecutive checks that may find the main loop in the same iteration: a minute. The longest known
/// call is the registration of 10,000 ranks of a node, 2 s. Time for which the process is stopped does not count.
const LOOKS_MAX: u32 = 12;

/// Counter that the main loop increments before and after each wait. It is even while the loop waits, and odd while it
/// works, also at the beginning.
#[derive(Clone, Debug)]
pub(crate) struct LoopCounter(Arc<AtomicU64>);

impl Default for LoopCounter {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(1)))
    }
}

impl LoopCounter {
    /// Records that the main loop begins to wait, or has ended its wait.
    pub(crate) fn go_on(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Starts a thread that ends this process once the main loop has worked for a minute without a wait.
    pub(crate) fn watch(&self) -> std::io::Result<()> {
        let turns = self.clone();
        let mut watch = Watch::default();
        let watcher = thread::Builder::new().name("watchdog".to_owned());
        watcher.spawn(move || {
            loop {
                thread::sleep(LOOK_EVERY);
                if watch.look(turns.now()) {
                    crate::messages::say(
                        "a call of the PMIx library has not returned for a minute: sdm-pmix ends",
                    );
                    crate::sys::exit(1);
                }
            }
        })?;
        Ok(())
    }
}

/// The counter at the last check, and the number of checks in a row that found it unchanged and odd.
#[derive(Debug, Default)]
struct Watch {
    turn: u64,
    looks: u32,
}

impl Watch {
    /// Makes a check with the present counter; true once the main loop has worked too long.
    fn look(&mut self, turn: u64) -> bool {
        let is_same = turn == self.turn && turn % 2 == 1;
        self.turn = turn;
        self.looks = if is_same { self.looks + 1 } else { 0 };
        self.looks >= LOOKS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_main_loop_is_not_stuck() {
        let (turns, mut watch) = (LoopCounter::default(), Watch::default());
        let mut looks = |turns: &LoopCounter| (0..1000).any(|_| watch.look(turns.now()));
        assert!(looks(&turns), "it works at first");
        // As in the main loop: one call before the wait, and one after it.
        turns.go_on();
        assert!(!looks(&turns), "it waits");
        turns.go_on();
        assert!(looks(&turns), "it works");
    }

    #[test]
    fn watchdog_reports_a_loop_iteration_longer_than_its_bound() {
        let mut watch = Watch::default();
        let mut looks = |turn, count| (0..count).filter(|_| watch.look(turn)).count();
        assert_eq!(looks(4, 1000), 0, "it waits");
        for turn in (5..105).step_by(2) {
            assert_eq!(looks(turn, LOOKS_MAX), 0, "it goes on");
        }
        assert_eq!(looks(201, LOOKS_MAX + 1), 1);
    }
}
