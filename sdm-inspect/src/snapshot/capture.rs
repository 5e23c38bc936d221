//! Takes a snapshot of a process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sdm_system::REGISTER_WORDS;
use sdm_system::look_socket::StoppedThread;
use sdm_system::process_memory::{PAGE_BYTES, read_memory};

use super::page_cache::PageCache;
use super::registers::system_call;
use super::stop::TracedThreads;
use super::{LOCK_BYTES, Refusal, Registers, Snapshot, Thread, Window};
use crate::kernel;
use crate::python::{self, PythonThread, Runtime};

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

/// The parts of a process to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRequest {
    /// Pid of the process.
    pub pid: i32,
    /// Number of bytes to read of each stack.
    pub window_bytes: usize,
    /// Addresses in further stacks, by thread: a signal handler can be on another stack than the interrupted
    /// function.
    pub further: Vec<(i32, u64)>,
    /// The Python interpreter whose threads are read too; `None` if none is read. The threads are read while they are
    /// stopped, as they change quickly.
    pub python: Option<Runtime>,
}

impl CaptureRequest {
    /// The request for the first snapshot of a process.
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

/// The data that is read while the threads are stopped. Its memory is allocated before.
struct ReadBuffer {
    bytes: Vec<u8>,
    used: usize,
    /// Thread index, address, and the range of the bytes read there.
    pieces: Vec<(usize, u64, std::ops::Range<usize>)>,
    /// The threads, without their windows, which are in `pieces`.
    threads: Vec<Thread>,
}

impl ReadBuffer {
    fn of(wanted: &CaptureRequest, threads: usize) -> Self {
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

    /// Reads a stopped thread with these registers.
    fn read(
        &mut self,
        wanted: &CaptureRequest,
        id: i32,
        words: &[u64; REGISTER_WORDS],
    ) -> Result<(), Refusal> {
        let registers = Registers::of_kernel(words);
        let at = self.threads.len();
        let call = system_call(words);
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
pub(super) fn take(wanted: &CaptureRequest) -> Result<Snapshot, Refusal> {
    let mut held = TracedThreads::new(wanted.pid)?;
    let mut room = ReadBuffer::of(wanted, held.count());
    let began = Instant::now();
    let read = held.stop().and_then(|()| {
        let mut ids = held.ids();
        ids.try_for_each(|id| {
            let words = sdm_system::registers(id)?.ok_or(Refusal::Architecture)?;
            room.read(wanted, id, &words)
        })
    });
    let python = python(wanted, held.ids().next());
    let released = held.release();
    let stood = began.elapsed();
    read?;
    released.map_err(|_| Refusal::Stuck)?;
    Ok(room.snapshot(wanted.pid, python, stood))
}

/// Reads a process that its tracer keeps stopped, from the registers of its threads.
pub(super) fn take_stopped(
    wanted: &CaptureRequest,
    threads: &[StoppedThread],
) -> Result<Snapshot, Refusal> {
    let mut room = ReadBuffer::of(wanted, threads.len());
    for (id, words) in threads {
        let words = words.as_slice().try_into();
        room.read(wanted, *id, words.map_err(|_| Refusal::Architecture)?)?;
    }
    let id = threads.first().map(|(id, _)| *id);
    let python = python(wanted, Some(id.ok_or(Refusal::Ended)?));
    Ok(room.snapshot(wanted.pid, python, Duration::ZERO))
}

/// The threads of the interpreter, if they are wanted. `id` is a thread of the process.
fn python(wanted: &CaptureRequest, id: Option<i32>) -> BTreeMap<i32, PythonThread> {
    id.zip(wanted.python)
        .map_or_else(BTreeMap::new, |(id, runtime)| {
            python::threads(&PageCache::of(id), runtime)
        })
}
