//! The files of a process, opened once and checked before any thread is stopped.
//!
//! The file that is mapped is read regardless of its owner, since the process itself executes it. A file found by name
//! is read only if it belongs to this user, to root, or to the owner of the mapped file.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::{major, minor};
use sdm_system::files;
use sdm_system::proc::{self, Mapping, Process};

use crate::sys;

/// A file mapped into memory.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    pub(crate) bytes: &'static [u8],
    owner: u32,
}

impl Opened {
    fn new(file: &File, found: &Metadata) -> io::Result<Self> {
        Ok(Self {
            bytes: sys::map_for_good(file)?,
            owner: found.uid(),
        })
    }

    /// Opens the file that a process has mapped: by its name below the directory `root`, or for the program itself by
    /// `/proc/PID/exe`.
    ///
    /// # Errors
    /// The file is gone, or another file has its name.
    pub(crate) fn mapped(process: &Process, root: &Path, mapping: &Mapping) -> io::Result<Self> {
        let path = mapping.file().ok_or(io::ErrorKind::NotFound)?;
        for path in [below(root, path), process.path("exe")] {
            let Ok(file) = files::open(&path) else {
                continue;
            };
            let found = file.metadata()?;
            if is_mapped(&found, mapping) {
                return Self::new(&file, &found);
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Code that the kernel provides without a file.
    pub(crate) fn of_kernel(bytes: &'static [u8]) -> Self {
        Self { bytes, owner: 0 }
    }

    /// Opens a file that accompanies this one, such as its separate debug information.
    ///
    /// # Errors
    /// There is no such file, it belongs to another user, or others than its owner may write to it.
    pub(crate) fn beside(&self, path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        let found = file.metadata()?;
        if files::others_may_write(&found) || !files::is_own(&found) && found.uid() != self.owner {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Self::new(&file, &found)
    }
}

/// User ids that processes run as, and owners of the files that they have mapped.
#[must_use]
pub fn owners(pids: &[i32]) -> BTreeSet<u32> {
    let mut owners = BTreeSet::new();
    for process in pids.iter().map(|pid| proc::of(*pid).living()) {
        let users = process.status().ok().and_then(|it| it.ids("Uid"));
        owners.extend(users.unwrap_or_default());
        let mappings = process.maps().unwrap_or_default();
        let executed = fs::metadata(process.path("exe")).ok();
        let mapped = mappings.iter().filter_map(|mapping| {
            // Another file with the same name does not count.
            let found = fs::metadata(process.inside(mapping.file()?)).ok()?;
            is_mapped(&found, mapping).then_some(found)
        });
        owners.extend(mapped.chain(executed).map(|found| found.uid()));
    }
    owners
}

/// The path by which this process reaches a path of another process with the root directory `root`.
pub(crate) fn below(root: &Path, path: &Path) -> std::path::PathBuf {
    match path.strip_prefix("/") {
        Ok(inner) => root.join(inner),
        Err(_) => path.to_owned(),
    }
}

/// The last component of a path, as text.
pub(crate) fn base_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// True if a file is the mapped one. On a file system with several subvolumes the kernel's device number differs from
/// that of `stat(2)`.
fn is_mapped(found: &Metadata, mapping: &Mapping) -> bool {
    let device = format!("{:02x}:{:02x}", major(found.dev()), minor(found.dev()));
    found.ino() == mapping.inode && (device == mapping.device || major(found.dev()) == 0)
}
