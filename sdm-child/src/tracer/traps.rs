//! Addresses at which a program without a gdb is stopped, by the processor's debug registers.
//!
//! Debug registers change nothing of the program, neither its code nor its children's copy of the code. The kernel
//! clears them in a new thread, so they are set in each thread. A processor has four of them, so that the four
//! addresses in use depend on the program's progress.

use std::fs::File;
use std::path::Path;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use object::elf::{DT_NEEDED, ET_DYN, PT_LOAD};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{NativeEndian, Object, ObjectSymbol, ReadCache};
use sdm_check::{ERROR_FUNCTION, STAGE_VARIABLE};
use sdm_mpi::symbols::{
    ABORT, COMM_RANK, FINALIZE, INIT, LIBRARY_PREFIX, MPICH_VERSIONS, OPEN_MPI_EMPTY_GROUP,
    OPEN_MPI_FATAL, OPEN_MPI_SELF, OPEN_MPI_STATE, OPEN_MPI_WORLD,
};
use sdm_system::files;
use sdm_system::proc::{self, Mapping};

use super::events::{EndingCall, MpiSymbols};

/// Number of addresses at which a processor can stop a thread.
const SLOTS: usize = 4;
/// Offset of the debug registers in `struct user`, in bytes.
const REGISTERS: usize = std::mem::offset_of!(nix::libc::user, u_debugreg);
/// The debug register that enables the others (DR7).
const CONTROL: usize = 7;
/// The debug register that shows at which address the thread has stopped (DR6).
const STATUS: usize = 6;
/// Smallest page size of any host, in bytes.
const PAGE_BYTES: u64 = 4096;
/// The entry of the auxiliary vector with the loader's address.
const AT_BASE: u64 = 7;
/// The function that the loader calls after it has loaded or unloaded a library.
const LOADED: &str = "_dl_debug_state";
/// Prefix of the file names of the library that checks the use of MPI.
const CHECK_LIBRARY: &[u8] = b"sdm-check";
/// Prefixes of the file names of the C library.
const C_LIBRARIES: [&[u8]; 2] = [b"libc.so", b"ld-musl"];
/// A function that every sanitizer's runtime has.
const OF_SANITIZERS: &str = "__sanitizer_report_error_summary";
/// Prefixes of the file names of the sanitizers' runtimes.
const SANITIZERS: [&[u8]; 5] = [
    b"libasan",
    b"libubsan",
    b"liblsan",
    b"libtsan",
    b"libhwasan",
];

/// The reason why threads stop at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trap {
    /// The loader has loaded or unloaded a library.
    Loaded,
    /// `MPI_Init` or `MPI_Init_thread`.
    Init,
    /// `MPI_Finalize`.
    Finalize,
    /// The program is about to call `MPI_Comm_rank`.
    Rank,
    /// A function that is about to end the program: `MPI_Abort`, an error handler of MPI's, or `_exit` before
    /// `MPI_Finalize`.
    End,
    /// `abort`, which ends a program that has no handler of its own for SIGABRT.
    Abort,
    /// The check of the use of MPI has found an error.
    Check,
    /// An address that was watched until recently: a thread can still report it.
    Past,
}

/// The program's progress in its use of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Stage {
    /// The program has not loaded MPI so far.
    #[default]
    WithoutMpi,
    BeforeInit,
    /// Between `MPI_Init` and `MPI_Finalize`.
    Open,
    Closed,
}

/// Addresses of the functions to watch, as far as the process has them.
#[derive(Clone, Debug, Default)]
struct Functions {
    loaded: Option<u64>,
    init: [Option<u64>; 2],
    finalize: Option<u64>,
    rank: Option<u64>,
    mpi_abort: Option<u64>,
    fatal_error: Option<u64>,
    abort: Option<u64>,
    exit: Option<u64>,
    check_error: Option<u64>,
    /// Address of the variable for the program's progress in the library that checks the use of MPI; `None` without
    /// this library.
    check_stage: Option<u64>,
    /// Address of the variable for the program's progress in Open MPI; `None` without Open MPI.
    open_mpi_state: Option<u64>,
}

/// The reason why a program cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwatched {
    /// The program has a sanitizer, whose reports gdb handles.
    Sanitized,
    /// The program's loader or symbols cannot be read.
    Unreadable,
}

/// The addresses at which the threads of a process stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Traps {
    functions: Functions,
    stage: Stage,
    /// True if programs that are about to end must not be stopped.
    pub(super) without_ends: bool,
    knows_rank: bool,
    /// True if the call of `MPI_Finalize` can have been missed: the program was released after `MPI_Init`, and no
    /// variable shows its progress.
    is_unsure: bool,
    symbols: MpiSymbols,
    /// A number that increases with each change of the addresses.
    pub(super) version: u32,
}

