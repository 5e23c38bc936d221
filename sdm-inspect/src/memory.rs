//! The trait for reading the memory of a process.

/// The memory of a process.
pub trait Memory {
    /// Fills `to` from an address; `None` if not all of it can be read.
    fn read(&self, address: u64, to: &mut [u8]) -> Option<()>;
}

/// The 8-byte number at an address; `None` if it cannot be read.
pub(crate) fn read_u64(memory: &dyn Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(address, &mut bytes)?;
    Some(u64::from_ne_bytes(bytes))
}
