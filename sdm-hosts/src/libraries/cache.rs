//! The loader's index of libraries, `/etc/ld.so.cache`:
//!
//! ```text
//! [ "ld.so-1.7.0" 0, u32 count, count entries of 12 bytes, padding to 8 bytes ]     older systems
//! "glibc-ld.so.cache1.1"  u32 count  u32 strings  20 bytes                          48 bytes
//! count entries: i32 flags  u32 name  u32 path  u32 version  u64 hwcap              24 bytes each
//! strings, each with a 0 at its end
//! ```
//!
//! Numbers are in the machine's byte order; `name` and `path` count from the word `glibc-ld.so.cache`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use sdm_system::files;

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const OLD_HEAD_BYTES: usize = 16;
const OLD_ENTRY_BYTES: usize = 12;
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEAD_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// The largest index that is read, in bytes.
const CACHE_BYTES_MAX: u64 = 64 << 20;

/// The paths of each library name, in the order of the loader's cache; empty if the cache cannot be read.
pub(super) fn read(path: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let file = files::open(path);
    let read = file.and_then(|file| file.take(CACHE_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => parse(&bytes).unwrap_or_default(),
        Err(_) => BTreeMap::new(),
    }
}

/// Parses an index; `None` if it has another format or is cut off.
pub(super) fn parse(bytes: &[u8]) -> Option<BTreeMap<String, Vec<PathBuf>>> {
    let bytes = match bytes.starts_with(OLD_MAGIC) {
        true => {
            let count = number(bytes, OLD_MAGIC.len().next_multiple_of(4))?;
            let end = OLD_HEAD_BYTES.checked_add(count.checked_mul(OLD_ENTRY_BYTES)?)?;
            bytes.get(end.checked_next_multiple_of(8)?..)?
        }
        false => bytes,
    };
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let count = number(bytes, MAGIC.len())?;
    let end = HEAD_BYTES.checked_add(count.checked_mul(ENTRY_BYTES)?)?;
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in bytes.get(HEAD_BYTES..end)?.chunks_exact(ENTRY_BYTES) {
        let name = text(bytes, number(entry, 4)?)?;
        let path = text(bytes, number(entry, 8)?)?;
        found.entry(name).or_default().push(path.into());
    }
    Some(found)
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_ne_bytes(bytes)).ok()
}

fn text(bytes: &[u8], at: usize) -> Option<String> {
    let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}
