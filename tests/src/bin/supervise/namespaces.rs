//! Isolation of a test: pids, `/dev/shm` and a temporary folder of its own.
//!
//! PMIx tools find every server of a user, by the processes of the machine and by files below the temporary folder.
//! MPI names its shared memory after pids. In namespaces of its own a test sees its own processes only. The user
//! stays the same, so that all tests share the compiled programs, and a test may involve two users.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{getegid, geteuid};
use sdm_tests::service;

/// Programs whose tests have namespaces of their own, but for those that share a service.
const PROGRAMS: [&str; 2] = ["launchers-", "privileged-"];
/// Tests that search for the processes of the whole user, and so would find those of other tests.
const FINDING: [&str; 4] = ["openmpi5::", "pmix", "prte::", "editors::"];
/// Shell script that mounts file systems in the new namespace, then executes the program. Its arguments: the test's
/// folder, and the program with its arguments.
const MOUNTS: &str = r#"own=$1 && shift && mount -t tmpfs -o mode=0755 sdm "$own" &&
    mount -t tmpfs -o mode=1777 sdm /dev/shm && exec "$@""#;

/// Isolation of a test from others.
pub(crate) enum Apart {
    /// No isolation: other tests do not disturb it.
    No,
    /// Isolation by namespaces.
    Namespaces,
    /// Isolation by a lock for each user, where namespaces are not allowed.
    Lock(#[expect(dead_code, reason = "held until it is dropped")] Flock<File>),
}

impl Apart {
    /// The isolation that a test of a program needs, as far as it is possible here.
    ///
    /// # Errors
    /// The lock cannot be made.
    pub(crate) fn of(program: &Path, test: &str) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let Some(program) = PROGRAMS.iter().find(|it| name.starts_with(**it)) else {
            return Ok(Self::No);
        };
        // Its daemons were started by another test, or outlive this one.
        if *program == "privileged-" && service::may_be_used() {
            return Ok(Self::No);
        }
        if is_possible() {
            return Ok(Self::Namespaces);
        }
        if !FINDING.iter().any(|it| test.starts_with(it)) {
            return Ok(Self::No);
        }
        println!(
            "supervise: no namespaces can be had here: tests that find servers run one by one"
        );
        let path = std::env::temp_dir().join(format!("sdm-tests-{}.lock", geteuid()));
        let file = File::create(&path).with_context(|| format!("supervise: {}", path.display()))?;
        match Flock::lock(file, FlockArg::LockExclusive) {
            Ok(lock) => Ok(Self::Lock(lock)),
            Err((_, error)) => Err(error).context("supervise: wait for other tests"),
        }
    }
}

/// True if this user can create the namespaces here.
fn is_possible() -> bool {
    let mut tried = within(Path::new("/dev/shm"), "true".as_ref());
    tried.stdout(Stdio::null()).stderr(Stdio::null());
    tried.status().is_ok_and(|it| it.success())
}

/// A command that executes `program` as the first process of new namespaces, where the folder `own` is empty. The end
/// of the command kills the program.
pub(crate) fn within(own: &Path, program: &OsStr) -> Command {
    let is_root = geteuid().is_root();
    let mut command = Command::new("unshare");
    if !is_root {
        command.args(["--user", "--map-root-user"]);
    }
    command.args([
        "--mount",
        "--pid",
        "--ipc",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    command.args(["sh", "-c", MOUNTS, "sh"]).arg(own);
    if !is_root {
        // Mounting needs root in the namespace; the test itself keeps its user.
        let map = |option: &str, id: u32| OsString::from(format!("{option}={id}"));
        command.args(["unshare", "--user"]);
        command.arg(map("--map-user", geteuid().as_raw()));
        command.arg(map("--map-group", getegid().as_raw()));
    }
    command.arg(program);
    command
}
