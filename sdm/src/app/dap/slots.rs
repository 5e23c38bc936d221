//! A limited number of queue slots for the messages of one sender.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Maximum number of queued messages of one sender, each with the bytes of at most one read call.
const PIECES_MAX: usize = 16;

/// The slots of one sender, which waits while all are taken.
#[derive(Clone, Default)]
pub(super) struct Slots(Arc<(Mutex<usize>, Condvar)>);

impl Slots {
    /// Waits for a free slot, and takes it.
    pub(super) fn take(&self) -> Slot {
        let (taken, freed) = &*self.0;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken >= PIECES_MAX {
            taken = freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += 1;
        Slot(self.clone())
    }
}

/// A taken slot, which is freed on drop.
pub(super) struct Slot(Slots);

impl Drop for Slot {
    fn drop(&mut self) {
        let (taken, freed) = &*self.0.0;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use sdm_system::proc::{self, State};

    use super::*;

    #[test]
    fn sender_blocks_when_all_slots_are_taken() {
        let slots = Slots::default();
        let mut held: Vec<Slot> = (0..PIECES_MAX).map(|_| slots.take()).collect();
        let (to_id, id) = channel();
        let (to, taken) = channel();
        let sender = std::thread::spawn(move || {
            to_id.send(nix::unistd::gettid().as_raw()).unwrap();
            to.send(slots.take()).unwrap();
        });
        let id = id.recv().unwrap();
        // A sender that does not wait has ended at some time, and does not sleep.
        let state = || proc::own().thread(id).state();
        while !sender.is_finished() && state() != Some(State('S')) {
            std::thread::yield_now();
        }
        assert!(taken.try_recv().is_err());
        held.pop();
        drop(taken.recv().unwrap());
        sender.join().unwrap();
    }
}
