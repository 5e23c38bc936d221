//! The pid and rank of the process that left a core file. The rank comes from the environment
//! at the end of its stack.
//!
//! Linux puts the strings of arguments, environment and the program's path at the end of the stack, in
//! this order; the auxiliary vector in a core file's notes has the address of the path.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, NT_AUXV, NT_PRPSINFO, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use sdm_system::files;
use sdm_system::launcher_env::Identity;
use sdm_system::secret::SecretFile;

use super::packed::Packed;

/// The largest environment that is read, in bytes.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;
/// The longest path, in bytes.
const PATH_BYTES_MAX: u64 = 4096;
/// Key of the program path's address in the auxiliary vector.
const AT_EXECFN: u64 = 31;
/// Offset of the pid in the note about the process, on every 64-bit Linux; in bytes.
const PID_OFFSET: usize = 24;
/// Prefix of SDM's own environment variables, which do not count as a launcher's.
const OWN: &str = "SDM_";

/// The process of a core file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreProcess {
    /// The pid of the process; `None` if it is not in the file.
    pub pid: Option<u32>,
    /// The rank that the runtime had assigned to the process; `None` if it is not in the file.
    pub rank: Option<u32>,
    /// The path by which the program was started; `None` if it is not in the file.
    pub program: Option<PathBuf>,
}

/// A core file that can be opened by its path.
#[derive(Debug)]
pub struct CoreFile {
    /// Facts about the process that left the core file.
    pub process: CoreProcess,
    /// The unpacked copy of a compressed core file. It is a file of this user alone, and is removed when this value is
    /// dropped; `None` if the core file is not compressed.
    pub unpacked: Option<SecretFile>,
}

/// Reads facts about the process of a core file, which is unpacked first if it is compressed. Facts that are not in the
/// file are `None`.
///
/// # Errors
/// A file that cannot be read or unpacked, or is not a core file.
pub fn open(path: &Path) -> io::Result<CoreFile> {
    let Some(packed) = Packed::open(path)? else {
        let process = read_in(&ReadCache::new(files::open(path)?))?;
        let unpacked = None;
        return Ok(CoreFile { process, unpacked });
    };
    let unpacked = packed.unpack(path)?;
    let process = read_in(&ReadCache::new(files::open(unpacked.path())?))?;
    Ok(CoreFile {
        process,
        unpacked: Some(unpacked),
    })
}

/// Like [`open`], for a core file that processes on other hosts will open by this path. A compressed one is refused, as
/// they could not read it.
///
/// # Errors
/// As [`open`], and for a compressed core file.
pub fn read(path: &Path) -> io::Result<CoreProcess> {
    match Packed::open(path)? {
        None => read_in(&ReadCache::new(files::open(path)?)),
        Some(packed) => Err(packed.refusal()),
    }
}

/// Feeds arbitrary bytes to the reader of core files: no panic.
pub fn fuzz_core(bytes: &[u8]) {
    let _ = read_in(bytes);
}

