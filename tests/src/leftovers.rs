//! Search for processes that a session has left over.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use sdm_system::proc;

use crate::processes;

/// Time limit for the processes of a killed session to end: three times the promised ten seconds, as the
/// machine that runs the tests is a busy one.
pub const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Environment variable with the pid of the `supervise` process, which adopts a test's orphans. Unset where a test runs
/// without it.
pub const SUPERVISOR_VARIABLE: &str = "SDM_TEST_SUPERVISOR";

/// Every process with `mark` in its command line or environment, except this one: pid and command
/// line. Zombies do not count: they are left to their parent.
///
/// An ordinary user cannot read the environment of a member, as members are not dumpable. So the descendants of
/// this test count as marked. The result is complete where the test runs under its supervisor, in a process for
/// each test.
#[must_use]
pub fn holding(mark: &str) -> Vec<(u32, String)> {
    let own = std::process::id();
    let below = descendants_living(supervisor());
    all_pids()
        .filter(|pid| *pid != own)
        .filter_map(|pid| held_by(pid, mark, &below))
        .collect()
}

/// The pid of this test's supervisor, or of this process without one: all its descendants belong to this test.
fn supervisor() -> u32 {
    let told = std::env::var(SUPERVISOR_VARIABLE).ok();
    told.and_then(|pid| pid.parse().ok())
        .unwrap_or_else(std::process::id)
}

/// Pids of all descendants of `root` that are no zombies.
#[must_use]
pub fn descendants_living(root: u32) -> Vec<u32> {
    let below = processes::below(root).into_iter();
    let living = below.filter(|(_, state)| !state.has_ended());
    living.map(|(pid, _)| pid).collect()
}

/// A process in words: pid, state, parent, name and command line.
#[must_use]
pub fn named(pid: u32) -> String {
    let process = processes::of(pid);
    let read = |name: &str| std::fs::read(process.path(name)).unwrap_or_default();
    let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
    let stat = String::from_utf8_lossy(&read("stat")).into_owned();
    let stat: Vec<&str> = stat.split_whitespace().take(4).collect();
    format!("{} {line}", stat.join(" "))
}

/// Every process of this machine.
pub fn all_pids() -> impl Iterator<Item = u32> {
    let pids = proc::pids().into_iter().flatten();
    pids.map(i32::cast_unsigned)
}

/// The children of this process, zombies included: pid and name.
#[must_use]
pub fn children() -> Vec<(u32, String)> {
    let own = std::process::id();
    all_pids()
        .filter_map(|pid| {
            let stat = processes::of(pid).stat().ok()?;
            (stat.parent() == Some(own.cast_signed())).then_some((pid, stat.name))
        })
        .collect()
}

fn held_by(pid: u32, mark: &str, below: &[u32]) -> Option<(u32, String)> {
    let process = processes::of(pid);
    let read = |name: &str| std::fs::read(process.path(name));
    let line = read("cmdline").unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let holds = line.contains(mark)
        || match read("environ") {
            Ok(environment) => environment
                .windows(mark.len())
                .any(|window| window == mark.as_bytes()),
            Err(error) => error.kind() == ErrorKind::PermissionDenied && below.contains(&pid),
        };
    holds.then_some((pid, line))
}

/// Waits until no process holds `mark`.
///
/// # Panics
/// If some still do after [`GONE_WITHIN`]; it names them.
pub fn assert_gone(mark: &str) {
    assert_none_left(|| holding(mark));
}

/// Waits until this process has no children, not even unreaped ones; for failed starts, whose session has
/// no known name.
///
/// # Panics
/// If some are there after [`GONE_WITHIN`]; it names them.
pub fn assert_childless() {
    assert_none_left(children);
}

/// Waits until `look` returns an empty list.
///
/// # Panics
/// If it still returns processes after [`GONE_WITHIN`]; it names them.
pub fn assert_none_left(look: impl Fn() -> Vec<(u32, String)>) {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let left = look();
        if left.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "left behind after {GONE_WITHIN:?}: {left:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
