//! The facts of this machine for drivers: implements [`Host`] by `/proc` and the file system.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use sdm_debug::Failure;
use sdm_debug::fold::FoldRules;
use sdm_debug::probe::{Holder, ResourceWait};
use sdm_doctor::gdb::{self as doctor, Places};
use sdm_foreign::queues::QueuesAsk;
use sdm_inspect::kernel;
use sdm_inspect::memory::Memory;
use sdm_inspect::python::{self, PythonThread, Runtime};
use sdm_inspect::queues::{Helper, PendingAnswer};
use sdm_inspect::resources;
use sdm_inspect::return_counter::{Arrival, Noted};
use sdm_inspect::snapshot::LOCK_BYTES;
use sdm_inspect::traffic;
use sdm_mpi::symbols::LIBRARY_PREFIX;
use sdm_system::fd_server::FdServer;
use sdm_system::files::{NewFile, Writing, open_to_write};
use sdm_system::launcher_env::Identity;
use sdm_system::proc::{self, Mapping};
use sdm_system::process_memory::read_memory;

use sdm_gdb::{Host, KernelThread, NewCore};

use crate::sources::Sources;
use sdm_child::{is_loaded, program_of};

/// A file on this host that gdb writes.
struct LocalCore {
    /// The file that still gets its name; `None` for one that has it.
    file: Option<NewFile>,
    lender: FdServer,
}

impl NewCore for LocalCore {
    fn place(&self) -> PathBuf {
        self.lender.first()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.file.map_or(Ok(()), NewFile::finish)
    }
}

/// Maximum number of nested scripts between the started process and gdb.
const WRAPPERS_MAX: usize = 8;

/// The host that this process runs on.
#[derive(Default)]
pub(crate) struct LocalHost {
    /// The pid of the process that was started as gdb, which can be a script.
    gdb: GdbNumber,
    /// Source files, shared by all tasks of this host.
    sources: Rc<Sources>,
    /// The threads of a process as they were when it was stopped; `None` to read their present state.
    standing: Option<LastThreads>,
}

/// The pid of the process that was started as gdb; 0 before there is one.
pub(crate) type GdbNumber = Rc<Cell<i32>>;

/// The number of a system call, and its arguments.
type SystemCall = (i64, [u64; 6]);

/// The threads of the last snapshot, which the next snapshot replaces.
pub(crate) type LastThreads = Rc<RefCell<StoppedThreads>>;

/// The threads of a snapshot, by kernel thread id.
#[derive(Default)]
pub(crate) struct StoppedThreads {
    /// The system call of each thread, and the bytes of the lock that it waits for there.
    pub(crate) waits: BTreeMap<i32, (SystemCall, Option<[u8; LOCK_BYTES]>)>,
    /// The threads of the Python interpreter.
    pub(crate) python: BTreeMap<i32, PythonThread>,
}

impl LocalHost {
    /// The host of a gdb whose process was started with this pid.
    pub(crate) fn of(gdb: i32, sources: &Rc<Sources>) -> Self {
        Self::of_number(&Rc::new(Cell::new(gdb)), sources)
    }

    /// The host of a gdb that is started later.
    pub(crate) fn of_number(gdb: &GdbNumber, sources: &Rc<Sources>) -> Self {
        let sources = Rc::clone(sources);
        Self {
            gdb: Rc::clone(gdb),
            sources,
            standing: None,
        }
    }

    /// The host for processes that run again. It gives the states of their threads from a snapshot.
    pub(crate) fn of_moment(standing: &LastThreads, sources: &Rc<Sources>) -> Self {
        Self {
            standing: Some(Rc::clone(standing)),
            ..Self::of(0, sources)
        }
    }
}

/// Resident memory of a process and its peak, in bytes; `None` if it has ended.
pub(crate) fn memory_of(pid: i32) -> Option<(u64, u64)> {
    let status = proc::of(pid).living().status().ok()?;
    Some((status.bytes("VmRSS")?, status.bytes("VmHWM")?))
}

impl Host for LocalHost {
    fn completes_writes(&self) -> bool {
        is_loaded(last_started(self.gdb.get()))
    }

    fn new_core(&self, path: &Path) -> io::Result<Box<dyn NewCore>> {
        let file = NewFile::beside(path)?;
        let lender = FdServer::start(Some(file.file.try_clone()?.into()), None)?;
        let file = Some(file);
        Ok(Box::new(LocalCore { file, lender }))
    }

