//! Fingerprint of a process's data exchange with other processes.
//!
//! A call that waits for ever looks the same as a long call that transfers much data. If the call's return is not
//! tracked, it also looks the same as a loop of equal calls. The long call and the loop exchange data; the waiting call
//! does not.

mod connections;
mod shared_memory;

use std::io;

use xxhash_rust::xxh3::Xxh3Default;

/// A fingerprint of a process's data exchange with other processes. It covers the contents of its shared memory, and
/// the byte counts of its TCP connections. It does not cover transfers by a network card (RDMA), nor long messages
/// that are copied directly between processes (CMA, XPMEM, KNEM).
///
/// # Errors
/// [`io::Error`] if the process has ended, or may not be read.
pub fn fingerprint(pid: i32) -> io::Result<u128> {
    let mut hash = Xxh3Default::new();
    shared_memory::add(pid, &mut hash)?;
    connections::add(pid, &mut hash)?;
    Ok(hash.digest128())
}
