//! The memory of a stopped process, read by pages, because the small structures that are read are often side by side.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::memory::Memory;
use sdm_system::process_memory::read_memory;

const PAGE_BYTES: usize = 4096;
/// Maximum number of pages that are kept.
const PAGES_MAX: usize = 4096;

type Page = [u8; PAGE_BYTES];

/// The memory of a stopped thread's process. Each page is read once.
pub(super) struct PageCache {
    thread: i32,
    /// The pages by number; `None` for one that cannot be read.
    pages: RefCell<BTreeMap<u64, Option<Box<Page>>>>,
}

impl PageCache {
    pub(super) fn of(thread: i32) -> Self {
        Self {
            thread,
            pages: RefCell::default(),
        }
    }

    fn read_page(&self, number: u64) -> Option<Box<Page>> {
        let mut page = Box::new([0; PAGE_BYTES]);
        let start = number.checked_mul(PAGE_BYTES as u64)?;
        let read = read_memory(self.thread, start, page.as_mut_slice());
        (read == Ok(PAGE_BYTES)).then_some(page)
    }
}

impl Memory for PageCache {
    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < to.len() {
            let at = address.checked_add(done as u64)?;
            let (number, offset) = (at / PAGE_BYTES as u64, at % PAGE_BYTES as u64);
            let offset = usize::try_from(offset).ok()?;
            let count = (PAGE_BYTES - offset).min(to.len() - done);
            if pages.len() >= PAGES_MAX && !pages.contains_key(&number) {
                pages.clear();
            }
            let page = pages
                .entry(number)
                .or_insert_with(|| self.read_page(number));
            to[done..done + count].copy_from_slice(&page.as_ref()?[offset..offset + count]);
            done += count;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_through_the_page_cache_equal_the_process_memory() {
        let own = PageCache::of(std::process::id().cast_signed());
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let start = bytes.as_ptr() as u64;
        let mut to = vec![0; 9_000];
        for from in [0, 1, 4_095, 10_000] {
            assert_eq!(own.read(start + from as u64, &mut to), Some(()));
            assert_eq!(to, bytes[from..from + to.len()]);
        }
        assert_eq!(own.read(0, &mut to), None);
        assert_eq!(own.read(u64::MAX - 8, &mut to), None);
    }
}
