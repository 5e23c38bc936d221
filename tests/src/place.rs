//! A folder for one test: its programs are in it, and all processes of its sessions have its name in their command
//! line or environment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub use crate::fixture::Compiler;
use crate::run::until;
use crate::{fixture, leftovers, processes};

/// Environment variable with the name of a test's folder, by which the processes of the test are found.
pub const MARK_VARIABLE: &str = "SDM_TEST_PLACE";

/// Writes a shell script into a folder; returns its path.
///
/// # Panics
/// If the script cannot be written.
pub fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("there is room");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
    path
}

/// A separate folder under the temporary one. Drop removes it.
pub struct Place {
    directory: PathBuf,
}

impl Place {
    /// A new place.
    ///
    /// # Panics
    /// If the folder cannot be created.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sdm-e2e-{}-{count}-", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a folder for the test");
        let runtime = directory.join("run");
        fs::create_dir_all(&runtime).expect("a folder for the test");
        fs::set_permissions(&runtime, Permissions::from_mode(0o700)).expect("it is ours");
        crate::ordinary::give(&directory);
        Self { directory }
    }

    /// The folder that replaces `$XDG_RUNTIME_DIR` for the programs of the test.
    #[must_use]
    pub fn runtime(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// A text that all processes of its sessions have in their environment or command line.
    #[must_use]
    pub fn mark(&self) -> &str {
        let name = self.directory.file_name().and_then(|name| name.to_str());
        name.expect("it is made of letters and digits")
    }

    /// Compiles the fixture `NAME` into the folder.
    ///
    /// # Panics
    /// If that fails; a missing compiler is named.
    #[must_use]
    pub fn compile(&self, name: &str, compiler: Compiler) -> PathBuf {
        self.compile_with(name, compiler, &["-g"])
    }

    /// As [`Place::compile`], with these compiler options in place of `-g`.
    ///
    /// # Panics
    /// If that fails; a missing compiler is named.
    #[must_use]
    pub fn compile_with(&self, name: &str, compiler: Compiler, options: &[&str]) -> PathBuf {
        let program = self.directory.join(name);
        fixture::compile(compiler, name, options, &program);
        program
    }

    /// The number of the first line of `tests/fixtures/NAME` that contains `text`.
    ///
    /// # Panics
    /// If no line contains the text.
    #[must_use]
    pub fn line(name: &str, text: &str) -> usize {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let source = fs::read_to_string(fixtures.join(name)).expect("a fixture");
        let place = source.lines().position(|line| line.contains(text));
        place.unwrap_or_else(|| panic!("no {text:?} in {name}")) + 1
    }

    /// Checks that no process of its sessions is left.
    ///
    /// # Panics
    /// If a process is still left after [`leftovers::GONE_WITHIN`].
    pub fn assert_gone(&self) {
        leftovers::assert_gone(self.mark());
    }

    /// The Unix process ids of its processes whose command line holds `part`.
    #[must_use]
    pub fn pids(&self, part: &str) -> Vec<u32> {
        let mut held = leftovers::holding(self.mark());
        held.retain(|(_, line)| line.contains(part));
        held.into_iter().map(|(pid, _)| pid).collect()
    }

    /// Waits until `count` of the place's processes with the program name `name` run, and all others are stopped.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn wait_running(&self, name: &str, count: usize) {
        let stands = |pid: u32| {
            let state = processes::of(pid).state();
            state.is_some_and(|it| "tT".contains(it.0))
        };
        until("as many run as are meant to", || {
            let held = leftovers::holding(self.mark()).into_iter();
            let called: Vec<u32> = held
                .map(|(pid, _)| pid)
                .filter(|pid| processes::name(*pid) == name)
                .collect();
            let standing = called.iter().filter(|pid| stands(**pid)).count();
            called.len() == standing + count
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A left-over folder under /tmp is harmless.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
