//! Reads the memory of another process.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// Size of a page, in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// Number of pages read by one call.
const PAGES: usize = 64;

/// Reads memory from an address on, up to the length of `to` or to the first unmapped page. Returns the number of
/// bytes read.
///
/// # Errors
/// [`Errno`] if the kernel refuses to read the process's memory.
pub fn read_memory(pid: i32, start: u64, to: &mut [u8]) -> Result<usize, Errno> {
    let mut read = 0;
    while read < to.len() {
        let mut pages = [const { RemoteIoVec { base: 0, len: 0 } }; PAGES];
        let (mut count, mut wanted) = (0, 0);
        for page in &mut pages {
            let Some(from) = start.checked_add((read + wanted) as u64) else {
                break;
            };
            let left = PAGE_BYTES - from % PAGE_BYTES;
            let length = usize::try_from(left)
                .unwrap_or(0)
                .min(to.len() - read - wanted);
            let Ok(base) = usize::try_from(from) else {
                break;
            };
            if length == 0 {
                break;
            }
            *page = RemoteIoVec { base, len: length };
            count += 1;
            wanted += length;
        }
        let local = &mut [IoSliceMut::new(&mut to[read..read + wanted])];
        // The kernel stops at the first missing page.
        let got = match process_vm_readv(Pid::from_raw(pid), local, &pages[..count]) {
            Err(Errno::EFAULT) => 0,
            got => got?,
        };
        read += got;
        if got < wanted || wanted == 0 {
            break;
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_up_to_an_unmapped_page() {
        let own = std::process::id().cast_signed();
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut to = vec![0; bytes.len()];
        let start = bytes.as_ptr() as u64;
        assert_eq!(read_memory(own, start, &mut to), Ok(to.len()));
        assert_eq!(to, bytes);
        assert_eq!(read_memory(own, 0, &mut to), Ok(0));
        assert_eq!(read_memory(own, u64::MAX - 9, &mut to), Ok(0));
        assert_eq!(read_memory(-1, start, &mut to), Err(Errno::ESRCH));
    }
}
