//! The dynamic section of a program or library: needed libraries, search paths, and MPI symbols.

use std::path::Path;

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};
use sdm_system::files;

use crate::symbols::{self, MpiSymbols};

/// Maximum number of bytes that are read of a dynamic string table. A longer table is cut.
const NAMES_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of entries of a dynamic section that are read.
const ENTRIES_MAX: usize = 65_536;

/// Contents of a file's dynamic section.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Object {
    /// ELF class and machine, which are equal in all files of a process.
    pub(super) machine: (u8, u16),
    /// False for a static program, which no loader handles.
    pub(super) is_dynamic: bool,
    pub(super) name: Option<String>,
    pub(super) needed: Vec<String>,
    pub(super) rpath: Vec<String>,
    pub(super) runpath: Vec<String>,
    /// True if the libraries that it needs are not searched in the usual folders.
    pub(super) has_no_usual_folders: bool,
    /// MPI symbols that the file defines or uses.
    pub(crate) symbols: MpiSymbols,
}

/// Feeds arbitrary bytes to the reader of programs and libraries: no panic.
pub(super) fn fuzz_object(bytes: &[u8]) {
    let _ = Object::of::<FileHeader64<Endianness>, _>(bytes);
    let _ = Object::of::<FileHeader32<Endianness>, _>(bytes);
}

impl Object {
    /// Reads a file; `None` if it is not a program or a library.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let file = ReadCache::new(files::open(path).ok()?);
        match FileKind::parse(&file).ok()? {
            FileKind::Elf64 => Self::of::<FileHeader64<Endianness>, _>(&file),
            FileKind::Elf32 => Self::of::<FileHeader32<Endianness>, _>(&file),
            _ => None,
        }
    }

    fn of<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(file: R) -> Option<Self> {
        let header = Elf::parse(file).ok()?;
        let endian = header.endian().ok()?;
        let mut found = Self {
            machine: (header.e_ident().class, header.e_machine(endian)),
            ..Self::default()
        };
        let parts = header.program_headers(endian, file).ok()?;
        let dynamic = parts
            .iter()
            .find_map(|part| part.dynamic(endian, file).ok()?);
        let Some(entries) = dynamic else {
            found.symbols = symbols::symbols_of_static(file);
            return Some(found);
        };
        found.is_dynamic = true;
        let entries = &entries[..entries.len().min(ENTRIES_MAX)];
        let value = |wanted: i64| {
            let mut entries = entries.iter();
            let is_it = |entry: &&Elf::Dyn| entry.tag(endian) == wanted;
            entries.find(is_it).map(|entry| entry.d_val(endian).into())
        };
        let (at, bytes): (u64, u64) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
        let names = parts.iter().find_map(|part| {
            let range = part.data_range(endian, file, at, bytes.min(NAMES_BYTES_MAX));
            range.ok()?
        })?;
        let text = |at: u64| {
            let rest = names.get(usize::try_from(at).ok()?..)?;
            let text = rest.split(|byte| *byte == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        for entry in entries {
            let value: u64 = entry.d_val(endian).into();
            let list = || text(value).unwrap_or_default();
            let list = || {
                list()
                    .split(':')
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned)
                    .collect()
            };
            match entry.tag(endian) {
                elf::DT_NULL => break,
                elf::DT_NEEDED => found.needed.extend(text(value)),
                elf::DT_SONAME => found.name = text(value),
                elf::DT_RPATH => found.rpath = list(),
                elf::DT_RUNPATH => found.runpath = list(),
                elf::DT_FLAGS_1 => {
                    found.has_no_usual_folders = value & u64::from(elf::DF_1_NODEFLIB) != 0;
                }
                _ => {}
            }
        }
        // Where no name has to do with MPI the symbols are not read.
        if names.split(|byte| *byte == 0).any(symbols::is_name) {
            found.symbols = symbols::symbols(file);
        }
        Some(found)
    }
}
