//! Undoes a stop by a gdb that takes effect after gdb's end.
//!
//! A killed gdb can leave a SIGSTOP for a thread: pending, or already taken by the thread under gdb. A thread that has
//! taken it stops as soon as it gets a processor, and until then the stop is invisible. SIGCONT discards the stop in
//! both states.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use sdm_system::proc::{self, State};

use crate::process::{Identity, is_stopping};

/// Processor time within which a thread stops by a signal that it has taken.
const STOP_TAKES: Duration = Duration::from_millis(10);

/// A stop that may reach a process whose gdb has ended.
pub(crate) struct LateStop<'a> {
    who: &'a Identity,
    /// The threads that can still stop by a signal that they have taken, with the time that each had run at the first
    /// check. `None` before that check.
    starved: Option<BTreeMap<i32, u64>>,
}

impl<'a> LateStop<'a> {
    pub(crate) fn of(who: &'a Identity) -> Self {
        Self { who, starved: None }
    }

    /// Undoes the stop; true once no stop can come any more. Call this after gdb's end.
    pub(crate) fn is_undone(&mut self) -> bool {
        let process = proc::of(self.who.pid());
        let ran_ns = |id: i32| {
            let thread = process.thread(id);
            let ran_ns = thread.ran_ns();
            ran_ns.filter(|_| thread.state() == Some(State('R')))
        };
        let starved = self.starved.get_or_insert_with(|| {
            let threads = process.thread_ids().into_iter().flatten();
            threads.filter_map(|id| Some((id, ran_ns(id)?))).collect()
        });
        starved.retain(|id, first| {
            let ran_ns = ran_ns(*id).map(|now| now.saturating_sub(*first));
            ran_ns.is_some_and(|ran| Duration::from_nanos(ran) < STOP_TAKES)
        });
        // A thread that has stopped since the look at the runnable ones is seen here.
        if !notices_continue(&process) || is_stopping(self.who.pid()) {
            self.who.signal(Signal::SIGCONT);
            return true;
        }
        starved.is_empty()
    }
}

/// True if the process can notice a SIGCONT while it runs: it has a handler, or may wait for the signal.
fn notices_continue(process: &proc::Process) -> bool {
    let notices = |status: proc::Status| {
        let mut fields = ["SigCgt", "SigBlk"].into_iter();
        fields.any(|field| status.signals(field).contains(&(Signal::SIGCONT as i32)))
    };
    process.status().is_ok_and(notices)
}
