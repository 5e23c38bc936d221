//! Abandoning output that is not read. A full terminal or pipe blocks its writer, but must not keep `sdm`
//! from ending on request.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::sink::Sink;
use crate::sys::Interrupt;

/// Number of writes in progress.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
/// Number of begun and ended writes.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// True once output is abandoned: writes no longer wait.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Time limit for a terminal to accept output while `sdm` ends.
const READ_WAIT: Duration = Duration::from_secs(2);
/// Interval between checks whether the output is read.
const LOOK: Duration = Duration::from_millis(20);

/// Carries out a write that can block.
pub(crate) fn writing<T>(write: impl FnOnce() -> T) -> T {
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    STEPS.fetch_add(1, Ordering::SeqCst);
    let written = write();
    STEPS.fetch_add(1, Ordering::SeqCst);
    UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    written
}

/// True once output is abandoned.
pub(crate) fn is_given_up() -> bool {
    GIVEN_UP.load(Ordering::SeqCst)
}

/// Waits until a write has made no progress for [`READ_WAIT`], or for [`LOOK`] with `at_once`: after a second signal to
/// end. Abandons output from then on: later writes go nowhere. Interrupts `main` until the blocked write has ended, and
/// returns. The caller runs it in a thread of its own.
pub(crate) fn give_up(main: &Interrupt, at_once: bool) {
    let stands_since =
        |steps: u64| UNDER_WAY.load(Ordering::SeqCst) > 0 && STEPS.load(Ordering::SeqCst) == steps;
    let wait = if at_once { LOOK } else { READ_WAIT };
    let mut steps = STEPS.load(Ordering::SeqCst);
    let mut since = Instant::now();
    while !is_given_up() {
        if !stands_since(steps) {
            (steps, since) = (STEPS.load(Ordering::SeqCst), Instant::now());
        } else if since.elapsed() >= wait {
            GIVEN_UP.store(true, Ordering::SeqCst);
            Sink::close();
        }
        thread::park_timeout(LOOK);
    }
    while stands_since(steps) {
        main.send();
        thread::park_timeout(LOOK);
    }
}
