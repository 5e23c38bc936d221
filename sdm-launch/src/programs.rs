//! Where the project's own programs are.

use std::path::{Path, PathBuf};

/// The program `name` in the folder `first`, beside the program that runs, one folder above it (where
/// test programs have it), or on `PATH`.
#[must_use]
pub fn own_program(name: &str, first: Option<&Path>) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let above = beside.and_then(Path::parent);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [first, beside, above].into_iter().flatten();
    folders
        .map(Path::to_owned)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
