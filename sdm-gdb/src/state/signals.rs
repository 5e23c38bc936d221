//! Signals: those passed to the program, and those that the driver itself has sent.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

/// Signals that are passed to the program without a stop, and reported in one line.
pub(crate) const PASSED: [&str; 6] = [
    "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGPIPE", "SIGTERM", "SIGXCPU",
];

/// Signals that never count as handled by the program: debuggers interrupt, stop and step it by them.
const DEBUGGERS: [&str; 7] = [
    "SIGINT", "SIGTRAP", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT",
];

/// gdb's signal settings by which the driver decides.
pub(crate) struct Handling {
    /// Names of the signals that are passed to the program and reported.
    pub(crate) passed: BTreeSet<String>,
    /// The effect of a SIGINT.
    pub(crate) sigint: Sigint,
    /// Whether the next SIGCONT is reported.
    pub(crate) sigcont: Sigcont,
    /// Names of the signals whose handling the user has set.
    pub(crate) said: BTreeSet<String>,
    /// True if a handler may be the program's own.
    pub(crate) own_handlers: bool,
}

impl Handling {
    /// The number of a signal that does not stop the program if the program has a handler for it. `None` for a signal
    /// of debuggers, or if the user has set its handling.
    pub(crate) fn left_to_program(&self, name: &str) -> Option<i32> {
        let is_ours = DEBUGGERS.contains(&name) || self.said.contains(name);
        let signal = name.parse::<Signal>().ok();
        signal.filter(|_| !is_ours).map(|signal| signal as i32)
    }
}

/// The reaction of gdb to a SIGINT for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sigint {
    /// The program stops, so that SIGINT can interrupt it.
    Stops,
    /// The signal is passed to the program.
    Passes,
}

/// Whether a SIGCONT is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sigcont {
    /// The signal is reported to the front-end.
    Told,
    /// The signal was sent by the driver or by the launcher, and is not reported.
    Unsaid,
}

/// Attempts to stop the program that have not shown an effect yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interrupts {
    /// Number of commands that wait for the program to stop; counted by
    /// [`InterruptGuard`](crate::guards::InterruptGuard).
    pub(crate) asked: u32,
    /// True until gdb has answered the request to send the program a SIGINT.
    pub(crate) int_asked: bool,
    /// True while a SIGINT is on its way to the program.
    pub(crate) int_sent: bool,
    /// True while a SIGSTOP is on its way to the program.
    pub(crate) stop_sent: bool,
    /// True if the driver may have interrupted gdb. If gdb was calling a function of the program, it has passed the
    /// SIGINT on to the program.
    pub(crate) broke_off: bool,
}

impl Default for Handling {
    fn default() -> Self {
        Self {
            passed: passed_at_first(),
            sigint: Sigint::Stops,
            sigcont: Sigcont::Told,
            said: BTreeSet::new(),
            own_handlers: false,
        }
    }
}

/// The signals that gdb initially reports, and passes to the program without a stop.
pub(crate) fn passed_at_first() -> BTreeSet<String> {
    let named = PASSED.into_iter().map(ToOwned::to_owned);
    named.chain((34..=64).map(|n| format!("SIG{n}"))).collect()
}
