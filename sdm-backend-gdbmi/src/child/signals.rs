//! The signals that a program starts with.

use std::fs;

use crate::sys::SIGNAL_MAX;

/// Which signals a program started by the server finds blocked and ignored: those the server
/// itself was started with, so that the program sees what it sees without SDM.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SignalState {
    /// Blocked signals by number, rising.
    pub blocked: Vec<i32>,
    /// Ignored signals by number, rising.
    pub ignored: Vec<i32>,
}

impl SignalState {
    /// What this thread has now: to be called first thing in `main`. SIGPIPE is left out of the
    /// ignored ones: the Rust runtime ignores it before `main`, and programs expect it to kill.
    /// SIGTRAP is left out of both: a debugger sees nothing of a program that blocks it.
    #[must_use]
    pub fn capture() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Self::from_status(&status)
    }

    fn from_status(status: &str) -> Self {
        let without = |field, left_out: &[i32]| {
            let mut signals = signals_of(status, field);
            signals.retain(|signal| !left_out.contains(signal));
            signals
        };
        Self {
            blocked: without("SigBlk:", &[nix::libc::SIGTRAP]),
            ignored: without("SigIgn:", &[nix::libc::SIGTRAP, nix::libc::SIGPIPE]),
        }
    }
}

/// The signals of one line of `/proc/PID/status`.
pub(crate) fn signals_of(status: &str, field: &str) -> Vec<i32> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    (1..=SIGNAL_MAX)
        .filter(|signal| mask >> (signal - 1) & 1 == 1)
        // The C library's own cannot be set by anyone.
        .filter(|signal| !matches!(signal, 9 | 19 | 32 | 33))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000010010\nSigIgn:\t0000000180001001\n";
        let state = SignalState::from_status(status);
        assert_eq!(state.blocked, [17]);
        assert_eq!(state.ignored, [1]);
        assert_eq!(SignalState::from_status(""), SignalState::default());
    }
}
