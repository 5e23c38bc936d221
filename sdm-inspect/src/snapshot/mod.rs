//! Registers and stacks of a process's threads at one moment.

mod batch;
mod capture;
mod kernel_wait;
mod loose_program;
mod page_cache;
mod refusal;
mod registers;
mod stop;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::python::PythonThread;
pub use batch::take_all;
pub use capture::{CaptureRequest, WINDOW_BYTES, WINDOW_BYTES_MAX};
pub use kernel_wait::why_not_stopped;
pub use refusal::Refusal;
pub use registers::{FRAME_POINTER, RETURN_ADDRESS, Registers, STACK_POINTER};

/// The threads of a process, with registers and stacks, at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Pid of the process.
    pub pid: i32,
    /// The threads; the one that runs `main` is first.
    pub threads: Vec<Thread>,
    /// The threads of the process's Python interpreter, by kernel thread id. Empty if they were not requested or not
    /// found.
    pub python: BTreeMap<i32, PythonThread>,
    /// Longest time that the threads were stopped: from the first stop request until all were resumed.
    pub stood: Duration,
}

/// Number of bytes that are read of a lock.
pub const LOCK_BYTES: usize = 12;

/// A thread of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The kernel thread id.
    pub id: i32,
    /// The registers.
    pub registers: Registers,
    /// The number of the system call that the thread was in, -1 for none, and its arguments.
    pub system_call: (i64, [u64; 6]),
    /// The bytes at the futex for which the thread waits without a timeout; `None` if it waits for none. Those of a
    /// mutex name the thread that holds it.
    pub lock: Option<[u8; LOCK_BYTES]>,
    /// Memory that was read: the innermost part of the thread's stack, and of other stacks that were requested.
    pub windows: Vec<Window>,
}

/// A piece of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Address of the first byte.
    pub start: u64,
    /// The bytes.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

impl Thread {
    /// The 8-byte word at an address; `None` if the address was not read.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes(address, size_of::<u64>())?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Bytes at an address; `None` if not all of them were read.
    #[must_use]
    pub fn bytes(&self, address: u64, count: usize) -> Option<&[u8]> {
        self.windows.iter().find_map(|window| {
            let from = usize::try_from(address.checked_sub(window.start)?).ok()?;
            window.bytes.get(from..from.checked_add(count)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_outside_the_memory_windows_is_not_known() {
        let window = |start, words: &[u64]| Window {
            start,
            bytes: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
        };
        let thread = Thread {
            id: 1,
            registers: Registers::default(),
            system_call: (-1, [0; 6]),
            lock: None,
            windows: vec![window(0x1000, &[1, 2]), window(u64::MAX - 7, &[3])],
        };
        let check = |address, expect| assert_eq!(thread.word(address), expect, "{address:#x}");
        check(0x1000, Some(1));
        check(0x1008, Some(2));
        check(0x1009, None);
        check(0xfff, None);
        check(0x1010, None);
        check(u64::MAX - 7, Some(3));
        check(u64::MAX, None);
        check(0, None);
    }
}
