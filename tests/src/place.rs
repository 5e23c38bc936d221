//! A folder for one test: its programs lie in it, and all processes of its sessions bear its name.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::leftovers;

/// The variable by which processes bear the name.
pub const MARK_VARIABLE: &str = "SDM_TEST_PLACE";

/// A folder of its own under the temporary one; goes when it is dropped.
pub struct Place {
    directory: PathBuf,
}

/// Who compiles a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// No MPI.
    C,
    /// C++, no MPI.
    Cxx,
    /// Fortran, no MPI.
    Fortran,
    /// Open MPI.
    OpenMpi,
    /// Open MPI 5, which [`crate::parts::openmpi5`] has installed.
    OpenMpi5,
    /// MPICH.
    Mpich,
}

impl Compiler {
    fn command(self) -> PathBuf {
        match self {
            Self::C => "cc".into(),
            Self::Cxx => "c++".into(),
            Self::Fortran => "gfortran".into(),
            Self::OpenMpi => "mpicc.openmpi".into(),
            Self::OpenMpi5 => {
                let folder = crate::parts::openmpi5();
                folder.expect("the test has asked for it").join("bin/mpicc")
            }
            Self::Mpich => "mpicc.mpich".into(),
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Cxx => "cc",
            Self::Fortran => "f90",
            Self::C | Self::OpenMpi | Self::OpenMpi5 | Self::Mpich => "c",
        }
    }
}

impl Place {
    /// A new one.
    ///
    /// # Panics
    /// Where there can be none.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sdm-e2e-{}-{count}-", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a folder for the test");
        Self { directory }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// What all processes of its sessions have in their environment or command line.
    #[must_use]
    pub fn mark(&self) -> &str {
        let name = self.directory.file_name().and_then(|name| name.to_str());
        name.expect("it is made of letters and digits")
    }

    /// Compiles the fixture `NAME` into the folder.
    ///
    /// # Panics
    /// Where that fails; a missing compiler is named.
    #[must_use]
    pub fn compile(&self, name: &str, compiler: Compiler) -> PathBuf {
        self.compile_with(name, compiler, &["-g"])
    }

    /// The same with options of its own.
    ///
    /// # Panics
    /// Where that fails; a missing compiler is named.
    #[must_use]
    pub fn compile_with(&self, name: &str, compiler: Compiler, options: &[&str]) -> PathBuf {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let program = self.directory.join(name);
        let mut command = Command::new(compiler.command());
        command.args(["-O0", "-pthread", "-o"]).arg(&program);
        command
            .arg(fixtures.join(name).with_extension(compiler.extension()))
            .args(options)
            .args(["-lm"])
            // Where Fortran writes its modules.
            .current_dir(&self.directory);
        match command.output() {
            Ok(done) => assert!(
                done.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&done.stderr)
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let name = compiler.command();
                panic!("{} is missing: run scripts/install-deps", name.display())
            }
            Err(error) => panic!("{}: {error}", compiler.command().display()),
        }
        program
    }

    /// The number of the line of `tests/fixtures/NAME.c` that holds `text`.
    ///
    /// # Panics
    /// Where none does.
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
    /// Where one still is after ten seconds.
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
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder under /tmp that stays is no harm.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
