//! The end of what nobody reads: a terminal or a pipe that is full keeps whoever shows something, but not `sdm` from ending
//! when it is told to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::sink::Sink;
use crate::sys::Interrupt;

/// How many writes are under way.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
/// How many have begun or ended.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Nobody reads any more, and nothing is waited for.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// How long a terminal may take for what is written while `sdm` is to end.
const READ_WAIT: Duration = Duration::from_secs(2);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Carries out what may wait for somebody to read.
pub(crate) fn writing<T>(write: impl FnOnce() -> T) -> T {
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    STEPS.fetch_add(1, Ordering::SeqCst);
    let written = write();
    STEPS.fetch_add(1, Ordering::SeqCst);
    UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    written
}

/// Whether nobody reads any more.
pub(crate) fn is_given_up() -> bool {
    GIVEN_UP.load(Ordering::SeqCst)
}

/// From now on a write that nobody reads ends after a while, `at_once` where that was asked for twice; what is written later goes
/// nowhere. For a thread of its own: it ends when that is so.
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
