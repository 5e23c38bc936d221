//! Waits for a stop by a signal that the kernel has not delivered yet, or that gdb has not reported yet.
//!
//! On a loaded machine both can take any time. So no time limit decides here, but the state of the kernel: whether the
//! signal is pending, and whether a thread that could take it is without a processor.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::gdb::Gdb;
use crate::host::KernelThread;
use crate::state::State;

/// The threads of a process by their ids.
type Threads = BTreeMap<i32, KernelThread>;

/// The prospect of a stop that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prospect {
    /// The program or gdb only lacks a processor.
    Coming,
    /// Some threads of the program have stopped, and at least one waits uninterruptibly. gdb reports the stop only when
    /// all have stopped.
    Incomplete,
    /// Nothing shows that the program will stop.
    None,
}

impl Gdb {
    /// True if the kernel shows the program as stopped: it neither runs nor ends.
    pub(super) fn is_held(&self) -> bool {
        let pid = self.get().pid();
        let state = pid.and_then(|pid| self.host().process_state(pid));
        matches!(state, Some(('t' | 'T', _)))
    }

    /// True if every thread of the program blocks the signal.
    pub(super) fn blocks_signal(&self, pid: i32, signal: Signal) -> bool {
        let threads = self.host().threads(pid);
        !threads.is_empty() && threads.values().all(|it| it.blocks(signal))
    }

    /// True if the signal is pending for the program or one of its threads.
    pub(super) fn has_pending(&self, pid: i32, signal: Signal) -> bool {
        let threads = self.host().threads(pid);
        threads.values().any(|it| it.has_pending(signal))
    }

    /// Waits until `found` gives a result, for `wait` and then as long as the stop is coming; `None` if it gives none.
    /// `incomplete_wait` bounds the time for a thread that cannot be stopped.
    pub(super) async fn until_told<T>(
        &self,
        wait: Duration,
        incomplete_wait: Duration,
        found: fn(&State) -> Option<T>,
    ) -> Option<T> {
        let (mut before, mut incomplete) = (None, Duration::ZERO);
        loop {
            if let Some(told) = self.until_within(wait, found).await {
                return Some(told);
            }
            match self.prospect(&mut before) {
                Prospect::Coming => incomplete = Duration::ZERO,
                Prospect::Incomplete if incomplete < incomplete_wait => incomplete += wait,
                Prospect::Incomplete | Prospect::None => return None,
            }
        }
    }

    /// The prospect of the program's stop. `before` holds its runnable threads from the last look at which no signal
    /// was pending.
    fn prospect(&self, before: &mut Option<Threads>) -> Prospect {
        if self.get().interrupts.int_asked {
            return Prospect::Coming;
        }
        let pid = self.get().pid();
        let threads = pid.map_or_else(Threads::new, |pid| self.host().threads(pid));
        let is_in = |letters: &'static str| {
            let mut states = threads.values().map(|it| it.state);
            states.any(|state| letters.contains(state))
        };
        match is_in("tT") {
            true if is_in("D") => return Prospect::Incomplete,
            true => return Prospect::Coming,
            false => {}
        }
        let signals = [Signal::SIGINT, Signal::SIGSTOP].into_iter();
        let mut pending = signals.filter(|it| threads.values().any(|by| by.has_pending(*it)));
        let runnable = || threads.iter().filter(|(_, it)| it.state == 'R');
        if pending.any(|signal| runnable().any(|(_, it)| !it.blocks(signal))) {
            *before = None;
            return Prospect::Coming;
        }
        // Between taking the signal and its stop, a thread has no pending signal and needs a processor once more.
        let is_starved = |(id, it): (&i32, &KernelThread)| {
            let known = before.as_ref().map(|before| before.get(id));
            known.is_none_or(|known| known.is_some_and(|known| known.ran_ns == it.ran_ns))
        };
        let is_coming = runnable().any(is_starved);
        *before = Some(runnable().map(|(id, it)| (*id, *it)).collect());
        match is_coming {
            true => Prospect::Coming,
            false => Prospect::None,
        }
    }
}
