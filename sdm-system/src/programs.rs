//! Where the project's own programs are.

use std::path::{Path, PathBuf};

use crate::files;

/// Where cargo puts test programs: what they test is one folder above.
const OF_TESTS: &str = "deps";

/// The program `name` in the folder `first`, beside the program that runs, one folder above it where that is a
/// test's, or on `PATH`.
#[must_use]
pub fn own_program(name: &str, first: Option<&Path>) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    // Anybody may be able to write above a folder that is somebody's own.
    let of_tests = beside.filter(|folder| folder.ends_with(OF_TESTS));
    let above = of_tests.and_then(Path::parent);
    let folders = [first, beside, above].into_iter().flatten();
    folders
        .map(Path::to_owned)
        .chain(std::env::split_paths(&files::search_path()))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
