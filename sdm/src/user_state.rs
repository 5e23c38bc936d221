//! Files that are kept between runs, in the user's state directory.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sdm_system::files;

/// The file name of the prompt's history.
pub(crate) const HISTORY: &str = "history";
/// Maximum size of a file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 10;

/// The directory `sdm` in `$XDG_STATE_HOME` or, without this variable, `~/.local/state/sdm`; created if missing. None
/// if it cannot be created, or if it does not belong to this user alone.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(set("HOME")?));
    let (base, below) = match set("XDG_STATE_HOME") {
        Some(state) => (PathBuf::from(state), "sdm"),
        None => (home()?, ".local/state/sdm"),
    };
    made(&base, below)
}

/// Creates the directory `below` in a directory of the user. None if others could write to it, or on failure.
fn made(base: &Path, below: &str) -> Option<PathBuf> {
    // Under sudo this may be another user's home, whose entries may be links to anywhere.
    let is_mine = |folder: &Path| {
        let found = std::fs::metadata(folder);
        found.is_ok_and(|it| it.uid() == nix::unistd::geteuid().as_raw() && it.mode() & 0o002 == 0)
    };
    let directory = base.join(below);
    if !base.exists() {
        std::fs::create_dir_all(base).ok()?;
    }
    if !is_mine(base) {
        return None;
    }
    // A new account has none of these folders.
    let above = directory.parent()?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(above).ok()?;
    // Agents keep their jobs in this folder, and refuse a folder that other users can read.
    if files::private_folder(&directory).is_err() && is_mine(&directory) {
        let alone = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&directory, alone).ok()?;
    }
    files::private_folder(&directory).ok()?;
    Some(directory)
}

/// Reads a kept text by its name. Empty if there is none.
pub(crate) fn read(name: &str) -> String {
    let text = folder().and_then(|folder| {
        let file = files::open_own(&folder.join(name)).ok()?;
        files::text_of(file, BYTES_MAX).ok()
    });
    text.unwrap_or_default()
}

/// Keeps a text under a name. Errors are ignored.
pub(crate) fn write(name: &str, text: &str) {
    if let Some(folder) = folder() {
        let _ = files::replace(&folder.join(name), text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_folder_is_created_but_not_in_a_home_open_to_others() {
        let home = std::env::temp_dir().join(format!("sdm-remembered-{}", std::process::id()));
        std::fs::create_dir(&home).unwrap();
        let folder = made(&home, ".local/state/sdm").unwrap();
        assert!(folder.is_dir());
        assert_eq!(made(&home, ".local/state/sdm"), Some(folder));
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&home, open).unwrap();
        assert_eq!(made(&home, ".local/state/sdm"), None, "others can write");
        std::fs::remove_dir_all(&home).unwrap();
    }
}