    fn own_file(&self, path: &Path) -> io::Result<Box<dyn NewCore>> {
        let open = open_to_write(path, Writing::Behind)?;
        let lender = FdServer::start(Some(open.into()), None)?;
        Ok(Box::new(LocalCore { file: None, lender }))
    }

    fn catches_signal(&self, pid: i32, signal: i32) -> bool {
        let status = proc::of(pid).status();
        status.is_ok_and(|status| status.signals("SigCgt").contains(&signal))
    }

    fn may_have_own_handlers(&self, pid: i32, rules: &FoldRules) -> bool {
        sdm_child::may_have_own_handlers(&proc::of(pid), rules)
    }

    fn process_state(&self, pid: i32) -> Option<(char, String)> {
        let process = proc::of(pid).living();
        Some((process.state()?.0, process.wait_channel()))
    }

    fn memory(&self, pid: i32) -> Option<(u64, u64)> {
        memory_of(pid)
    }

    fn run_by_valgrind(&self) -> Option<i32> {
        program_of(self.gdb.get())
    }

    fn program(&self, pid: i32) -> Option<PathBuf> {
        proc::of(pid).program().ok()
    }

    fn has_lost_program(&self, pid: i32) -> bool {
        let process = proc::of(pid);
        let file = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        let executed = file(&process.path("exe"));
        let named = process.program().ok().and_then(|path| file(&path));
        executed.is_some() && named != executed
    }

