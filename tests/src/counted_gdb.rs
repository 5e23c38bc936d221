//! A gdb that counts how often it is started.

use std::fs;
use std::path::PathBuf;

use crate::place::{Place, script};

/// A gdb for `--gdb` that counts its starts.
pub struct CountedGdb(PathBuf);

impl CountedGdb {
    /// The gdb of `PATH`, by a script in the test's folder.
    #[must_use]
    pub fn new(place: &Place) -> Self {
        let text = "echo >> \"$0.starts\"\nexec gdb \"$@\"";
        Self(script(place.path(), "counted-gdb", text))
    }

    /// Its path.
    ///
    /// # Panics
    /// If the test's folder has a name that is no text.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.to_str().expect("it is made of letters and digits")
    }

    /// The number of its starts.
    #[must_use]
    pub fn starts(&self) -> usize {
        let starts = self.0.with_extension("starts");
        fs::read_to_string(starts).map_or(0, |text| text.lines().count())
    }
}
