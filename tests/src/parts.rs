//! Real parts that tests start and stop: hosts in network namespaces, and a Slurm.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nix::fcntl::{Flock, FlockArg};

use crate::place::Place;

/// The folder of Open MPI 5, which `scripts/openmpi5` installs. Absent where it cannot be had: that is
/// said, and counted by `scripts/test`.
///
/// # Panics
/// Where the script cannot be run.
pub fn openmpi5() -> Option<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    installed(FOLDER.get_or_init(|| install("openmpi5")))
}

/// The folder of VS Code's client for tests, which `scripts/editors` installs. Absent where it cannot be had: that is said,
/// and counted by `scripts/test`.
///
/// # Panics
/// Where the script cannot be run.
pub fn editors() -> Option<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    installed(FOLDER.get_or_init(|| install("editors")))
}

/// What a script of `scripts/` has installed for this build, or why it has not.
fn install(name: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(script(name));
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

/// A gdb in the place that cannot write all registers, whatever processor this is; see `scripts/crippled-gdb`. Absent where
/// no gdb here is old enough: that is said, and counted by `scripts/test`.
///
/// # Panics
/// Where the script cannot be run.
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

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../scripts")
        .join(name)
}

/// Something that a script of `scripts/` starts and stops; one at a time on this machine.
pub struct Part {
    script: PathBuf,
    _lock: Flock<File>,
}

impl Part {
    /// Four hosts, 10.77.0.1 to 10.77.0.4, called h1 to h4; see `scripts/netns-hosts`.
    #[must_use]
    pub fn hosts() -> Option<Self> {
        Self::start("netns-hosts", &["ip", "ssh", "/usr/sbin/sshd"])
    }

    /// A Slurm with the nodes n1 to n4; see `scripts/slurm`.
    #[must_use]
    pub fn slurm() -> Option<Self> {
        let tools = [
            "srun",
            "/usr/sbin/slurmd",
            "/usr/sbin/slurmctld",
            "/usr/sbin/munged",
        ];
        Self::start("slurm", &tools)
    }

    /// A Grid Engine in namespaces of its own; see `scripts/gridengine`.
    #[must_use]
    pub fn gridengine() -> Option<Self> {
        let tools = ["qstat", "/usr/sbin/sge_qmaster", "/usr/sbin/sge_execd"];
        Self::start("gridengine", &tools)
    }

    /// Absent where this machine cannot have it: that is said, and counted by `scripts/test`.
    ///
    /// # Panics
    /// Where it could, and does not start.
    fn start(name: &str, tools: &[&str]) -> Option<Self> {
        let lacking = tools.iter().find(|tool| !is_there(tool));
        if let Some(tool) = lacking {
            println!("SKIP: {name}: no {tool}: run scripts/install-deps");
            return None;
        }
        if !nix::unistd::geteuid().is_root() {
            println!("SKIP: {name}: this is not root");
            return None;
        }
        // One for all tests of this machine, which have temporary folders of their own.
        let path = Path::new("/run").join(format!("sdm-{name}.lock"));
        let file = File::create(path).expect("a lock file");
        let lock = Flock::lock(file, FlockArg::LockExclusive);
        let (_lock, script) = match lock {
            Ok(lock) => (lock, script(name)),
            Err((_, error)) => panic!("lock {name}: {error}"),
        };
        let status = Command::new(&script).args(["start", "4"]).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "scripts/{name} start"
        );
        Some(Self { script, _lock })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = Command::new(&self.script).arg("stop").status();
    }
}

fn is_there(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    Path::new(tool).is_absolute() && Path::new(tool).exists()
        || folders.any(|folder| folder.join(tool).is_file())
}
