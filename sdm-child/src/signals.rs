//! The blocked and ignored signals with which a program starts.

use sdm_system::proc::{self, Status};
use serde::{Deserialize, Serialize};

use crate::sys::SIGNAL_MAX;

/// The blocked and ignored signals of a program that the server starts. They are those with which the server itself
/// was started, so that the program starts as it would without SDM.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SignalState {
    /// Blocked signals by number, in ascending order.
    pub blocked: Vec<i32>,
    /// Ignored signals by number, in ascending order.
    pub ignored: Vec<i32>,
}

impl SignalState {
    /// The state of this thread: call it first in `main`.
    ///
    /// SIGPIPE counts as ignored only if it was ignored when this process began: the Rust runtime ignores it before
    /// `main`. SIGTRAP is left out of both lists, as a debugger sees nothing of a program that blocks it.
    #[must_use]
    pub fn capture() -> Self {
        let status = proc::own_thread().status();
        let state = status.map_or_else(|_| Self::default(), |status| Self::from_status(&status));
        match sdm_system::began_without_sigpipe() {
            true => state.without_sigpipe(),
            false => state,
        }
    }

    fn without_sigpipe(mut self) -> Self {
        self.ignored.push(nix::libc::SIGPIPE);
        self.ignored.sort_unstable();
        self
    }

    fn from_status(status: &Status) -> Self {
        let without = |field, left_out: &[i32]| {
            let mut signals = status.signals(field);
            // The dispositions of SIGKILL and SIGSTOP, and of the two signals reserved for the C library, cannot be
            // changed.
            signals.retain(|it| *it <= SIGNAL_MAX && !matches!(it, 9 | 19 | 32 | 33));
            signals.retain(|signal| !left_out.contains(signal));
            signals
        };
        Self {
            blocked: without("SigBlk", &[nix::libc::SIGTRAP]),
            ignored: without("SigIgn", &[nix::libc::SIGTRAP, nix::libc::SIGPIPE]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_masks_are_parsed() {
        let status = "Name:\tx\nSigBlk:\t0000000000010010\nSigIgn:\t0000000180001001\n";
        let of = |text: &str| SignalState::from_status(&Status::parse(text));
        let state = of(status);
        assert_eq!(state.blocked, [17]);
        assert_eq!(state.ignored, [1]);
        assert_eq!(state.without_sigpipe().ignored, [1, 13]);
        assert_eq!(of(""), SignalState::default());
    }
}