impl Traps {
    /// No addresses, for a process that has not executed its program.
    pub(super) fn none(without_ends: bool) -> Self {
        Self {
            without_ends,
            ..Self::default()
        }
    }

    /// The addresses for a process that has just executed its program and has run none of its instructions.
    ///
    /// # Errors
    /// The program cannot be watched, for this reason.
    pub(super) fn of_new(pid: i32) -> Result<Self, Unwatched> {
        let process = proc::of(pid);
        let maps = process.maps().map_err(|_| Unwatched::Unreadable)?;
        let program = process.program().map_err(|_| Unwatched::Unreadable)?;
        let mut traps = Self {
            version: 1,
            ..Self::default()
        };
        if is_sanitized(&program, &maps).ok_or(Unwatched::Unreadable)? {
            return Err(Unwatched::Sanitized);
        }
        let base = process.auxiliary_value(AT_BASE).filter(|base| *base != 0);
        match base {
            None => {
                traps.look_in(&program, &program, &maps);
                traps.look_in_c(&program, &maps);
            }
            Some(base) => {
                let loader = maps
                    .iter()
                    .find(|it| it.holds(base))
                    .and_then(Mapping::file);
                let loader = loader.ok_or(Unwatched::Unreadable)?;
                let found = symbols(loader, &maps, &[LOADED]);
                let found = found.and_then(|found| found[0]);
                traps.functions.loaded = Some(found.ok_or(Unwatched::Unreadable)?);
            }
        }
        Ok(traps)
    }

    /// The addresses after an `exec`. The version number and the setting `without_ends` are continued from `before`.
    pub(super) fn after(mut self, before: &Self) -> Self {
        self.version += before.version;
        self.without_ends = before.without_ends;
        self
    }

    /// Looks for the functions of MPI, of the C library and of the library that checks the use of MPI. Call this after
    /// the loader has loaded a library.
    pub(super) fn look_again(&mut self, pid: i32) {
        let maps = proc::of(pid).maps().unwrap_or_default();
        let mut files: Vec<&Path> = maps.iter().filter_map(Mapping::file).collect();
        files.dedup();
        let is = |file: &Path, starts: &[&[u8]]| {
            let name = file.file_name().map(|it| it.as_encoded_bytes());
            name.is_some_and(|name| starts.iter().any(|start| name.starts_with(start)))
        };
        if self.functions.abort.is_none()
            && let Some(file) = files.iter().find(|file| is(file, &C_LIBRARIES))
        {
            self.look_in_c(file, &maps);
        }
        if let Some(file) = files.iter().find(|file| is(file, &[CHECK_LIBRARY])) {
            let found = symbols(file, &maps, &[ERROR_FUNCTION, STAGE_VARIABLE]);
            let found = found.unwrap_or_else(|| vec![None; 2]);
            self.functions.check_error = found[0];
            self.functions.check_stage = found[1];
        }
        let program = proc::of(pid).program().unwrap_or_default();
        for file in files
            .iter()
            .filter(|file| is(file, &[LIBRARY_PREFIX.as_bytes()]))
        {
            self.look_in(file, &program, &maps);
        }
    }

    /// Searches a file for MPI's functions and objects. The linker may have put its own copy of a library's object into
    /// the program, which the library then uses too.
    fn look_in(&mut self, file: &Path, program: &Path, maps: &[Mapping]) {
        const OBJECTS: [&str; 3] = [OPEN_MPI_WORLD, OPEN_MPI_SELF, OPEN_MPI_EMPTY_GROUP];
        const NAMES: [&str; 12] = [
            INIT[0],
            INIT[1],
            FINALIZE,
            COMM_RANK,
            ABORT,
            OBJECTS[0],
            OBJECTS[1],
            OBJECTS[2],
            MPICH_VERSIONS[0],
            MPICH_VERSIONS[1],
            OPEN_MPI_FATAL[0],
            OPEN_MPI_STATE,
        ];
        let Some(found) = symbols(file, maps, &NAMES) else {
            return;
        };
        if self.stage != Stage::WithoutMpi || found[0].is_none() {
            return;
        }
        self.functions.init = [found[0], found[1]];
        self.functions.finalize = found[2];
        self.functions.rank = found[3];
        self.functions.mpi_abort = found[4];
        self.functions.fatal_error = found[10];
        self.functions.open_mpi_state = found[11];
        let own = match program == file {
            true => Vec::new(),
            false => symbols(program, maps, &OBJECTS).unwrap_or_default(),
        };
        let object = |at: usize| own.get(at).copied().flatten().or(found[5 + at]);
        let world = object(0).zip(object(1));
        self.symbols = MpiSymbols {
            open_mpi: world.map(|(all, one)| (all, one, object(2))),
            mpich: found[8].or(found[9]),
        };
        self.enter(Stage::BeforeInit);
    }

