//! The copied program file of a staged server.

use std::path::PathBuf;

/// The copied program file that this process runs. It is removed when no further process needs it, at the
/// latest on drop.
#[derive(Debug, Default)]
pub(crate) struct Copy(Option<PathBuf>);

impl Copy {
    /// The program file of this process, if it is a copy.
    pub(crate) fn of_this(is_copy: bool) -> Self {
        Self(is_copy.then(std::env::current_exe).and_then(Result::ok))
    }

    /// Removes the file. Running processes are not affected.
    pub(crate) fn remove(&mut self) {
        if let Some(path) = self.0.take() {
            // Another server of this host may have been first.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.remove();
    }
}
