//! Memory mappings of a process: the lines of `/proc/PID/maps`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address of the mapping.
    pub start: u64,
    /// Address after the last byte of the mapping.
    pub end: u64,
    /// Access rights, for example `r-xp`: readable, writable, executable, and private or shared.
    pub rights: String,
    /// Offset in the file at which the mapping begins, in bytes.
    pub offset: u64,
    /// The device that contains the file, in the kernel's notation: `08:01`.
    pub device: String,
    /// Inode number of the file; 0 if there is none.
    pub inode: u64,
    /// The file's path, or the kernel's name in square brackets; empty if the mapping has neither.
    pub name: OsString,
}

impl Mapping {
    /// The path of the mapped file; `None` if the mapping has none.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        let is_file = self.name.as_bytes().starts_with(b"/");
        is_file.then(|| Path::new(&self.name))
    }

    /// True if the process can write to the mapping.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.rights.as_bytes().get(1) == Some(&b'w')
    }

    /// True if the mapping is executable.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.rights.as_bytes().get(2) == Some(&b'x')
    }

    /// True if writes to the mapping are visible only to this process.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.rights.as_bytes().get(3) == Some(&b'p')
    }

    /// True if an address is in the mapping.
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Parses the text of a `maps` file. Malformed lines are left out.
#[must_use]
pub fn mappings(bytes: &[u8]) -> Vec<Mapping> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    // Range, permissions, offset, device, inode; blanks; then the name, which may contain blanks too.
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let (start, end) = field()?.split_once('-')?;
    let rights = field()?.to_owned();
    let offset = field()?;
    let device = field()?.to_owned();
    let inode = field()?.parse().ok()?;
    let name = fields.next().unwrap_or_default().trim_ascii_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        rights,
        offset: number(offset)?,
        device,
        inode,
        name: OsStr::from_bytes(name).to_owned(),
    })
}
