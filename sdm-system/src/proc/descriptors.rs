//! The descriptors of a process.

use std::path::PathBuf;
use std::{fs, io};

use super::{Process, Status, TEXT_BYTES_MAX, pids_in, read, text};

impl Process {
    /// The file of a descriptor of the process, as the kernel names it: a path, or `pipe:[4711]`.
    ///
    /// # Errors
    /// [`io::Error`] if the process has no such descriptor, or it may not be read.
    pub fn descriptor(&self, number: u64) -> io::Result<PathBuf> {
        fs::read_link(self.path(&format!("fd/{number}")))
    }

    /// The inode number of the socket behind a descriptor, as in the kernel's socket tables; `None` if the descriptor
    /// is no socket or cannot be read.
    #[must_use]
    pub fn socket(&self, number: u64) -> Option<u64> {
        let name = self.descriptor(number).ok()?;
        let socket = name.to_str()?.strip_prefix("socket:[")?;
        socket.strip_suffix(']')?.parse().ok()
    }

    /// The numbers of the process's descriptors, in no order.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or may not be inspected.
    pub fn descriptors(&self) -> io::Result<impl Iterator<Item = i32> + use<>> {
        pids_in(&self.path("fd"))
    }

    /// The flags with which a descriptor was opened, as in `open(2)`; `None` if they cannot be read.
    #[must_use]
    pub fn descriptor_flags(&self, number: u64) -> Option<u32> {
        let path = self.path(&format!("fdinfo/{number}"));
        let status = Status::parse(&text(read(&path, TEXT_BYTES_MAX).ok()?));
        u32::from_str_radix(status.field("flags")?, 8).ok()
    }
}
