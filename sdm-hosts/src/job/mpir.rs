//! The MPIR process table of a launcher, read out of its memory while it runs.
//!
//! `mpirun` of Open MPI 4, Hydra's `mpiexec` and Slurm's `srun` keep a table of their processes under symbols that
//! every debugger knows (MPIR, version 1.0):
//!
//! ```text
//! MPIR_proctable_size  int                      number of entries, index = rank
//! MPIR_proctable       pointer to an array of   { char *host; char *program; int pid; }
//! ```
//!
//! Nothing is stopped and nothing is written: the symbol is looked up in the files that the
//! process has mapped, and the table is copied with `process_vm_readv`.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use object::{Object, ObjectKind, ObjectSegment, ObjectSymbol};
use sdm_system::files;
use sdm_system::proc::{self, Mapping};
use sdm_system::process_memory::read_memory;

use super::PROCESSES_MAX;
use super::{JobError, JobProcess};

/// Maximum size of a mapped file that is searched for symbols, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of mapped files that are searched for symbols.
const FILES_MAX: usize = 1024;
/// Maximum total length of a table's host and program names, in bytes. A name that occurs twice counts twice.
const TEXTS_BYTES_MAX: usize = 512 << 20;
/// Maximum length of a host or program name, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Maximum size of one read of a text, in bytes; no read crosses the end of a page.
const TEXT_PIECE_BYTES: u64 = 256;

/// Contents of a launcher's memory.
#[derive(Debug, Default)]
pub(super) struct Mpir {
    /// The processes, by rank; empty if the launcher has started nothing yet, or is not a launcher.
    pub(super) table: Vec<JobProcess>,
    /// Slurm's `JOB.STEP`, from further symbols of `srun`; `None` for another launcher.
    pub(super) slurm: Option<String>,
}

/// Reads the table of process `pid`; `None` if no file that it has mapped defines MPIR's symbols.
///
/// # Errors
/// Memory that may not be read, or a malformed table.
pub(super) fn read(pid: i32) -> Result<Option<Mpir>, JobError> {
    let symbols = match symbols_of(pid) {
        Ok(Some(symbols)) => symbols,
        Ok(None) => return Ok(None),
        Err(source) => return Err(JobError::Memory { pid, source }),
    };
    let memory = Memory {
        pid,
        word: symbols.word,
    };
    let read = || -> io::Result<Mpir> {
        Ok(Mpir {
            table: memory.table(&symbols)?,
            slurm: memory.slurm(&symbols)?,
        })
    };
    read()
        .map(Some)
        .map_err(|source| JobError::Memory { pid, source })
}

/// Addresses of the symbols in the process's memory.
struct Symbols {
    /// Size of a pointer in the process, in bytes.
    word: u64,
    addresses: BTreeMap<String, u64>,
}

fn symbols_of(pid: i32) -> io::Result<Option<Symbols>> {
    let process = proc::of(pid);
    let maps = process.maps()?;
    for (path, base) in first_mappings(&maps).into_iter().take(FILES_MAX) {
        // A file that was replaced, or is no ELF file, has no symbols of this process.
        if let Ok(Some(symbols)) = symbols_in(&process.inside(path), base) {
            return Ok(Some(symbols));
        }
    }
    Ok(None)
}

/// The mapped files with code, each with the address of its beginning.
fn first_mappings(maps: &[Mapping]) -> Vec<(&Path, u64)> {
    let mut found: Vec<(&Path, u64)> = Vec::new();
    for (path, mapping) in maps.iter().filter_map(|it| Some((it.file()?, it))) {
        if mapping.offset == 0 && !found.iter().any(|(known, _)| *known == path) {
            found.push((path, mapping.start));
        }
    }
    let code = maps.iter().filter(|mapping| mapping.is_executable());
    found.retain(|(path, _)| code.clone().any(|it| it.file() == Some(*path)));
    found
}