fn read_in<'a, R: ReadRef<'a>>(file: R) -> io::Result<CoreProcess> {
    let header = FileHeader64::<Endianness>::parse(file).map_err(|_| no_core())?;
    let endian = header.endian().map_err(|_| no_core())?;
    if header.e_type(endian) != object::elf::ET_CORE {
        return Err(no_core());
    }
    let parts = header.program_headers(endian, file);
    let parts = parts.map_err(|_| no_core())?;
    let mut found = CoreProcess::default();
    let mut path_at = None;
    for part in parts.iter().filter(|part| part.p_type(endian) == PT_NOTE) {
        let Ok(Some(mut notes)) = part.notes(endian, file) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            match note.n_type(endian) {
                NT_PRPSINFO if found.pid.is_none() => found.pid = pid_in(note.desc(), endian),
                NT_AUXV => path_at = path_at.or(path_address(note.desc(), endian)),
                _ => {}
            }
        }
    }
    let stack = path_at.and_then(|address: u64| {
        let holds = |part: &&object::elf::ProgramHeader64<Endianness>| {
            let begin = part.p_vaddr(endian);
            part.p_type(endian) == PT_LOAD
                && address >= begin
                && address - begin <= part.p_filesz(endian)
        };
        let part = parts.iter().find(holds)?;
        let before = address - part.p_vaddr(endian);
        let length = before.min(ENVIRONMENT_BYTES_MAX);
        let offset = part.p_offset(endian).checked_add(before - length)?;
        let strings = file.read_bytes_at(offset, length).ok()?;
        let rest = PATH_BYTES_MAX.min(part.p_filesz(endian) - before);
        let path = file.read_bytes_at(offset.checked_add(length)?, rest).ok()?;
        Some((strings, path))
    });
    if let Some((strings, path)) = stack {
        found.rank = rank_in(strings);
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        found.program = (!path.is_empty()).then(|| OsString::from_vec(path.to_vec()).into());
    }
    Ok(found)
}

fn no_core() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "not a core file of a 64-bit system",
    )
}

fn pid_in(note: &[u8], endian: Endianness) -> Option<u32> {
    let bytes = note.get(PID_OFFSET..PID_OFFSET + 4)?.try_into().ok()?;
    Some(match endian {
        Endianness::Little => u32::from_le_bytes(bytes),
        Endianness::Big => u32::from_be_bytes(bytes),
    })
}

/// Address of the program's path, from an auxiliary vector of key and value pairs; `None` if it is not there.
fn path_address(vector: &[u8], endian: Endianness) -> Option<u64> {
    let number = |bytes: &[u8]| {
        let bytes = bytes.try_into().ok()?;
        Some(match endian {
            Endianness::Little => u64::from_le_bytes(bytes),
            Endianness::Big => u64::from_be_bytes(bytes),
        })
    };
    let mut pairs = vector.chunks_exact(16);
    pairs.find_map(|pair| (number(&pair[..8])? == AT_EXECFN).then(|| number(&pair[8..]))?)
}

/// The rank from the part of the stack before the program's path; `None` if there is none. This part has the
/// environment as zero-terminated strings.
fn rank_in(stack: &[u8]) -> Option<u32> {
    let mut variables = BTreeMap::new();
    for text in stack.split(|byte| *byte == 0) {
        let Some(at) = text.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        if let Ok(name) = std::str::from_utf8(&text[..at])
            && !name.starts_with(OWN)
        {
            variables.insert(name, &text[at + 1..]);
        }
    }
    let lookup = |name: &str| {
        let value = variables.get(name)?;
        Some(OsString::from_vec(value.to_vec()))
    };
    let identity = Identity::from_env(lookup, None).ok()?;
    Some(identity.server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_found_in_core_environment() {
        let stack =
            b"\x7f\xffgarbage\0./halo\0=x\0OMPI_COMM_WORLD_RANK=3\0OMPI_COMM_WORLD_SIZE=4\0A=b\0";
        assert_eq!(rank_in(stack), Some(3));
        assert_eq!(rank_in(b"./halo\0SDM_SERVER_ID=2\0HOME=/\0"), None);
        assert_eq!(rank_in(b""), None);
    }

    #[test]
    fn file_that_is_no_core_file_is_refused() {
        for path in ["/etc/passwd", "/bin/sh", "/no/such/file"] {
            assert!(read(Path::new(path)).is_err(), "{path}");
            assert!(open(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn short_core_notes_are_ignored() {
        assert_eq!(pid_in(&[1; 27], Endianness::Little), None);
        assert_eq!(pid_in(&[0; 28], Endianness::Little), Some(0));
        assert_eq!(path_address(&[31; 15], Endianness::Little), None);
        let mut pair = [0; 16];
        pair[0] = 31;
        pair[8] = 9;
        assert_eq!(path_address(&pair, Endianness::Little), Some(9));
    }
}