    fn may_attach(&self, pid: i32) -> bool {
        // The kernel opens the memory of a process to those who may trace it.
        let opened = fs::File::open(proc::of(pid).path("mem"));
        !opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    fn threads(&self, pid: i32) -> BTreeMap<i32, KernelThread> {
        let process = proc::of(pid);
        let threads = process.thread_ids().into_iter().flatten();
        let look = |id| {
            let thread = process.thread(id);
            // A signal that is no longer pending here may have stopped the thread by the next line.
            let status = thread.status().ok()?;
            let bits = |name| status.bits(name).unwrap_or(0);
            let it = KernelThread {
                state: thread.state()?.0,
                ran_ns: thread.ran_ns().unwrap_or(0),
                pending: bits("ShdPnd") | bits("SigPnd"),
                blocked: bits("SigBlk"),
            };
            Some((id, it))
        };
        threads.filter_map(look).collect()
    }

    fn place(&self, pid: i32, address: u64) -> Option<(String, u64)> {
        place_in(&proc::of(pid).maps().ok()?, address)
    }

    fn variables(&self, pid: i32, address: u64) -> Vec<Range<u64>> {
        let maps = proc::of(pid).maps().unwrap_or_default();
        variables_beside(&maps, address)
    }

    fn runs(&self, pid: i32, program: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let running = fs::metadata(proc::of(pid).path("exe"));
        let (Ok(running), Ok(wanted)) = (running, fs::metadata(program)) else {
            return false;
        };
        (running.dev(), running.ino()) == (wanted.dev(), wanted.ino())
    }

    fn entry_address(&self, pid: i32) -> Option<u64> {
        const AT_ENTRY: u64 = 9;
        proc::of(pid).auxiliary_value(AT_ENTRY)
    }

    fn cpu_ms(&self, pid: i32) -> Option<u64> {
        kernel::cpu_ms(pid)
    }

    fn thread_is_gone(&self, pid: i32, thread: i32) -> bool {
        // `/proc` has an entry for any thread id, although it lists only processes.
        proc::of(pid).stat().is_ok() && proc::of(thread).stat().is_err()
    }

    fn ran_ns(&self, pid: i32, thread: i32) -> Option<u64> {
        proc::of(pid).thread(thread).ran_ns()
    }

    fn arrival(&self, thread: i32, address: u64) -> Option<Rc<dyn Arrival>> {
        let noted = Noted::at(thread, address)?;
        Some(Rc::new(noted))
    }

    fn exchange(&self, pid: i32) -> Option<u128> {
        traffic::fingerprint(pid).ok()
    }

    fn system_call(&self, pid: i32, thread: i32) -> Option<(i64, [u64; 6])> {
        match &self.standing {
            Some(standing) => Some(standing.borrow().waits.get(&thread)?.0),
            None => proc::of(pid).thread(thread).system_call(),
        }
    }

    fn lock(&self, pid: i32, thread: i32, address: u64) -> Option<[u8; LOCK_BYTES]> {
        if let Some(standing) = &self.standing {
            return standing.borrow().waits.get(&thread)?.1;
        }
        let mut bytes = [0; LOCK_BYTES];
        self.process_memory(pid)?.read(address, &mut bytes)?;
        Some(bytes)
    }

    fn process_of(&self, thread: i32) -> Option<Holder> {
        let pid = proc::of(thread).status().ok()?.number("Tgid")?;
        Some(resources::holder(pid))
    }

    fn is_shared(&self, pid: i32, address: u64) -> bool {
        let maps = proc::of(pid).maps().unwrap_or_default();
        let mut at = maps.iter().filter(|mapping| mapping.holds(address));
        !at.any(proc::Mapping::is_private)
    }

    fn resource(&self, pid: i32, thread: i32) -> Option<ResourceWait> {
        resources::of(pid, thread)
    }

    fn root(&self, pid: i32) -> Option<String> {
        static SEEN: AtomicBool = AtomicBool::new(false);
        let mounts = |process: proc::Process| fs::read_link(process.path("ns/mnt")).ok();
        let differs = mounts(proc::of(pid)).is_some_and(|it| Some(it) != mounts(proc::own()));
        if differs {
            SEEN.store(true, Ordering::Relaxed);
            return Some(proc::of(pid).path("root").to_string_lossy().into_owned());
        }
        SEEN.load(Ordering::Relaxed).then(|| "target:".to_owned())
    }

    fn other_gdbs(&self) -> String {
        // All tasks of a host use the same gdb.
        static OTHERS: OnceLock<String> = OnceLock::new();
        let others = || {
            let path = proc::of(last_started(self.gdb.get())).program();
            doctor::other(&Places::here().candidates(&path.unwrap_or_default()))
        };
        OTHERS.get_or_init(others).clone()
    }

    fn source_line(&self, path: &str, line: u32) -> Option<String> {
        self.sources.line(path, line)
    }

    fn python_threads(&self, pid: i32, runtime: Runtime) -> BTreeMap<i32, PythonThread> {
        if let Some(standing) = &self.standing {
            return standing.borrow().python.clone();
        }
        match self.process_memory(pid) {
            Some(memory) => python::threads(&*memory, runtime),
            None => BTreeMap::new(),
        }
    }

    fn is_file(&self, path: &[u8]) -> bool {
        Path::new(OsStr::from_bytes(path)).is_file()
    }

    fn ask_debug_library(
        &self,
        pid: i32,
        ask: &QueuesAsk,
    ) -> Result<Box<dyn PendingAnswer>, Failure> {
        Ok(Box::new(Helper::start(pid, ask)?))
    }

    fn has_mpi(&self, pid: i32) -> bool {
        let maps = proc::of(pid).maps().unwrap_or_default();
        let mut names = maps.iter().filter_map(|it| it.file()?.file_name());
        names.any(|name| {
            name.as_encoded_bytes()
                .starts_with(LIBRARY_PREFIX.as_bytes())
        })
    }

    fn launched_as(&self, pid: i32) -> Option<(u32, Option<u32>)> {
        let variables = proc::of(pid).environment().ok()?;
        let lookup = |name: &str| {
            // Variables that SDM has set for its own server do not concern the program.
            let mut known = variables.iter().filter(|_| !name.starts_with("SDM_"));
            let (_, value) = known.find(|(known, _)| known == name)?;
            Some(value.clone())
        };
        let found = Identity::from_env(lookup, None).ok()?;
        Some((found.server, found.size))
    }

    fn process_memory(&self, pid: i32) -> Option<Box<dyn Memory>> {
        let owners = proc::of(pid).status().ok()?.ids("Uid")?;
        // The kernel lets root read the memory of any user's process.
        let own = nix::unistd::geteuid().as_raw();
        let is_own = !owners.is_empty() && owners.iter().all(|owner| *owner == own);
        // The kernel has no memory for the id of a main thread that has ended.
        let id = proc::of(pid).living_thread_id().unwrap_or(pid);
        is_own.then(|| Box::new(ProcessMemory(id)) as Box<dyn Memory>)
    }
}

/// Memory of a process of this user, by the id of one of its threads.
struct ProcessMemory(i32);

impl Memory for ProcessMemory {
    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let read = read_memory(self.0, address, to).ok()?;
        (read == to.len()).then_some(())
    }
}

/// The descendant that is reached from a process by the first child at each level, at most `WRAPPERS_MAX` levels down.
/// So a script that starts gdb and waits for it gives that gdb.
fn last_started(mut pid: i32) -> i32 {
    for _ in 0..WRAPPERS_MAX {
        let children = proc::of(pid).children_of_thread(pid);
        match children.unwrap_or_default().first() {
            Some(child) => pid = *child,
            None => break,
        }
    }
    pid
}