fn symbols_in(path: &Path, base: u64) -> io::Result<Option<Symbols>> {
    // The path may name anything by now, not only the mapped file.
    let file = files::open(path)?;
    let length = file.metadata()?.len();
    if length > FILE_BYTES_MAX {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    symbols_of_file(&bytes, base)
}

fn symbols_of_file(bytes: &[u8], base: u64) -> io::Result<Option<Symbols>> {
    let object = object::File::parse(bytes).map_err(io::Error::other)?;
    let first = object.segments().map(|segment| segment.address()).min();
    let bias = match object.kind() {
        // Addresses in a file that was linked for a fixed place are absolute.
        ObjectKind::Executable => 0,
        _ => base.wrapping_sub(first.unwrap_or(0) & !0xfff),
    };
    let is_ours = |name: &str| name.starts_with("MPIR_") || name.starts_with("totalview_");
    let symbols = object.dynamic_symbols().chain(object.symbols());
    let addresses: BTreeMap<String, u64> = symbols
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| is_ours(name))?;
            Some((name.to_owned(), symbol.address().wrapping_add(bias)))
        })
        .collect();
    let complete = ["MPIR_proctable", "MPIR_proctable_size"];
    let complete = complete.iter().all(|name| addresses.contains_key(*name));
    Ok(complete.then_some(Symbols {
        word: if object.is_64() { 8 } else { 4 },
        addresses,
    }))
}

/// The memory of another process.
struct Memory {
    pid: i32,
    word: u64,
}

impl Memory {
    fn table(&self, symbols: &Symbols) -> io::Result<Vec<JobProcess>> {
        let count = self.number(symbols.addresses["MPIR_proctable_size"])?;
        if count <= 0 {
            return Ok(Vec::new());
        }
        let count = u32::try_from(count).map_err(io::Error::other)?;
        if count > PROCESSES_MAX {
            let text = format!("MPIR_proctable_size is {count}, more than {PROCESSES_MAX}");
            return Err(io::Error::other(text));
        }
        let table = self.pointer(symbols.addresses["MPIR_proctable"])?;
        if table == 0 {
            return Ok(Vec::new());
        }
        // Two pointers and an int, as the compiler lays them out.
        let entry = 3 * self.word;
        let bytes = self.bytes(table, u64::from(count) * entry)?;
        let step = usize::try_from(entry).map_err(io::Error::other)?;
        let word = step / 3;
        let mut texts = Texts::new(TEXTS_BYTES_MAX);
        let mut processes = Vec::new();
        for (rank, entry) in (0..count).zip(bytes.chunks_exact(step)) {
            let pid = &entry[2 * word..2 * word + 4];
            processes.push(JobProcess {
                rank,
                host: named(texts.get(self, number_of(&entry[..word]))?),
                program: texts.get(self, number_of(&entry[word..2 * word]))?,
                pid: i32::from_ne_bytes(pid.try_into().map_err(io::Error::other)?),
            });
        }
        Ok(processes)
    }

    /// Slurm's `JOB.STEP`, or `JOB` if `srun` names no step; `None` if the launcher is not `srun`.
    fn slurm(&self, symbols: &Symbols) -> io::Result<Option<String>> {
        let text = |name: &str| -> io::Result<Option<String>> {
            let Some(address) = symbols.addresses.get(name) else {
                return Ok(None);
            };
            let text = self.text(self.pointer(*address)?)?;
            Ok(Some(text).filter(|text| !text.is_empty()))
        };
        let (job, step) = (text("totalview_jobid")?, text("totalview_stepid")?);
        Ok(job.map(|job| match step {
            Some(step) => format!("{job}.{step}"),
            None => job,
        }))
    }

