//! An ELF file in memory: its sections and its load address.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use gimli::{EndianSlice, NativeEndian};
use lzma_rust2::XzReader;
use object::elf::{DT_SONAME, PF_X, PT_LOAD};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{CompressionFormat, Object, ObjectSection};
use sdm_system::proc::Mapping;

/// Maximum size of a compressed section after decompression, in bytes.
const SECTION_BYTES_MAX: u64 = 2 << 30;
/// Maximum size of the symbols in `.gnu_debugdata` after decompression, in bytes, and of memory for it in KiB.
const PACKED_BYTES_MAX: u64 = 64 << 20;
const PACKED_KIB_MAX: u32 = 72 << 10;
/// Smallest page size of any host, in bytes.
const PAGE_BYTES: u64 = 4096;

/// Sections with stubs, by which a file calls functions of others (procedure linkage table), and the size of a stub.
const STUBS: [(&str, u64); 3] = [(".plt.sec", 16), (".plt", 16), (".plt.got", 8)];
/// `jmp *...(%rip)`: the instruction by which a stub jumps to a function of another file.
const JUMP_INDIRECT: [u8; 2] = [0xff, 0x25];
/// Size of the largest stub, in bytes.
const STUB_BYTES: u64 = 16;

/// The content of a section.
pub(crate) type Slice = EndianSlice<'static, NativeEndian>;
/// An ELF file of this machine's word size and byte order.
pub(crate) type File = ElfFile64<'static, object::NativeEndian>;

/// A mapped ELF file, which is kept for the lifetime of this process.
pub(crate) struct Image {
    pub(crate) file: File,
    segments: Vec<Segment>,
    /// Address ranges of stubs, each with the size of a stub.
    stubs: Vec<(Range<u64>, u64)>,
}

/// A loaded segment of a file.
struct Segment {
    address: u64,
    offset: u64,
    bytes: u64,
    /// Size in memory, at least `bytes`.
    memory_bytes: u64,
    is_executable: bool,
}

impl Image {
    /// Parses a file; `None` if it is invalid or not for this architecture.
    pub(crate) fn parse(bytes: &'static [u8]) -> Option<Self> {
        let file = File::parse(bytes).ok()?;
        let endian = file.endian();
        if !is_native(file.elf_header().e_machine(endian)) {
            return None;
        }
        let loads = file.elf_program_headers().iter();
        let loads = loads.filter(|header| header.p_type(endian) == PT_LOAD);
        let segments = loads.map(|header| Segment {
            address: header.p_vaddr(endian),
            offset: header.p_offset(endian),
            bytes: header.p_filesz(endian),
            memory_bytes: header.p_memsz(endian),
            is_executable: header.p_flags(endian) & PF_X != 0,
        });
        let segments = segments.collect();
        let stubs = STUBS.iter().filter_map(|(name, bytes)| {
            let section = file.section_by_name(name)?;
            let end = section.address().checked_add(section.size())?;
            Some((section.address()..end, *bytes))
        });
        let stubs = stubs.collect();
        Some(Self {
            file,
            segments,
            stubs,
        })
    }

    /// The content of a section, decompressed if necessary; empty if there is no such section, or if it is too large or
    /// invalid.
    pub(crate) fn section(&self, name: &str) -> Slice {
        let bytes = self.section_bytes(name).unwrap_or_default();
        EndianSlice::new(bytes, NativeEndian)
    }

