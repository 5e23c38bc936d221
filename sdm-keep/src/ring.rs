//! A bounded ring of the program's output, for later terminals.

use std::collections::VecDeque;

/// The last bytes of a stream, and the position up to which they were shown.
pub(crate) struct Ring {
    bytes: VecDeque<u8>,
    /// Capacity of the ring, in bytes.
    bytes_max: usize,
    /// Number of bytes printed in all.
    end: u64,
    /// Number of bytes that a terminal has shown.
    shown: u64,
}

impl Ring {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            bytes_max,
            end: 0,
            shown: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(self.bytes_max)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(self.bytes_max);
        self.bytes.drain(..over);
        // Automatic doubling would exceed the limit, and a ring eventually uses its whole capacity.
        let (len, room) = (self.bytes.len(), self.bytes.capacity());
        if len + bytes.len() > room {
            let room = (2 * room).clamp(len + bytes.len(), self.bytes_max);
            self.bytes.reserve_exact(room - len);
        }
        self.bytes.extend(bytes);
    }

    /// Records that a terminal has shown the output up to byte `at`, or a note that it was dropped.
    pub(crate) fn set_shown(&mut self, at: u64) {
        self.shown = self.shown.max(at.min(self.end));
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    fn start(&self) -> u64 {
        self.end - self.bytes.len() as u64
    }

    /// For a new terminal: the number of bytes that are lost, and the position from which to show. An
    /// unfinished line (a prompt) is shown from its start; nothing before it is shown again.
    pub(crate) fn resume(&self) -> (u64, u64) {
        let dropped = self.start().saturating_sub(self.shown);
        let next = self.shown + dropped;
        let seen = usize::try_from(next - self.start()).expect("kept in memory");
        let begun = self.bytes.range(..seen).rev().take_while(|b| **b != b'\n');
        (dropped, next - begun.count() as u64)
    }

    /// The number of bytes that were dropped since position `at`, and up to `max` bytes from there on. `at` comes from
    /// [`Ring::resume`] or from an earlier call.
    pub(crate) fn read(&self, at: u64, max: usize) -> (u64, Vec<u8>) {
        let dropped = self.start().saturating_sub(at);
        let from = usize::try_from(at + dropped - self.start()).expect("kept in memory");
        let to = (from + max).min(self.bytes.len());
        (dropped, self.bytes.range(from..to).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING_BYTES_MAX: usize = 1 << 20;

    #[test]
    fn reattached_terminal_shows_again_only_the_unfinished_line() {
        let mut ring = Ring::new(RING_BYTES_MAX);
        ring.push(b"one\n(sdm) ");
        assert_eq!(ring.resume(), (0, 0));
        ring.set_shown(10);
        assert_eq!(ring.resume(), (0, 4));
        assert_eq!(ring.read(4, 100), (0, b"(sdm) ".to_vec()));
        ring.push(b"c\ntwo\n");
        assert_eq!(ring.resume(), (0, 4));
        assert_eq!(ring.read(4, 8), (0, b"(sdm) c\n".to_vec()));
        assert_eq!(ring.read(12, 8), (0, b"two\n".to_vec()));
        ring.set_shown(u64::MAX);
        assert_eq!(ring.end(), 16);
        assert_eq!(ring.resume(), (0, 16));
    }

    #[test]
    fn dropped_bytes_are_counted() {
        let mut ring = Ring::new(RING_BYTES_MAX);
        ring.push(b"12345");
        ring.set_shown(3);
        ring.push(&vec![b'x'; RING_BYTES_MAX]);
        assert_eq!(ring.resume(), (2, 5));
        assert_eq!(ring.read(5, 2), (0, b"xx".to_vec()));
        ring.push(&vec![b'y'; 2 * RING_BYTES_MAX]);
        assert_eq!(ring.bytes.len(), RING_BYTES_MAX);
        let dropped = 2 * RING_BYTES_MAX as u64;
        assert_eq!(ring.read(5, 1), (dropped, b"y".to_vec()));
    }

    #[test]
    fn ring_memory_is_bounded() {
        let mut ring = Ring::new(RING_BYTES_MAX);
        for length in (1..).map(|n| 77 * n % 32_768).take(1000) {
            ring.push(&vec![b'x'; length]);
        }
        assert_eq!(ring.bytes.len(), RING_BYTES_MAX);
        assert!(ring.bytes.capacity() <= RING_BYTES_MAX);
    }
}
