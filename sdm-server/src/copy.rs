//! A program that was copied here for one session.

use std::path::PathBuf;

/// The copy that this process runs; it goes when nobody is to start it any more, at the latest with this.
#[derive(Debug, Default)]
pub(crate) struct Copy(Option<PathBuf>);

impl Copy {
    /// This process's program, where it is one.
    pub(crate) fn of_this(is_copy: bool) -> Self {
        Self(is_copy.then(std::env::current_exe).and_then(Result::ok))
    }

    /// Removes it; who runs it runs on.
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
