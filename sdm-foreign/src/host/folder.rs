//! The folder of a server's files.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use sdm_foreign::HostJob;

/// A folder of this process's own, which is removed at the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Processes may have left files there; a file that cannot be removed stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Makes the folder of a job. Several nodes may share the file system with such folders.
    pub(super) fn make(job: &HostJob) -> Result<Self> {
        let path = job.folder();
        // This fails where a file of this name exists, whoever owns it.
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("make the folder {}", sdm_text::printable_name(&path)))?;
        Ok(Self(path))
    }
}
