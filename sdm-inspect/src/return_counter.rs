//! Detects that a thread has reached an address, by a hardware breakpoint that counts.
//!
//! The thread is not stopped and nothing is written into the program. Only the first arrival costs the thread time.

use std::fmt::Debug;
use std::fs::File;
use std::io::Read;

use crate::sys;

/// A watch on one address for one thread; drop ends it.
pub trait Arrival: Debug {
    /// True if the thread has reached the address; false also if the state is unknown.
    fn has_happened(&self) -> bool;
}

/// A watch by the processor's debug registers, through the kernel's `perf_event`.
#[derive(Debug)]
pub struct Noted(File);

impl Noted {
    /// Starts a watch; `None` if the kernel refuses (`kernel.perf_event_paranoid` above 2, no free debug register, a
    /// container that forbids it).
    pub fn at(thread: i32, address: u64) -> Option<Self> {
        let event = sys::note_arrival(thread, address).ok()?;
        Some(Self(File::from(event)))
    }
}

impl Arrival for Noted {
    fn has_happened(&self) -> bool {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count).is_ok() && u64::from_ne_bytes(count) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn is_come_to(number: u64) -> u64 {
        std::hint::black_box(number)
    }

    #[test]
    fn perf_event_records_arrival_at_an_address() {
        let thread = nix::unistd::gettid().as_raw();
        let address = is_come_to as *const () as u64;
        let Some(noted) = Noted::at(thread, address) else {
            println!("SKIP: the kernel lets nobody count (kernel.perf_event_paranoid)");
            return;
        };
        assert!(!noted.has_happened());
        for number in 0..3 {
            is_come_to(number);
        }
        assert!(noted.has_happened());
        assert!(Noted::at(-2, address).is_none());
    }
}