fn place_in(maps: &[Mapping], address: u64) -> Option<(String, u64)> {
    let mut first: Option<&Mapping> = None;
    for mapping in maps.iter().filter(|it| !it.name.is_empty()) {
        if first.is_none_or(|known| known.name != mapping.name) {
            first = Some(mapping);
        }
        if mapping.holds(address) {
            let first = first?;
            let name = first.name.to_string_lossy().into_owned();
            return Some((name, address - first.start));
        }
    }
    None
}

/// Writable ranges of the file mapped at an address, with the anonymous mapping directly after it (`.bss`).
fn variables_beside(maps: &[Mapping], address: u64) -> Vec<Range<u64>> {
    let Some(file) = maps.iter().find(|it| it.holds(address)) else {
        return Vec::new();
    };
    let is_file = |it: &Mapping| it.name == file.name;
    let first = maps.iter().position(is_file).unwrap_or_default();
    let mut end = maps[first].start;
    let with_rest = maps[first..].iter().take_while(|it| {
        let belongs = is_file(it) || it.name.is_empty() && it.start == end;
        end = it.end;
        belongs
    });
    let mut areas: Vec<Range<u64>> = Vec::new();
    for it in with_rest.filter(|it| it.is_writable()) {
        match areas.last_mut() {
            Some(last) if last.end == it.start => last.end = it.end,
            _ => areas.push(it.start..it.end),
        }
    }
    areas
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal::SIGINT;

    use super::*;

    const MAPS: &str = "\
555555554000-555555555000 r--p 00000000 08:01 11 /tmp/my prog
555555555000-555555556000 r-xp 00001000 08:01 11 /tmp/my prog
555555556000-555555557000 rw-p 00000000 00:00 0
7ffff7dd4000-7ffff7dfa000 r--p 00000000 08:01 12 /lib/libc.so.6
7ffff7dfa000-7ffff7f4f000 r-xp 00026000 08:01 12 /lib/libc.so.6
7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0 [vdso]
";

    fn check(address: u64, expect: Option<(&str, u64)>) {
        let expect = expect.map(|(path, offset)| (path.to_owned(), offset));
        let maps = proc::mappings(MAPS.as_bytes());
        assert_eq!(place_in(&maps, address), expect, "{address:#x}");
    }

    #[test]
    fn data_segment_of_the_library_at_an_address_is_found() {
        const MAPS: &str = "\
555555554000-555555555000 r-xp 00000000 08:01 11 /tmp/my prog
555555556000-555555557000 rw-p 00001000 08:01 11 /tmp/my prog
555555557000-555555558000 rw-p 00000000 00:00 0
555555560000-555555561000 rw-p 00000000 00:00 0 [heap]
7ffff7dd4000-7ffff7dfa000 r--p 00000000 08:01 12 /lib/libmpi.so
7ffff7dfa000-7ffff7dfb000 rw-p 00026000 08:01 12 /lib/libmpi.so
7ffff7e00000-7ffff7e01000 rw-p 00000000 00:00 0
";
        let maps = proc::mappings(MAPS.as_bytes());
        let program = 0x5555_5555_6000..0x5555_5555_8000;
        assert_eq!(variables_beside(&maps, 0x5555_5555_4100), [program]);
        let library = 0x7fff_f7df_a000..0x7fff_f7df_b000;
        assert_eq!(variables_beside(&maps, 0x7fff_f7dd_4000), [library]);
        assert_eq!(variables_beside(&maps, 0x1000), []);
    }

    #[test]
    fn code_address_maps_to_file_and_offset() {
        check(0x5555_5555_5010, Some(("/tmp/my prog", 0x1010)));
        check(0x5555_5555_6010, None);
        check(0x7fff_f7e0_0000, Some(("/lib/libc.so.6", 0x2c000)));
        check(0x7fff_f7fc_9001, Some(("[vdso]", 1)));
        check(0x10, None);
    }

    #[test]
    fn host_information_of_own_process_is_read() {
        let host = LocalHost::default();
        let pid = std::process::id().cast_signed();
        assert!(host.process_state(pid).is_some());
        assert!(host.entry_address(pid).is_some());
        let own = host.threads(pid)[&nix::unistd::gettid().as_raw()];
        assert_eq!(own.state, 'R');
        assert!(!own.blocks(SIGINT) && !own.has_pending(SIGINT));
        assert_eq!(host.process_state(-1), None);
    }
}