    fn look_in_c(&mut self, file: &Path, maps: &[Mapping]) {
        if let Some(found) = symbols(file, maps, &["abort", "_exit"]) {
            self.functions.abort = found[0];
            self.functions.exit = found[1];
            self.version += 1;
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.version += 1;
    }

    /// True once the process has loaded MPI. The library that checks its use loads MPI into wrappers too; with that
    /// library only a call of `MPI_Init` counts.
    pub(super) fn has_mpi(&self) -> bool {
        match self.functions.check_error {
            Some(_) => self.mpi().0,
            None => self.stage != Stage::WithoutMpi,
        }
    }

    /// True if the program has called `MPI_Init`, and true if it has called `MPI_Finalize` or can have called it.
    pub(super) fn mpi(&self) -> (bool, bool) {
        let closed = self.stage == Stage::Closed;
        (
            closed || self.stage == Stage::Open,
            closed || self.is_unsure,
        )
    }

    fn wanted(&self) -> impl Iterator<Item = (u64, Trap)> {
        let known = &self.functions;
        let on = |address: Option<u64>, trap| address.map(|address| (address, trap));
        let asks = !self.knows_rank && !self.without_ends;
        let rank = on(known.rank.filter(|_| asks), Trap::Rank);
        let check = on(known.check_error, Trap::Check);
        // What `abort` raises is seen without an address, too.
        let abort = on(known.abort, Trap::Abort);
        let mpi_abort = on(known.mpi_abort, Trap::End);
        // The check reports fatal errors itself, and `MPI_Abort` calls `_exit`.
        let (third, last) = match check {
            Some(_) => (rank.or(mpi_abort), check),
            None => (
                mpi_abort,
                rank.or(on(known.fatal_error, Trap::End)).or(abort),
            ),
        };
        let all = match self.stage {
            Stage::WithoutMpi => [on(known.loaded, Trap::Loaded), abort, None, None],
            Stage::BeforeInit => [
                on(known.init[0], Trap::Init),
                on(known.init[1], Trap::Init),
                mpi_abort,
                check.or(abort),
            ],
            Stage::Open => [
                on(known.finalize, Trap::Finalize),
                on(known.exit.filter(|_| !self.is_unsure), Trap::End),
                third,
                last,
            ],
            Stage::Closed => [mpi_abort, abort, check, None],
        };
        let all = all.into_iter().flatten();
        let ends = [Trap::End, Trap::Abort];
        all.filter(move |(_, trap)| !(self.without_ends && ends.contains(trap)))
    }

    /// The purpose of an address; `None` if it is not watched.
    pub(super) fn at(&self, address: u64) -> Option<Trap> {
        let mut all = self.wanted();
        all.find(|(known, _)| *known == address)
            .map(|(_, trap)| trap)
    }

    /// The call that a thread with these registers makes, with the code in its argument.
    pub(super) fn call_at(&self, registers: &libc::user_regs_struct) -> EndingCall {
        let known = &self.functions;
        let is_at = |function: Option<u64>| function == Some(registers.rip);
        // The upper half of a register with an `int` is undefined.
        let code = |register: u64| {
            u32::try_from(register & 0xffff_ffff)
                .unwrap_or_default()
                .cast_signed()
        };
        match () {
            () if is_at(known.mpi_abort) => EndingCall::MpiAbort(code(registers.rsi)),
            () if is_at(known.exit) => EndingCall::Exit(code(registers.rdi)),
            () if is_at(known.fatal_error) => EndingCall::MpiError,
            () if is_at(known.check_error) => EndingCall::Check,
            () => EndingCall::Abort,
        }
    }

    /// The addresses in the MPI library from which the rank of the process is read.
    pub(super) fn mpi_symbols(&self) -> MpiSymbols {
        self.symbols
    }

    /// Records that the program has called `MPI_Init`.
    pub(super) fn init(&mut self) {
        self.enter(Stage::Open);
    }

    /// Records that the program has called `MPI_Finalize`.
    pub(super) fn finalize(&mut self) {
        self.enter(Stage::Closed);
    }

    /// Records that the program was released. After `MPI_Init` its call of `MPI_Finalize` may have been missed, unless
    /// a variable shows its progress.
    pub(super) fn have_missed_calls(&mut self) {
        let known = &self.functions;
        if self.stage == Stage::Open && known.check_stage.or(known.open_mpi_state).is_none() {
            self.is_unsure = true;
            self.version += 1;
        }
    }

    /// Learns from the variable for the program's progress whether the program has called `MPI_Init` or `MPI_Finalize`
    /// while it was released; true if it has. `thread` is a stopped thread.
    pub(super) fn catch_up(&mut self, thread: i32) -> bool {
        let known = &self.functions;
        // Open MPI counts from 1, where initialization begins, to 5, where finalization is complete.
        let (at, open, closed) = match (known.check_stage, known.open_mpi_state) {
            (Some(at), _) => (at, 1..=1, 2..=2),
            (None, Some(at)) => (at, 1..=2, 3..=5),
            (None, None) => return false,
        };
        let at = usize::try_from(at).unwrap_or_default();
        let at = std::ptr::without_provenance_mut(at);
        let word = ptrace::read(Pid::from_raw(thread), at).unwrap_or(0) & 0xff;
        let reached = match self.stage {
            Stage::BeforeInit if open.contains(&word) => Stage::Open,
            Stage::BeforeInit | Stage::Open if closed.contains(&word) => Stage::Closed,
            _ => return false,
        };
        self.enter(reached);
        true
    }

    /// Stops watching for calls of `MPI_Comm_rank`.
    pub(super) fn forget_rank(&mut self) {
        self.knows_rank = true;
        self.version += 1;
    }

    /// Writes the wanted addresses to the debug registers of a stopped thread.
    ///
    /// # Errors
    /// The kernel's error, if it supports no debug registers.
    pub(super) fn arm(&self, thread: i32) -> nix::Result<()> {
        set(thread, CONTROL, 0)?;
        let mut control = 0;
        for (slot, (address, _)) in self.wanted().take(SLOTS).enumerate() {
            set(thread, slot, address)?;
            // Enables the slot for this thread only. The zero bits above select a stop at an instruction.
            control |= 1 << (2 * slot);
        }
        set(thread, CONTROL, control)
    }
}

/// Clears the debug registers of a stopped thread.
pub(super) fn disarm(thread: i32) {
    // A debugger would take a remaining status for a stop of its own. A thread that has ended needs no clearing.
    for register in [CONTROL, STATUS] {
        let _ = set(thread, register, 0);
    }
}

fn set(thread: i32, register: usize, value: u64) -> nix::Result<()> {
    let place = REGISTERS + register * size_of::<u64>();
    let place = std::ptr::without_provenance_mut(place);
    ptrace::write_user(Pid::from_raw(thread), place, value.cast_signed())
}

/// An ELF file whose parts are read on demand.
type Elf<'a> = ElfFile64<'a, NativeEndian, &'a ReadCache<File>>;

/// True for a program that contains, or is linked with, a sanitizer; `None` if it cannot be read.
fn is_sanitized(program: &Path, maps: &[Mapping]) -> Option<bool> {
    let found = symbols(program, maps, &[OF_SANITIZERS])?;
    let cache = ReadCache::new(files::open(program).ok()?);
    let elf = Elf::parse(&cache).ok()?;
    let (endian, data) = (elf.endian(), elf.data());
    let sections = elf.elf_section_table();
    let mut is_linked = false;
    if let Ok(Some((entries, link))) = sections.dynamic(endian, data) {
        let strings = sections.strings(endian, data, link).ok()?;
        let needed = entries.iter().filter(|it| it.tag(endian) == DT_NEEDED);
        let mut names = needed.filter_map(|it| it.string(endian, strings).ok());
        is_linked = names.any(|name| SANITIZERS.iter().any(|start| name.starts_with(start)));
    }
    Some(is_linked || found[0].is_some())
}

/// True if a file has an undefined symbol of this name: it calls a library's function.
pub(super) fn imports(file: &Path, name: &str) -> bool {
    let cache = files::open(file).map(ReadCache::new);
    let Ok(cache) = cache else { return false };
    let elf = Elf::parse(&cache);
    elf.is_ok_and(|elf| {
        let mut all = elf.dynamic_symbols();
        all.any(|symbol| symbol.is_undefined() && symbol.name() == Ok(name))
    })
}

/// The addresses of a file's symbols in a process that has loaded the file; `None` for a symbol that it does not have.
/// `None` if the file cannot be read.
fn symbols(file: &Path, maps: &[Mapping], names: &[&str]) -> Option<Vec<Option<u64>>> {
    let start = maps.iter().find(|it| it.file() == Some(file))?.start;
    let cache = ReadCache::new(files::open(file).ok()?);
    let elf = Elf::parse(&cache).ok()?;
    let endian = elf.endian();
    let moved = elf.elf_header().e_type(endian) == ET_DYN;
    let mut loads = elf.elf_program_headers().iter();
    let first = loads.find(|it| it.p_type(endian) == PT_LOAD)?;
    let first = first.p_vaddr(endian) & !(PAGE_BYTES - 1);
    let bias = if moved { start.wrapping_sub(first) } else { 0 };
    let mut found = vec![None; names.len()];
    for symbol in elf.dynamic_symbols().chain(elf.symbols()) {
        let name = symbol.name().ok().filter(|_| symbol.is_definition());
        let at = name.and_then(|name| names.iter().position(|known| *known == name));
        if let Some(at) = at {
            found[at].get_or_insert(symbol.address().wrapping_add(bias));
        }
    }
    Some(found)
}