    fn text(&self, address: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        let mut at = address;
        while address != 0 && bytes.len() < TEXT_BYTES_MAX {
            let piece = self.bytes(at, TEXT_PIECE_BYTES - at % TEXT_PIECE_BYTES)?;
            let end = piece.iter().position(|byte| *byte == 0);
            bytes.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
            if end.is_some() {
                break;
            }
            at += piece.len() as u64;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn number(&self, address: u64) -> io::Result<i32> {
        let bytes = self.bytes(address, 4)?;
        let bytes = bytes.as_slice().try_into().map_err(io::Error::other)?;
        Ok(i32::from_ne_bytes(bytes))
    }

    fn pointer(&self, address: u64) -> io::Result<u64> {
        Ok(number_of(&self.bytes(address, self.word)?))
    }

    fn bytes(&self, address: u64, count: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(count).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        if read_memory(self.pid, address, &mut bytes)? < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}

/// The texts of a table. Equal pointers are read once: a table names few hosts and programs.
struct Texts {
    known: BTreeMap<u64, String>,
    /// Number of bytes that further texts may have.
    left_bytes: usize,
}

impl Texts {
    fn new(bytes_max: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            left_bytes: bytes_max,
        }
    }

    fn get(&mut self, memory: &Memory, address: u64) -> io::Result<String> {
        let text = match self.known.get(&address) {
            Some(text) => text.clone(),
            None => memory.text(address)?,
        };
        let left = self.left_bytes.checked_sub(text.len() + 1);
        self.left_bytes = left.ok_or_else(|| {
            io::Error::other("the names in MPIR_proctable have too many bytes in total")
        })?;
        self.known.entry(address).or_insert_with(|| text.clone());
        Ok(text)
    }
}

/// The host of a table entry. An empty name becomes `(null)`, as gdb prints it: elsewhere an empty name stands for this
/// machine.
pub(super) fn named(host: String) -> String {
    match host.is_empty() {
        true => "(null)".to_owned(),
        false => host,
    }
}

/// A pointer of 4 or 8 bytes.
fn number_of(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(bytes) => u64::from_ne_bytes(bytes),
        Err(_) => bytes
            .try_into()
            .map_or(0, |bytes| u64::from(u32::from_ne_bytes(bytes))),
    }
}

/// Feeds arbitrary bytes to the readers of a launcher's files and of its table: no panic, and at most as many
/// processes as promised.
///
/// The bytes are a file. They also are memory of this process: the number of processes, and a table whose pointers
/// lead into them, or just past their end.
///
/// # Panics
/// If that does not hold.
pub(crate) fn fuzz_mpir(bytes: &[u8]) {
    let _ = symbols_of_file(bytes, 1 << 20);
    for word in [4_u8, 8] {
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        let mut memory = head.to_vec();
        memory.resize(16, 0);
        let body = memory.len();
        memory.extend_from_slice(rest);
        // A page of zeros, where each text ends.
        memory.extend_from_slice(&[0; 8]);
        let begin = memory.as_ptr().addr() as u64;
        let room = memory.len() as u64;
        let step = usize::from(word);
        if step == 8 {
            for (at, pointer) in memory[body..].chunks_exact_mut(step).enumerate() {
                // Each third word is a pid, and some of the pointers are anything.
                if at % 3 != 2 && pointer[0] & 7 != 7 {
                    let inside = number_of(pointer) % (room + 1);
                    pointer.copy_from_slice(&(begin + inside).to_ne_bytes());
                }
            }
            memory[8..16].copy_from_slice(&(begin + body as u64).to_ne_bytes());
        }
        let address = |at: u64| memory.as_ptr().addr() as u64 + at;
        let names = ["MPIR_proctable_size", "MPIR_proctable", "totalview_jobid"];
        let places = [0, 8, 8].map(address);
        let named = names.map(str::to_owned).into_iter().zip(places);
        let symbols = Symbols {
            word: word.into(),
            addresses: named.collect(),
        };
        let reader = Memory {
            pid: std::process::id().cast_signed(),
            word: word.into(),
        };
        if let Ok(table) = reader.table(&symbols)
            && !table.is_empty()
        {
            let count = i32::from_ne_bytes([memory[0], memory[1], memory[2], memory[3]]);
            assert_eq!(usize::try_from(count), Ok(table.len()));
        }
        let _ = reader.slurm(&symbols);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

    use super::*;

    #[repr(C)]
    struct Entry {
        host: *const c_char,
        program: *const c_char,
        pid: c_int,
    }

    const HOST: &CStr = c"node7";
    const PROGRAM: &CStr = c"/opt/solver";

    #[test]
    fn proctable_is_read_from_memory() {
        let entry = |pid| Entry {
            host: HOST.as_ptr(),
            program: PROGRAM.as_ptr(),
            pid,
        };
        let entries = [entry(41), entry(42)];
        let size = AtomicI32::new(2);
        let table = AtomicPtr::new(entries.as_ptr().cast_mut());
        let address_of = |pointer: usize| pointer as u64;
        let addresses = BTreeMap::from([
            (
                "MPIR_proctable_size".to_owned(),
                address_of(size.as_ptr().addr()),
            ),
            (
                "MPIR_proctable".to_owned(),
                address_of((&raw const table).addr()),
            ),
        ]);
        let symbols = Symbols { word: 8, addresses };
        let memory = Memory {
            pid: std::process::id().cast_signed(),
            word: 8,
        };
        let read = || memory.table(&symbols);
        let found = read().unwrap();
        let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        assert_eq!(pids, [41, 42]);
        assert_eq!(found[1].rank, 1);
        assert_eq!(
            (&*found[1].host, &*found[1].program),
            ("node7", "/opt/solver")
        );
        let mut nowhere = [entry(41)];
        nowhere[0].host = std::ptr::null();
        table.store(nowhere.as_mut_ptr(), Ordering::Relaxed);
        size.store(1, Ordering::Relaxed);
        assert_eq!(read().unwrap()[0].host, "(null)");
        // Invalid sizes.
        for (wrong, expect) in [(0, "none"), (-7, "none"), (i32::MAX, "more than")] {
            size.store(wrong, Ordering::Relaxed);
            match read() {
                Ok(found) => assert!(found.is_empty() && expect == "none"),
                Err(error) => assert!(error.to_string().contains(expect), "{error}"),
            }
        }
        // A pointer to nowhere.
        size.store(2, Ordering::Relaxed);
        table.store(std::ptr::without_provenance_mut(0x10), Ordering::Relaxed);
        assert!(read().is_err());
        table.store(std::ptr::null_mut(), Ordering::Relaxed);
        assert!(read().unwrap().is_empty());
    }

    #[test]
    fn total_length_of_proctable_names_is_bounded() {
        let memory = Memory {
            pid: std::process::id().cast_signed(),
            word: 8,
        };
        let address = PROGRAM.as_ptr().addr() as u64;
        let mut texts = Texts::new(3 * (PROGRAM.count_bytes() + 1));
        for _ in 0..3 {
            assert_eq!(texts.get(&memory, address).unwrap(), "/opt/solver");
        }
        // One that is known takes room again: everybody has a copy.
        let error = texts.get(&memory, address).unwrap_err().to_string();
        assert!(error.contains("too many bytes in total"), "{error}");
    }

    #[test]
    fn process_without_mpir_symbols_has_no_process_table() {
        let own = std::process::id().cast_signed();
        assert!(read(own).unwrap().is_none());
        assert!(matches!(read(-1), Err(JobError::Memory { .. })));
    }

    #[test]
    fn first_mapping_of_each_file_is_found() {
        let maps = "\
55e0-55e1 r--p 00000000 08:01 11 /usr/bin/my run
55e1-55e2 r-xp 00001000 08:01 11 /usr/bin/my run
7f00-7f01 r--p 00000000 08:01 12 /usr/share/locale
7f10-7f11 rw-p 00000000 00:00 0
7fa0-7fa1 r-xp 00000000 08:01 13 /lib/libx.so (deleted)
";
        let maps = proc::mappings(maps.as_bytes());
        let found = first_mappings(&maps);
        let expect = [
            (Path::new("/usr/bin/my run"), 0x55e0),
            (Path::new("/lib/libx.so (deleted)"), 0x7fa0),
        ];
        assert_eq!(found, expect);
    }
}
