//! Fingerprint of a process's data exchange with other processes.
//!
//! A call that waits for ever looks like one that takes long because it sends much. Without a watch on its return it
//! also looks like a loop of equal calls. In both of the latter data is exchanged.

mod connections;
mod shared_memory;

use std::io;

use xxhash_rust::xxh3::Xxh3Default;

/// A fingerprint of what a process exchanges data with others by: the memory that it shares with them, and how much has come and gone on
/// its TCP connections. What goes by other ways is not seen: what a network card moves by
/// itself (RDMA), and long messages that are copied from process to process at once (CMA, XPMEM, KNEM).
///
/// # Errors
/// [`io::Error`] if the process is gone, or may not be read.
pub fn fingerprint(pid: i32) -> io::Result<u128> {
    let mut hash = Xxh3Default::new();
    shared_memory::add(pid, &mut hash)?;
    connections::add(pid, &mut hash)?;
    Ok(hash.digest128())
}