    fn section_bytes(&self, name: &str) -> Option<&'static [u8]> {
        let section = self.file.section_by_name(name)?;
        let data = section.compressed_data().ok()?;
        if data.format != CompressionFormat::None && data.uncompressed_size > SECTION_BYTES_MAX {
            return None;
        }
        match data.decompress().ok()? {
            Cow::Borrowed(bytes) => Some(bytes),
            Cow::Owned(bytes) => Some(bytes.leak()),
        }
    }

    /// The ELF file within a stripped file (`.gnu_debugdata`): the symbols of its functions, compressed with xz. `None`
    /// if there is none, or if it is larger than `PACKED_BYTES_MAX`.
    pub(crate) fn packed_symbols(&self) -> Option<Self> {
        let packed = self.section_bytes(".gnu_debugdata")?;
        let reader = XzReader::new_mem_limit(packed, true, PACKED_KIB_MAX);
        let mut bytes = Vec::new();
        let read = reader.take(PACKED_BYTES_MAX + 1).read_to_end(&mut bytes);
        let count = u64::try_from(read.ok()?).ok()?;
        (count <= PACKED_BYTES_MAX).then(|| Self::parse(bytes.leak()))?
    }

    /// Address of a section before relocation; `None` if there is no such section.
    pub(crate) fn section_address(&self, name: &str) -> Option<u64> {
        Some(self.file.section_by_name(name)?.address())
    }

    /// Bytes of code at an address of the file; `None` if the file does not have all of them.
    pub(crate) fn code(&self, address: u64, count: u64) -> Option<&'static [u8]> {
        let segment = self.segments.iter().find(|it| {
            let within = address.checked_sub(it.address);
            it.is_executable && within.is_some_and(|within| within < it.bytes)
        })?;
        let offset = segment.offset.checked_add(address - segment.address)?;
        let from = usize::try_from(offset).ok()?;
        let to = from.checked_add(usize::try_from(count).ok()?)?;
        self.file.data().get(from..to)
    }

    /// Start of the stub that contains an address; `None` for an address that is in no stub.
    pub(crate) fn stub(&self, address: u64) -> Option<u64> {
        let mut stubs = self.stubs.iter();
        let (range, bytes) = stubs.find(|(range, _)| range.contains(&address))?;
        Some(address - (address - range.start) % bytes)
    }

    /// Address of the slot from which the stub at an address loads its target; `None` if there is no such jump.
    pub(crate) fn stub_slot(&self, stub: u64) -> Option<u64> {
        let code = self.code(stub, STUB_BYTES)?;
        let jump = code
            .windows(6)
            .position(|it| it.starts_with(&JUMP_INDIRECT))?;
        let distance: [u8; 4] = code.get(jump + 2..jump + 6)?.try_into().ok()?;
        let next = stub.wrapping_add(jump as u64 + 6);
        Some(next.wrapping_add_signed(i32::from_le_bytes(distance).into()))
    }

    /// Bytes of code from an address of the file on: to the end of the segment, and at most `count_max`. `None` if no
    /// executable segment has the address.
    pub(crate) fn code_from(&self, address: u64, count_max: u64) -> Option<&'static [u8]> {
        let mut left = self.segments.iter().filter_map(|it| {
            let left = it.bytes.checked_sub(address.checked_sub(it.address)?)?;
            it.is_executable.then_some(left)
        });
        let left = left.find(|left| *left > 0)?;
        self.code(address, left.min(count_max))
    }

    /// True if a segment of the file covers an address; the address is the file's, before relocation.
    pub(crate) fn is_loaded(&self, address: u64) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|it| {
            let within = address.checked_sub(it.address);
            within.is_some_and(|within| within < it.memory_bytes)
        })
    }

    /// The build id of the file; `None` if it has none.
    pub(crate) fn build_id(&self) -> Option<&'static [u8]> {
        self.file.build_id().ok().flatten()
    }

    /// The file's `DT_SONAME`, by which programs request it from the loader; `None` if it has none.
    pub(crate) fn name(&self) -> Option<String> {
        let (endian, data) = (self.file.endian(), self.file.data());
        let sections = self.file.elf_section_table();
        let (entries, index) = sections.dynamic(endian, data).ok()??;
        let strings = sections.strings(endian, data, index).ok()?;
        let entry = entries.iter().find(|it| it.tag(endian) == DT_SONAME)?;
        let name = strings.get(entry.val32(endian)?).ok()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Load bias of the file in this mapping: process address minus file address. `None` if the mapping is of no
    /// segment.
    ///
    /// Adjacent segments can share a page of the file. Of those, the segment counts that is executable if and only if
    /// the mapping is.
    pub(crate) fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let is_in = |segment: &&Segment| {
            let first = segment.offset - segment.offset % PAGE_BYTES;
            let end = segment.offset.saturating_add(segment.bytes);
            segment.is_executable == mapping.is_executable()
                && (first..end).contains(&mapping.offset)
        };
        let segment = self.segments.iter().find(is_in)?;
        let start = mapping.start.wrapping_sub(mapping.offset);
        Some(
            start
                .wrapping_add(segment.offset)
                .wrapping_sub(segment.address),
        )
    }
}

fn is_native(machine: u16) -> bool {
    cfg!(target_arch = "x86_64") && machine == object::elf::EM_X86_64
}
