//! The folder of a server's files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};
use nix::libc::{O_DIRECTORY, O_NOFOLLOW};
use nix::unistd::geteuid;
use sdm_foreign::HostJob;
use sdm_foreign::wire::FOLDER_PREFIX;
use sdm_hosts::pmix::server_of;
use sdm_text::printable_name;

/// A folder of this process's own, which is removed at the end.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// The lock of the folder, held as long as this process runs. `None` on file systems that lock no folders: there no
    /// server removes the folder of another.
    _lock: Option<Flock<File>>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Processes may have left files there; a file that cannot be removed stays.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Folder {
    /// Makes the folder of a job, and removes those of servers that were killed. Several nodes may share the file system
    /// with such folders.
    pub(super) fn make(job: &HostJob) -> Result<Self> {
        let path = job.folder();
        if let Some(above) = path.parent() {
            remove_left_over(above);
        }
        loop {
            // This fails where a file of this name exists, whoever owns it.
            let made = fs::DirBuilder::new().mode(0o700).create(&path);
            made.with_context(|| format!("cannot create the folder {}", printable_name(&path)))?;
            let lock = match open(&path) {
                Ok(folder) => Flock::lock(folder, FlockArg::LockExclusive).ok(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let what = || format!("cannot open the new folder {}", printable_name(&path));
                    return Err(error).with_context(what);
                }
            };
            // Another server may have taken it for a left-over one before it was locked.
            let is_there = |lock: &Flock<File>| lock.metadata().is_ok_and(|it| it.nlink() > 0);
            if lock.as_ref().is_none_or(is_there) {
                return Ok(Self { path, _lock: lock });
            }
        }
    }
}

fn open(folder: &Path) -> io::Result<File> {
    let flags = O_DIRECTORY | O_NOFOLLOW;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(folder)
}

/// Removes folders of this user whose servers were killed. A folder that cannot be read or removed stays.
fn remove_left_over(above: &Path) {
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name
            .as_encoded_bytes()
            .starts_with(FOLDER_PREFIX.as_bytes())
        {
            let path = entry.path();
            let _lock = is_left_over(&path).inspect(|_| drop(fs::remove_dir_all(&path)));
        }
    }
}

/// Takes the lock of a folder whose server has ended; `None` if a server uses the folder, or another user owns it.
/// Servers of versions of SDM without a lock are known by the files that their libraries have written.
fn is_left_over(path: &Path) -> Option<Flock<File>> {
    let folder = open(path).ok()?;
    let is_own = folder.metadata().ok()?.uid() == geteuid().as_raw();
    let lock = Flock::lock(folder, FlockArg::LockExclusiveNonblock).ok()?;
    let mut files = fs::read_dir(path).ok()?.flatten();
    let is_used = files.any(|file| server_of(&file.path()).is_ok());
    (is_own && !is_used).then_some(lock)
}
