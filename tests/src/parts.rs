//! Real software for tests: an Open MPI 5, VS Code's client and an old gdb. [`Part`] is a service that tests share:
//! hosts, a Slurm or a Grid Engine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::place::Place;
pub use crate::service::Part;

/// The folder of Open MPI 5, which `scripts/openmpi5` installs. `None` if that is impossible: the reason is
/// printed, and `scripts/test` counts it.
///
/// # Panics
/// If the script cannot be run.
pub fn openmpi5() -> Option<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    installed(FOLDER.get_or_init(|| install("openmpi5", &[])))
}

/// The folder of npm packages that `scripts/editors` installs: `testsupport` or `code-server`. `None` if that is
/// impossible: the reason is printed, and `scripts/test` counts it.
///
/// # Panics
/// If the script cannot be run.
#[must_use]
pub fn editors(name: &str) -> Option<PathBuf> {
    installed(&install("editors", &[name]))
}

/// The path of software that a script of `scripts/` has installed for this build, or the reason why there is none.
fn install(name: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let mut command = Command::new(script(name));
    command.args(arguments);
    // Where this build is, as the script sees it.
    let target = crate::binaries::folder().join("..");
    command.env(
        "CARGO_TARGET_DIR",
        target.canonicalize().expect("it is there"),
    );
    let output = command.output().expect("the script runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(PathBuf::from(text(&output.stdout))),
        _ => Err(text(&output.stderr)),
    }
}

fn installed(installed: &Result<PathBuf, String>) -> Option<PathBuf> {
    match installed {
        Ok(folder) => Some(folder.clone()),
        Err(why) => {
            println!("SKIP: {why}");
            None
        }
    }
}

/// A gdb in the place that cannot write all registers, whatever this processor is; see `scripts/crippled-gdb`.
/// `None` if no gdb here is old enough: the reason is printed, and `scripts/test` counts it.
///
/// # Panics
/// If the script cannot be run.
pub fn crippled_gdb(place: &Place, options: &[&str]) -> Option<PathBuf> {
    let folder = place.path().join("crippled");
    let mut command = Command::new(script("crippled-gdb"));
    let output = command.args(options).arg(&folder).output();
    let output = output.expect("the script runs");
    if output.status.success() {
        return Some(folder.join("gdb"));
    }
    println!("SKIP: {}", String::from_utf8_lossy(&output.stderr).trim());
    None
}

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../scripts")
        .join(name)
}
