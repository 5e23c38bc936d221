//! A library that SDM loads into its gdbs. System calls that a gdb makes wrongly are corrected before the kernel sees them.
//!
//! Registers: gdb 13 and older keep the extended registers of x86-64 in 2696 bytes. With AMX the kernel has 11008 of
//! them and accepts them only as a whole, so that such a gdb can write none: `Couldn't write extended state status:
//! Bad address`. This library's [`ptrace`] precedes the C library's. Each request is passed on unchanged. If the
//! kernel refuses a partial write (`EFAULT`) it reads the whole, overlays the part, and writes the whole.
//!
//! Files: while a process is stopped, an attaching gdb opens files by names that come from programs and libraries, or
//! that a replaced program once had. A FIFO there, or a file on which its owner holds a lease, would block gdb and
//! keep the process stopped. So this library's `open` and its variants precede the C library's too. Each file is
//! first examined by a descriptor that opens nothing (`O_PATH`), and opened only if it is harmless ([`opens`]).
//!
//! In the workspace this is an ordinary library, for its tests. The preloaded one is built from the same source by a
//! build script with `--cfg preload`. It is a shared object of a few kilobytes without dependencies. So it works with
//! any C library, and in every program that a wrapper of gdb runs on the way to gdb.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![cfg_attr(preload, no_std)]

pub mod opens;
mod sys;

pub use sys::{ptrace, room::MappedMemory};

/// Initial room for all registers, in bytes: enough for present processors.
const ROOM_BYTES: usize = 16 << 10;
/// Upper limit of a processor's register size, in bytes.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// The extended registers of one thread, in the kernel's format.
pub trait Registers {
    /// Copies the registers, as far as they fit. Returns the number of bytes copied; `None` if the kernel refuses.
    fn read(&mut self, into: &mut [u8]) -> Option<usize>;
    /// Writes all registers; false if the kernel refuses.
    fn write(&mut self, whole: &mut [u8]) -> bool;
}

/// Replaces the first bytes of the registers by `part`, and writes them as a whole. Returns whether the kernel
/// accepted them. `None` if `part` is not shorter than the whole, or if the registers cannot be read.
pub fn complete(part: &[u8], registers: &mut impl Registers) -> Option<bool> {
    let mut bytes = ROOM_BYTES;
    while bytes <= ROOM_BYTES_MAX {
        let mut room = MappedMemory::new(bytes)?;
        let count = registers.read(&mut room)?;
        // If the buffer was filled completely, it may have been too small.
        if count < bytes {
            let whole = room.get_mut(..count).filter(|_| part.len() < count)?;
            whole.get_mut(..part.len())?.copy_from_slice(part);
            return Some(registers.write(whole));
        }
        bytes *= 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor with registers of this size.
    struct Processor {
        bytes: Vec<u8>,
        writes: usize,
    }

    impl Processor {
        fn new(bytes: usize) -> Self {
            let bytes = (0..bytes).map(|at| u8::try_from(at % 251).unwrap());
            Self {
                bytes: bytes.collect(),
                writes: 0,
            }
        }
    }

    impl Registers for Processor {
        fn read(&mut self, into: &mut [u8]) -> Option<usize> {
            let count = self.bytes.len().min(into.len());
            into[..count].copy_from_slice(&self.bytes[..count]);
            Some(count)
        }

        fn write(&mut self, whole: &mut [u8]) -> bool {
            self.writes += 1;
            let is_whole = whole.len() == self.bytes.len();
            if is_whole {
                self.bytes.copy_from_slice(whole);
            }
            is_whole
        }
    }

    #[test]
    fn partial_register_state_overlays_the_whole_state() {
        for bytes in [11008, ROOM_BYTES - 1, ROOM_BYTES, ROOM_BYTES + 1, 300_000] {
            let mut processor = Processor::new(bytes);
            let before = processor.bytes.clone();
            assert_eq!(
                complete(&[255; 2696], &mut processor),
                Some(true),
                "{bytes}"
            );
            assert_eq!(processor.bytes[..2696], [255; 2696]);
            assert_eq!(processor.bytes[2696..], before[2696..]);
            assert_eq!(processor.writes, 1);
        }
    }

    #[test]
    fn invalid_partial_register_state_is_not_written() {
        for (registers, part) in [
            (2696, 2696),
            (832, 2696),
            (0, 0),
            (2 * ROOM_BYTES_MAX, 2696),
        ] {
            let mut processor = Processor::new(registers);
            assert_eq!(
                complete(&vec![1; part], &mut processor),
                None,
                "{registers}"
            );
            assert_eq!(processor.writes, 0);
        }
    }

    #[test]
    fn register_write_refused_by_the_kernel_fails() {
        struct Gone;
        impl Registers for Gone {
            fn read(&mut self, _: &mut [u8]) -> Option<usize> {
                None
            }
            fn write(&mut self, _: &mut [u8]) -> bool {
                true
            }
        }
        assert_eq!(complete(&[0; 8], &mut Gone), None);
        struct Sealed;
        impl Registers for Sealed {
            fn read(&mut self, _: &mut [u8]) -> Option<usize> {
                Some(16)
            }
            fn write(&mut self, _: &mut [u8]) -> bool {
                false
            }
        }
        assert_eq!(complete(&[0; 8], &mut Sealed), Some(false));
    }
}
