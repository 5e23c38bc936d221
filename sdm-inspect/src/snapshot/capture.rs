//! Takes a snapshot of a process.

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::page_cache::PageCache;
use super::registers::system_call;
use super::stop::TracedThreads;
use super::{LOCK_BYTES, Refusal, Registers, Snapshot, Thread, Window};
use crate::kernel;
use crate::python::{self, PythonThread, Runtime};
use crate::sys;

/// Bytes of each stack that are read at first: nearly all stacks of waiting programs are shorter.
pub const WINDOW_BYTES: usize = 64 << 10;
/// Maximum number of bytes that are read of one stack.
pub const WINDOW_BYTES_MAX: usize = 16 << 20;
/// Bytes below the stack pointer that a function may use.
const RED_ZONE_BYTES: u64 = 128;
/// Maximum number of additional windows per thread.
const FURTHER_MAX: usize = 4;
/// Maximum number of bytes that are read of one process.
const PROCESS_BYTES_MAX: usize = 256 << 20;
/// Room for threads that are created while the others are being stopped.
const NEW_THREADS: usize = 8;
const PAGE_BYTES: u64 = 4096;
/// Number of pages read by one call.
const PAGES: usize = 64;

/// The parts of a process to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The process.
    pub pid: i32,
    /// Bytes of each stack.
    pub window_bytes: usize,
    /// Addresses in further stacks, by thread: a signal handler can be on another stack than the interrupted
    /// function.
    pub further: Vec<(i32, u64)>,
    /// The Python interpreter whose threads are read too. While it runs they change faster than they could be read.
    pub python: Option<Runtime>,
}

impl Wanted {
    /// The first request for a process.
    #[must_use]
    pub fn of(pid: i32) -> Self {
        Self {
            pid,
            window_bytes: WINDOW_BYTES,
            further: Vec::new(),
            python: None,
        }
    }
}

/// The data read while the threads are stopped; its memory is allocated before.
struct Room {
    bytes: Vec<u8>,
    used: usize,
    /// Thread index, address, and the range of the bytes read there.
    pieces: Vec<(usize, u64, std::ops::Range<usize>)>,
    /// Without their windows, which are in `pieces`.
    threads: Vec<Thread>,
}

impl Room {
    fn of(wanted: &Wanted, threads: usize) -> Self {
        let windows = threads + NEW_THREADS + wanted.further.len();
        let bytes = windows.saturating_mul(wanted.window_bytes);
        Self {
            // Pages that are not written to use no memory.
            bytes: vec![0; bytes.min(PROCESS_BYTES_MAX)],
            used: 0,
            pieces: Vec::with_capacity(windows),
            threads: Vec::with_capacity(threads + NEW_THREADS),
        }
    }

    fn read(&mut self, wanted: &Wanted, id: i32) -> Result<(), Refusal> {
        let words = sys::registers(id)?.ok_or(Refusal::Architecture)?;
        let registers = Registers::of_kernel(&words);
        let at = self.threads.len();
        let call = system_call(&words);
        let lock = kernel::futex_wait(call).and_then(|(address, _)| {
            let mut bytes = [0; LOCK_BYTES];
            let count = read_memory(id, address, &mut bytes);
            (count == Ok(LOCK_BYTES)).then_some(bytes)
        });
        self.threads.push(Thread {
            id,
            registers,
            system_call: call,
            lock,
            windows: Vec::new(),
        });
        let further = wanted.further.iter().filter(|(thread, _)| *thread == id);
        let further = further.take(FURTHER_MAX).map(|(_, address)| *address);
        for address in registers.sp().into_iter().chain(further) {
            let start = address.saturating_sub(RED_ZONE_BYTES);
            let end = self.used.saturating_add(wanted.window_bytes);
            let end = end.min(self.bytes.len());
            let to = &mut self.bytes[self.used..end];
            // The process's own id is that of its main thread, which may have ended.
            let read = |start, to: &mut _| read_memory(id, start, to).map_err(Refusal::of_memory);
            let (start, count) = match read(start, to)? {
                // A stack that has overflowed ends within these bytes.
                0 => {
                    let start = address - address % PAGE_BYTES;
                    (start, read(start, to)?)
                }
                count => (start, count),
            };
            self.pieces.push((at, start, self.used..self.used + count));
            self.used += count;
        }
        Ok(())
    }

    fn snapshot(self, pid: i32, python: BTreeMap<i32, PythonThread>, stood: Duration) -> Snapshot {
        let mut threads = self.threads;
        for (at, start, range) in self.pieces {
            let bytes = self.bytes[range].to_vec();
            threads[at].windows.push(Window { start, bytes });
        }
        // The main thread first, then the others by id, which is roughly their age.
        threads.sort_by_key(|thread| (thread.id != pid, thread.id));
        Snapshot {
            pid,
            threads,
            python,
            stood,
        }
    }
}

/// Stops all threads of a process, reads their registers and stacks, and resumes them. Does not return while a thread
/// does not stop.
pub(super) fn take(wanted: &Wanted) -> Result<Snapshot, Refusal> {
    let mut held = TracedThreads::new(wanted.pid)?;
    let mut room = Room::of(wanted, held.count());
    let began = Instant::now();
    let read = held.stop().and_then(|()| {
        let mut ids = held.ids();
        ids.try_for_each(|id| room.read(wanted, id))
    });
    let id = held.ids().next();
    let python = id
        .zip(wanted.python)
        .map_or_else(BTreeMap::new, |(id, runtime)| {
            python::threads(&PageCache::of(id), runtime)
        });
    let released = held.release();
    let stood = began.elapsed();
    read?;
    released.map_err(|_| Refusal::Stuck)?;
    Ok(room.snapshot(wanted.pid, python, stood))
}

/// Reads memory from an address on, up to the length of `to` or to the first unmapped page. Returns the number of
/// bytes read.
///
/// # Errors
/// [`Errno`] if the kernel refuses to read the process's memory.
pub(crate) fn read_memory(pid: i32, start: u64, to: &mut [u8]) -> Result<usize, Errno> {
    let mut read = 0;
    while read < to.len() {
        let mut pages = [const { RemoteIoVec { base: 0, len: 0 } }; PAGES];
        let (mut count, mut wanted) = (0, 0);
        for page in &mut pages {
            let Some(from) = start.checked_add((read + wanted) as u64) else {
                break;
            };
            let left = PAGE_BYTES - from % PAGE_BYTES;
            let length = usize::try_from(left)
                .unwrap_or(0)
                .min(to.len() - read - wanted);
            let Ok(base) = usize::try_from(from) else {
                break;
            };
            if length == 0 {
                break;
            }
            *page = RemoteIoVec { base, len: length };
            count += 1;
            wanted += length;
        }
        let local = &mut [IoSliceMut::new(&mut to[read..read + wanted])];
        // The kernel stops at the first missing page.
        let got = match process_vm_readv(Pid::from_raw(pid), local, &pages[..count]) {
            Err(Errno::EFAULT) => 0,
            got => got?,
        };
        read += got;
        if got < wanted || wanted == 0 {
            break;
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_up_to_an_unmapped_page() {
        let own = std::process::id().cast_signed();
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut to = vec![0; bytes.len()];
        let start = bytes.as_ptr() as u64;
        assert_eq!(read_memory(own, start, &mut to), Ok(to.len()));
        assert_eq!(to, bytes);
        assert_eq!(read_memory(own, 0, &mut to), Ok(0));
        assert_eq!(read_memory(own, u64::MAX - 9, &mut to), Ok(0));
        assert_eq!(read_memory(-1, start, &mut to), Err(Errno::ESRCH));
    }
}
