//! A [`Host`] for tests: a test sets the state of its processes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use sdm_debug::fold::FoldRules;
use sdm_inspect::memory::Memory;
use sdm_inspect::python::{PythonThread, Runtime};
use sdm_inspect::return_counter::Arrival;
use sdm_inspect::snapshot::LOCK_BYTES;

use crate::host::{Host, KernelThread, NewCore};

/// The bit of SIGINT in a set of signals.
pub(super) const SIGINT: u64 = 1 << 1;

/// A host that gives the same answer for every process.
#[derive(Default)]
pub(super) struct FakeHost {
    /// The program's only thread, if it is set; `blocks_int` and `held` are then without effect.
    pub(super) thread: Rc<Cell<Option<KernelThread>>>,
    /// True if the program's thread blocks SIGINT.
    pub(super) blocks_int: bool,
    /// True if the program is stopped under gdb; otherwise it waits in the kernel.
    pub(super) held: bool,
    /// True if the program's memory is unknown.
    pub(super) blind: bool,
    /// Number of return addresses that a processor can watch at once (its debug registers), and a counter of those in
    /// use.
    pub(super) registers: (usize, Rc<()>),
    /// Signals that a handler of the program takes.
    pub(super) caught: Vec<i32>,
    /// Fingerprint of the process's data exchange.
    pub(super) exchange: Rc<Cell<u128>>,
}

/// One of the host's debug registers.
#[derive(Debug)]
struct Register(#[expect(dead_code, reason = "it is counted")] Rc<()>);

impl Arrival for Register {
    fn has_happened(&self) -> bool {
        false
    }
}

impl FakeHost {
    fn thread(&self) -> KernelThread {
        self.thread.get().unwrap_or(KernelThread {
            state: if self.held { 't' } else { 'S' },
            ran_ns: 0,
            pending: 0,
            blocked: if self.blocks_int { SIGINT } else { 0 },
        })
    }
}

impl Host for FakeHost {
    fn run_by_valgrind(&self) -> Option<i32> {
        None
    }

    fn new_core(&self, _: &std::path::Path) -> std::io::Result<Box<dyn NewCore>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn own_file(&self, _: &std::path::Path) -> std::io::Result<Box<dyn NewCore>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn may_have_own_handlers(&self, _: i32, _: &FoldRules) -> bool {
        true
    }

    fn catches_signal(&self, _: i32, signal: i32) -> bool {
        self.caught.contains(&signal)
    }
    fn process_state(&self, _: i32) -> Option<(char, String)> {
        let state = self.thread().state;
        let channel = if state == 't' {
            "ptrace_stop"
        } else {
            "nfs_wait"
        };
        Some((state, channel.to_owned()))
    }
    fn memory(&self, _: i32) -> Option<(u64, u64)> {
        (!self.blind).then_some((7 << 20, 9 << 20))
    }
    fn program(&self, _: i32) -> Option<std::path::PathBuf> {
        None
    }
    fn has_lost_program(&self, _: i32) -> bool {
        false
    }
    fn may_attach(&self, _: i32) -> bool {
        true
    }
    fn threads(&self, pid: i32) -> BTreeMap<i32, KernelThread> {
        BTreeMap::from([(pid, self.thread())])
    }
    fn place(&self, _: i32, address: u64) -> Option<(String, u64)> {
        (!self.blind).then(|| ("/tmp/program".to_owned(), address & 0xfff))
    }
    fn runs(&self, _: i32, _: &std::path::Path) -> bool {
        false
    }
    fn entry_address(&self, _: i32) -> Option<u64> {
        (!self.blind).then_some(0x1000)
    }
    fn completes_writes(&self) -> bool {
        true
    }
    fn cpu_ms(&self, _: i32) -> Option<u64> {
        None
    }
    fn exchange(&self, _: i32) -> Option<u128> {
        Some(self.exchange.get())
    }
    fn thread_is_gone(&self, _: i32, _: i32) -> bool {
        false
    }
    fn ran_ns(&self, _: i32, _: i32) -> Option<u64> {
        None
    }
    fn arrival(&self, _: i32, _: u64) -> Option<Rc<dyn Arrival>> {
        let (all, used) = &self.registers;
        // The host itself holds one reference.
        let is_free = Rc::strong_count(used) <= *all;
        is_free.then(|| Rc::new(Register(used.clone())) as Rc<dyn Arrival>)
    }
    fn system_call(&self, _: i32, _: i32) -> Option<(i64, [u64; 6])> {
        None
    }
    fn lock(&self, _: i32, _: i32, _: u64) -> Option<[u8; LOCK_BYTES]> {
        None
    }
    fn process_of(&self, _: i32) -> Option<sdm_debug::probe::Holder> {
        None
    }
    fn is_shared(&self, _: i32, _: u64) -> bool {
        true
    }
    fn resource(&self, _: i32, _: i32) -> Option<sdm_debug::probe::ResourceWait> {
        None
    }
    fn root(&self, _: i32) -> Option<String> {
        None
    }
    fn other_gdbs(&self) -> String {
        "take another".to_owned()
    }
    fn python_threads(&self, _: i32, _: Runtime) -> BTreeMap<i32, PythonThread> {
        BTreeMap::new()
    }
    fn variables(&self, _: i32, _: u64) -> Vec<std::ops::Range<u64>> {
        Vec::new()
    }
    fn has_mpi(&self, _: i32) -> bool {
        false
    }
    fn launched_as(&self, _: i32) -> Option<(u32, Option<u32>)> {
        None
    }
    fn process_memory(&self, _: i32) -> Option<Box<dyn Memory>> {
        None
    }
    fn is_file(&self, _: &[u8]) -> bool {
        false
    }
    fn ask_debug_library(
        &self,
        _: i32,
        _: &sdm_foreign::queues::QueuesAsk,
    ) -> Result<Box<dyn sdm_inspect::queues::PendingAnswer>, sdm_debug::Failure> {
        let text = "no process here has a debug library";
        Err(sdm_debug::Failure::new(
            sdm_debug::FailureCode::Unsupported,
            text,
        ))
    }
    fn source_line(&self, _: &str, line: u32) -> Option<String> {
        Some(format!("line {line}"))
    }
}
