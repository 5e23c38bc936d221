//! The state of a process's memory pages, from `/proc/PID/pagemap`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum size of a range that is read, in pages.
const PAGES_MAX: u64 = 1 << 20;

/// One page of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Address of the first byte of the page.
    pub address: u64,
    entry: u64,
}

impl Page {
    /// True if the page is in memory.
    pub fn is_present(self) -> bool {
        self.entry & 1 << 63 != 0
    }

    /// True if the page was swapped out.
    pub fn is_swapped(self) -> bool {
        self.entry & 1 << 62 != 0
    }

    /// True if the page belongs to a file, or is shared memory.
    pub fn is_of_file(self) -> bool {
        self.entry & 1 << 61 != 0
    }
}

/// The pages between two addresses, of which `start` is page-aligned. Of a range of over a million pages only the first
/// ones are returned. `pagemap` is the open `pagemap` file of the process.
///
/// # Errors
/// [`io::Error`] if the process has ended.
pub fn pages(pagemap: &File, (start, end): (u64, u64)) -> io::Result<Vec<Page>> {
    let page_bytes = page_size();
    let count = (end.saturating_sub(start) / page_bytes).min(PAGES_MAX);
    let mut entries = vec![0; usize::try_from(count * 8).unwrap_or(0)];
    pagemap.read_exact_at(&mut entries, start / page_bytes * 8)?;
    let entries = entries.chunks_exact(8).zip(0..);
    let page = |(entry, at): (&[u8], u64)| Page {
        address: start + at * page_bytes,
        entry: u64::from_ne_bytes(entry.try_into().expect("chunks of eight")),
    };
    Ok(entries.map(page).collect())
}

/// Size of a page in bytes.
pub fn page_size() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    let size = size
        .ok()
        .flatten()
        .and_then(|size| u64::try_from(size).ok());
    size.unwrap_or(4096)
}
