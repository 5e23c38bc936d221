//! Programs under test, compiled once for all runs of all tests as long as their source stays as it is.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use xxhash_rust::xxh3::Xxh3;

/// Compiler of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// C, without MPI.
    C,
    /// musl in place of the system's C library, no MPI.
    Musl,
    /// C++, no MPI.
    Cxx,
    /// C++ with Open MPI.
    CxxOpenMpi,
    /// C++ with MPICH.
    CxxMpich,
    /// Fortran, no MPI.
    Fortran,
    /// Fortran with Open MPI.
    FortranOpenMpi,
    /// Fortran with MPICH.
    FortranMpich,
    /// C with Open MPI.
    OpenMpi,
    /// C with Open MPI 5, which [`crate::parts::openmpi5`] has installed.
    OpenMpi5,
    /// C with MPICH.
    Mpich,
}

impl Compiler {
    fn command(self) -> PathBuf {
        match self {
            Self::C => "cc".into(),
            Self::Musl => "musl-gcc".into(),
            Self::Cxx => "c++".into(),
            Self::CxxOpenMpi => "mpicxx.openmpi".into(),
            Self::CxxMpich => "mpicxx.mpich".into(),
            Self::Fortran => "gfortran".into(),
            Self::FortranOpenMpi => "mpif90.openmpi".into(),
            Self::FortranMpich => "mpif90.mpich".into(),
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
            Self::Cxx | Self::CxxOpenMpi | Self::CxxMpich => "cc",
            Self::Fortran | Self::FortranOpenMpi | Self::FortranMpich => "f90",
            Self::C | Self::Musl | Self::OpenMpi | Self::OpenMpi5 | Self::Mpich => "c",
        }
    }
}

/// Compiles `tests/fixtures/NAME` and copies the result to `program`. An equal compilation of an earlier test is
/// reused.
///
/// # Panics
/// If that fails; a missing compiler is named.
pub fn compile(compiler: Compiler, name: &str, options: &[&str], program: &Path) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut source = fixtures.join(name);
    if source.extension().is_none() {
        source.set_extension(compiler.extension());
    }
    let text = fs::read(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let command = compiler.command();
    let mut key = Xxh3::new();
    for part in [
        text.as_slice(),
        source.as_os_str().as_encoded_bytes(),
        command.as_os_str().as_encoded_bytes(),
        options.join("\0").as_bytes(),
    ] {
        key.update(&part.len().to_le_bytes());
        key.update(part);
    }
    let kept = kept_in().join(format!("{name}-{:032x}", key.digest128()));
    if !kept.is_file() {
        // Another test that compiles the same program replaces it by an equal one. Two of the tests may have the same
        // pid.
        let own = kept.with_extension("XXXXXX");
        let own = nix::unistd::mkdtemp(&own).expect("a folder to compile in");
        run(&command, &source, options, &own, name);
        fs::rename(own.join(name), &kept).expect("it was compiled");
        let _ = fs::remove_dir_all(&own);
    }
    fs::copy(&kept, program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
}

/// A private folder of this user as the cache of `sdm`'s compiled files. All tests share it, so that a file is
/// compiled once for a program.
///
/// # Panics
/// If the folder cannot be made.
#[must_use]
pub fn cache() -> PathBuf {
    let folder = kept_in().join(format!("cache-{}", nix::unistd::geteuid()));
    let _ = fs::create_dir_all(&folder);
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    fs::set_permissions(&folder, mode).expect("it is ours");
    folder
}

/// Folder of compiled programs: below `target`, or the temporary folder where this user may not write there.
fn kept_in() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let target = test
        .ancestors()
        .nth(3)
        .expect("tests live in target/PROFILE/deps");
    let folder = target.join("fixtures");
    let _ = fs::create_dir_all(&folder);
    match nix::unistd::access(&folder, nix::unistd::AccessFlags::W_OK) {
        Ok(()) => folder,
        Err(_) => std::env::temp_dir(),
    }
}

fn run(compiler: &Path, source: &Path, options: &[&str], folder: &Path, name: &str) {
    let mut command = Command::new(compiler);
    command
        .args(["-O0", "-pthread", "-o"])
        .arg(folder.join(name))
        .arg(source)
        .args(options)
        .args(["-lm"])
        // Where Fortran writes its modules.
        .current_dir(folder);
    match command.output() {
        Ok(done) => assert!(
            done.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&done.stderr)
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!(
                "{} is missing: run scripts/install-deps",
                compiler.display()
            )
        }
        Err(error) => panic!("{}: {error}", compiler.display()),
    }
}
