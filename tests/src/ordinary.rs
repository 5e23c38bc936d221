//! An ordinary user, as whom tests run `sdm`.
//!
//! A test that root runs, since only root can do its set-up, starts everything else as this user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;

use crate::place::{Compiler, Place};
use crate::sdm::Sdm;

/// User id of `nobody`, which every machine has and under which root runs programs. The group has the same number.
pub const USER: u32 = 65534;

/// Makes a command run as the ordinary user where this process is root.
pub fn lower(command: &mut Command) -> &mut Command {
    if geteuid().is_root() {
        // Further groups go with the user id.
        command.uid(USER).gid(USER);
    }
    command
}

/// Makes the ordinary user the owner of a file or folder of root's.
///
/// # Panics
/// If root cannot.
pub fn give(path: &Path) {
    if geteuid().is_root() {
        chown(path, Some(USER), Some(USER)).expect("root gives its own away");
    }
}

/// A folder of the ordinary user's, which no other user can read.
fn own_folder(place: &Place, name: &str) -> std::path::PathBuf {
    let path = place.path().join(name);
    fs::create_dir_all(&path).expect("a folder in the place");
    give(&path);
    let _ = fs::set_permissions(&path, Permissions::from_mode(0o700));
    path
}

/// `sdm run -n COUNT`, with a home and a temporary folder of its own.
#[must_use]
pub fn run(place: &Place, count: u32) -> Sdm<'_> {
    Sdm::run(place, count)
        .env("HOME", own_folder(place, "home"))
        .env("TMPDIR", own_folder(place, "tmp"))
        .without("XDG_RUNTIME_DIR")
}

/// Two programs make one job, each with its arguments.
///
/// # Panics
/// If they do not.
pub fn several_programs_run(launcher: &str, compiler: Compiler, variables: &[(&str, &str)]) {
    let place = Place::new();
    let programs = ["work", "numbers"].map(|name| place.compile(name, compiler));
    let mut sdm = run(&place, 1);
    for (name, value) in variables {
        sdm = sdm.env(name, value);
    }
    let second = programs[1].to_str().expect("text");
    let done = sdm
        .args(["--launcher", launcher])
        .lines(&["where", "continue"])
        .program(&programs[0], &["one word", ":", "-n", "1", second])
        .finish()
        .code(0);
    done.expect_part("where", "rank 0:\n#0  main (argc=2,");
    done.expect_part("where", ") at work.c:");
    done.expect_part("where", "rank 1:\n#0  main () at numbers.c:");
    let end = "ranks 0-1 (2): exited normally\n";
    assert!(done.united().contains(end), "{launcher}: {done}");
}
