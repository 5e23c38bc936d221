//! Facts about the machine, behind a trait, so that the driver itself does no I/O.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sdm_debug::Failure;
use sdm_debug::fold::FoldRules;
use sdm_debug::probe::ResourceWait;
use sdm_foreign::queues::QueuesAsk;
use sdm_inspect::arrival::Arrival;
use sdm_inspect::memory::Memory;
use sdm_inspect::python::PythonThread;
use sdm_inspect::queues::PendingAnswer;

/// Inspects processes and files of this host. Only new files are ever written.
pub trait Host {
    /// The process's state letter and what it waits in, as of `/proc`.
    fn process_state(&self, pid: i32) -> Option<(char, String)>;
    /// Resident memory of the process and its peak, in bytes.
    fn memory(&self, pid: i32) -> Option<(u64, u64)>;
    /// The pid of the process that Valgrind runs for gdb; `None` without Valgrind.
    fn run_by_valgrind(&self) -> Option<i32>;
    /// The program that the process runs.
    fn program(&self, pid: i32) -> Option<PathBuf>;
    /// True if every thread of the process blocks the signal.
    fn blocks_signal(&self, pid: i32, signal: i32) -> bool;
    /// True if the signal waits to be delivered to the process.
    fn signal_pending(&self, pid: i32, signal: i32) -> bool;
    /// The file that is mapped at an address, and how far from its first mapping that is.
    fn place(&self, pid: i32, address: u64) -> Option<(String, u64)>;
    /// True if the process runs this program.
    fn runs(&self, pid: i32, program: &Path) -> bool;
    /// Entry point of the program itself, not of its dynamic linker.
    fn entry_address(&self, pid: i32) -> Option<u64>;
    /// True if gdb has loaded what completes its writes of registers. To be asked once gdb has answered something.
    fn completes_writes(&self) -> bool;
    /// The time that the process has spent on a processor, in milliseconds.
    fn cpu_ms(&self, pid: i32) -> Option<u64>;
    /// True if no process of this host has a thread of this number.
    fn thread_is_gone(&self, pid: i32, thread: i32) -> bool;
    /// Time that a thread has run on a processor, in nanoseconds; `None` if the kernel does not count it.
    fn ran_ns(&self, pid: i32, thread: i32) -> Option<u64>;
    /// Starts to watch whether a thread reaches an address; `None` if the kernel does not support it.
    fn arrival(&self, thread: i32, address: u64) -> Option<Rc<dyn Arrival>>;
    /// A fingerprint of what a process exchanges data with others by, where that can be read.
    fn exchange(&self, pid: i32) -> Option<u128>;
    /// The number of the system call that a thread is in, -1 for none, and its arguments, where that may be known.
    fn system_call(&self, pid: i32, thread: i32) -> Option<(i64, [u64; 6])>;
    /// The resource outside its process that a thread waits for, from the kernel's tables.
    fn resource(&self, pid: i32, thread: i32) -> Option<ResourceWait>;
    /// The directory in which gdb finds the files of a process in a container. Once one such process was seen, other
    /// processes get one too.
    fn root(&self, pid: i32) -> Option<String>;
    /// A hint for a gdb that lacks a feature: the other gdbs that are installed.
    fn other_gdbs(&self) -> String;
    /// Text of one line of a source file.
    fn source_line(&self, path: &str, line: u32) -> Option<String>;
    /// The variables of the program or library that has something at an address: its writable memory.
    fn variables(&self, pid: i32, address: u64) -> Vec<Range<u64>>;
    /// True for a process with an MPI library in it.
    fn has_mpi(&self, pid: i32) -> bool;
    /// The rank that a process's launcher has assigned, and the number of ranks if known.
    fn launched_as(&self, pid: i32) -> Option<(u32, Option<u32>)>;
    /// Memory of a process; `None` if it is another user's.
    fn process_memory(&self, pid: i32) -> Option<Box<dyn Memory>>;
    /// Creates a core file that will appear at this path, replacing any file there.
    fn new_core(&self, path: &Path) -> io::Result<Box<dyn NewCore>>;
    /// True if a handler takes the signal.
    fn catches_signal(&self, pid: i32, signal: i32) -> bool;

    /// True if a signal handler in the process may be one that no runtime has installed.
    fn may_have_own_handlers(&self, pid: i32, rules: &FoldRules) -> bool;
    /// True if there is a file at this path.
    fn is_file(&self, path: &[u8]) -> bool;
    /// Starts an MI library's debug library on a process, in a separate process.
    fn ask_debug_library(
        &self,
        pid: i32,
        ask: &QueuesAsk,
    ) -> Result<Box<dyn PendingAnswer>, Failure>;
    /// The Python functions that the process's threads are in, by the kernel's numbers of these. `_PyRuntime` and `Py_Version` are at
    /// these addresses.
    fn python_threads(
        &self,
        pid: i32,
        runtime: u64,
        py_version: Option<u64>,
    ) -> BTreeMap<i32, PythonThread>;
}

/// A core file that gdb writes.
pub trait NewCore {
    /// The path to which gdb writes the core file. Other users cannot place a link there.
    fn place(&self) -> PathBuf;
    /// Gives it its name. Without it there is no file.
    ///
    /// # Errors
    /// [`io::Error`] of the name's folder, or what has that name is another user's.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
