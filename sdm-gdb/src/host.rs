//! Facts about the machine, behind a trait, so that the driver itself does no I/O.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::sys::signal::Signal;
use sdm_debug::Failure;
use sdm_debug::fold::FoldRules;
use sdm_debug::probe::{Holder, ResourceWait};
use sdm_foreign::queues::QueuesAsk;
use sdm_inspect::memory::Memory;
use sdm_inspect::python::{PythonThread, Runtime};
use sdm_inspect::queues::PendingAnswer;
use sdm_inspect::return_counter::Arrival;
use sdm_inspect::snapshot::LOCK_BYTES;

/// A thread as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelThread {
    /// State letter of the thread, as in `/proc/PID/stat`: `R`, `S`, `D`, `T`.
    pub state: char,
    /// Time that the thread has run on a processor, in nanoseconds; 0 if the kernel does not count it.
    pub ran_ns: u64,
    /// Pending signals of the thread and of its process: bit N - 1 stands for signal N.
    pub pending: u64,
    /// Signals that the thread blocks: bit N - 1 stands for signal N.
    pub blocked: u64,
}

impl KernelThread {
    /// True if the signal is pending for the thread or its process.
    #[must_use]
    pub fn has_pending(&self, signal: Signal) -> bool {
        self.pending & bit(signal) != 0
    }

    /// True if the thread blocks the signal.
    #[must_use]
    pub fn blocks(&self, signal: Signal) -> bool {
        self.blocked & bit(signal) != 0
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}

/// Inspects processes and files of this host. A function returns `None` if the process has ended, or if the fact is not
/// known. Only new files are ever written.
pub trait Host {
    /// State letter of the process, and the kernel function in which it waits, from `/proc`; `None` if it has ended.
    fn process_state(&self, pid: i32) -> Option<(char, String)>;
    /// Resident memory of the process and its peak, in bytes; `None` if it has ended.
    fn memory(&self, pid: i32) -> Option<(u64, u64)>;
    /// The pid of the process that Valgrind runs for gdb; `None` without Valgrind.
    fn run_by_valgrind(&self) -> Option<i32>;
    /// Path of the program that the process runs; `None` if it cannot be read.
    fn program(&self, pid: i32) -> Option<PathBuf>;
    /// True if the path of the process's program no longer leads to its file: the file was removed or replaced.
    fn has_lost_program(&self, pid: i32) -> bool;
    /// False if the kernel does not let this process and its gdb attach to the process.
    fn may_attach(&self, pid: i32) -> bool;
    /// The threads of the process by their ids; none if it has ended.
    fn threads(&self, pid: i32) -> BTreeMap<i32, KernelThread>;
    /// The file mapped at an address, and the address's offset from the file's first mapping; `None` if no file is
    /// mapped there.
    fn place(&self, pid: i32, address: u64) -> Option<(String, u64)>;
    /// True if the process executes this program.
    fn runs(&self, pid: i32, program: &Path) -> bool;
    /// Entry point of the program itself, not of its dynamic linker; `None` if it cannot be read.
    fn entry_address(&self, pid: i32) -> Option<u64>;
    /// True if gdb has loaded SDM's preloaded library, by which it can write registers that it does not know. Call this
    /// only after gdb's first answer.
    fn completes_writes(&self) -> bool;
    /// The processor time of the process, in milliseconds; `None` if it has ended.
    fn cpu_ms(&self, pid: i32) -> Option<u64>;
    /// True if the thread with this id has ended; false if it exists in any process of this host.
    fn thread_is_gone(&self, pid: i32, thread: i32) -> bool;
    /// Time that a thread has run on a processor, in nanoseconds; `None` if the kernel does not count it.
    fn ran_ns(&self, pid: i32, thread: i32) -> Option<u64>;
    /// Starts to watch whether a thread reaches an address; `None` if the kernel does not support it.
    fn arrival(&self, thread: i32, address: u64) -> Option<Rc<dyn Arrival>>;
    /// Fingerprint of the data that a process exchanges with others: its shared memory, and the byte counts of its TCP
    /// connections. `None` if it cannot be read.
    fn exchange(&self, pid: i32) -> Option<u128>;
    /// Number of the system call that a thread is in (-1 for none), with its arguments; `None` if that may not be
    /// known.
    fn system_call(&self, pid: i32, thread: i32) -> Option<(i64, [u64; 6])>;
    /// Bytes of the lock at this address, for which a thread waits. For a process that runs again, they are those of
    /// its stop, read together with the thread's system call. `None` if they cannot be read.
    fn lock(&self, pid: i32, thread: i32, address: u64) -> Option<[u8; LOCK_BYTES]>;
    /// True if the memory at this address may be shared with other processes.
    fn is_shared(&self, pid: i32, address: u64) -> bool;
    /// The process to which a thread belongs; `None` if there is no such thread.
    fn process_of(&self, thread: i32) -> Option<Holder>;
    /// The resource outside its process that a thread waits for, from the kernel's tables; `None` if there is none.
    fn resource(&self, pid: i32, thread: i32) -> Option<ResourceWait>;
    /// The directory in which gdb finds the files of a process in a container; `None` for other processes. Once a
    /// process in a container was seen, other processes get a directory too.
    fn root(&self, pid: i32) -> Option<String>;
    /// A hint for a gdb that lacks a feature: the other gdbs that are installed.
    fn other_gdbs(&self) -> String;
    /// Text of one line of a source file; `None` if the file or the line cannot be read.
    fn source_line(&self, path: &str, line: u32) -> Option<String>;
    /// The address ranges of the writable memory of the program or library that contains this address.
    fn variables(&self, pid: i32, address: u64) -> Vec<Range<u64>>;
    /// True for a process that has loaded an MPI library.
    fn has_mpi(&self, pid: i32) -> bool;
    /// The rank that a process's launcher has assigned, and the number of ranks if known; `None` without such a rank.
    fn launched_as(&self, pid: i32) -> Option<(u32, Option<u32>)>;
    /// Memory of a process; `None` if it is another user's.
    fn process_memory(&self, pid: i32) -> Option<Box<dyn Memory>>;
    /// Creates a core file that will appear at this path, in place of this user's file there.
    fn new_core(&self, path: &Path) -> io::Result<Box<dyn NewCore>>;
    /// Opens this user's file at this path, or creates it, for gdb to write.
    fn own_file(&self, path: &Path) -> io::Result<Box<dyn NewCore>>;
    /// True if the process has a handler for the signal.
    fn catches_signal(&self, pid: i32, signal: i32) -> bool;

    /// True if the program itself, and not only a runtime such as MPI, may have installed a signal handler in the
    /// process.
    fn may_have_own_handlers(&self, pid: i32, rules: &FoldRules) -> bool;
    /// True if a file exists at this path.
    fn is_file(&self, path: &[u8]) -> bool;
    /// Runs the debug library of an MPI library in a separate process, to read the message queues of this process.
    fn ask_debug_library(
        &self,
        pid: i32,
        ask: &QueuesAsk,
    ) -> Result<Box<dyn PendingAnswer>, Failure>;
    /// The Python functions of the process's threads, by kernel thread id.
    fn python_threads(&self, pid: i32, runtime: Runtime) -> BTreeMap<i32, PythonThread>;
}

/// A file of this user's while gdb writes it: a core file, or one that the user has named.
pub trait NewCore {
    /// The path to which gdb writes the core file. Other users cannot place a link there.
    fn place(&self) -> PathBuf;
    /// Gives the file its final name, without which it is deleted.
    ///
    /// # Errors
    /// [`io::Error`] of the directory, or another user's file has that name.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
