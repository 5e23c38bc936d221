//! Places where the session's key can be fetched while the session starts: they go with whatever ends this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files, and the folders behind what lies in them.
static PLACES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn places() -> MutexGuard<'static, Vec<PathBuf>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To be called before something is made there.
pub(super) fn remember(path: &Path) {
    places().push(path.to_owned());
}

/// Removes what is there: files, sockets and empty folders, the last one that was made first.
pub(super) fn withdraw(paths: &[&Path]) {
    for path in paths {
        remove(path);
    }
    places().retain(|known| !paths.contains(&known.as_path()));
}

/// Removes everything that is left, and lets nothing more be made: to be called by whoever ends this process
/// without an end of the session.
pub fn withdraw_all() {
    let places = places();
    for path in places.iter().rev() {
        remove(path);
    }
    // Whoever comes now waits for the end.
    std::mem::forget(places);
}

fn remove(path: &Path) {
    // It may be gone already, or never have been made.
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
}
