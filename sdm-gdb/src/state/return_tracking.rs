//! The calls that have returned since the last probe.
//!
//! A loop that calls one function with the same arguments repeatedly shows the same frames and variables each time.
//! Only the return tells one call from the next.

use std::rc::Rc;

use sdm_inspect::return_counter::Arrival;

/// The tracked returns of a task's threads. A processor has four debug registers for them, which are freed before the
/// current calls are tracked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followed {
    /// The tracked calls of the main thread.
    pub(crate) main: Returns,
    /// The tracked MPI calls of other threads.
    pub(crate) beside: Vec<Returns>,
}

/// The returns that are tracked in one thread: those of its MPI call, and those of the user's functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returns {
    /// The return of the MPI call; `None` if it is not tracked.
    pub(crate) call: Option<Rc<dyn Arrival>>,
    /// True if the thread is in an MPI call whose return the kernel does not let us track.
    pub(crate) refused: bool,
    /// The returns of the user's functions, by return address.
    pub(crate) frames: Vec<(u64, Rc<dyn Arrival>)>,
}

impl Returns {
    /// The tracking of a thread in which only this call is tracked.
    pub(crate) fn of_call(call: Rc<dyn Arrival>) -> Self {
        Self {
            call: Some(call),
            ..Self::default()
        }
    }

    /// Index of the outermost frame of the last probe whose call has returned; `None` if none has. `frames` has the
    /// return addresses of those frames. Of a recursive function the outermost call is taken.
    pub(crate) fn outermost(&self, frames: &[u64]) -> Option<usize> {
        let has_returned = |frame: &u64| self.has_returned(*frame);
        let inner = || {
            let call = self.call.as_ref()?;
            frames.len().checked_sub(1).filter(|_| call.has_happened())
        };
        frames.iter().position(has_returned).or_else(inner)
    }

    /// True if returns to this address are tracked.
    pub(crate) fn has_followed(&self, caller: u64) -> bool {
        self.frames.iter().any(|(address, _)| *address == caller)
    }

    /// True if returns to this address are tracked and none has happened.
    pub(crate) fn stays_below(&self, caller: u64) -> bool {
        self.has_followed(caller) && !self.has_returned(caller)
    }

    fn has_returned(&self, caller: u64) -> bool {
        let mut known = self.frames.iter();
        known.any(|(address, arrival)| *address == caller && arrival.has_happened())
    }

    /// True if the tracked MPI call of the thread has returned.
    pub(crate) fn is_out(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.has_happened())
    }
}
