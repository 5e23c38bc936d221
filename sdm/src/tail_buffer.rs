//! A buffer for the end of a program's output.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

/// Reads a stream until its end, and keeps the last `bytes_max` bytes.
pub(crate) fn keep_end(mut stream: impl Read, kept: &Mutex<Vec<u8>>, bytes_max: usize) {
    let mut piece = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..count]);
        let more = kept.len().saturating_sub(bytes_max);
        kept.drain(..more);
    }
}
