//! Processes that a session may have left behind.

use std::time::{Duration, Instant};

/// How long what was killed from outside may take to be gone.
pub const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Every process whose command line or environment holds `mark`, but this one: pid and command
/// line. Zombies are not counted: their parent's business.
#[must_use]
pub fn holding(mark: &str) -> Vec<(u32, String)> {
    let own = std::process::id();
    all_pids()
        .filter(|pid| *pid != own)
        .filter_map(|pid| held_by(pid, mark))
        .collect()
}

/// Every process of this machine.
pub fn all_pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

/// The children of this process, zombies included: pid and name.
#[must_use]
pub fn children() -> Vec<(u32, String)> {
    let own = std::process::id();
    all_pids()
        .filter_map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (head, tail) = stat.rsplit_once(')')?;
            let parent = tail.split_whitespace().nth(1)?.parse::<u32>().ok()?;
            let name = head.split_once('(')?.1.to_owned();
            (parent == own).then_some((pid, name))
        })
        .collect()
}

fn held_by(pid: u32, mark: &str) -> Option<(u32, String)> {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
    let environment = read("environ");
    let holds = line.contains(mark)
        || environment
            .windows(mark.len())
            .any(|window| window == mark.as_bytes());
    holds.then_some((pid, line))
}

/// Waits until no process holds `mark`.
///
/// # Panics
/// Where some still do after [`GONE_WITHIN`]; it names them.
pub fn assert_gone(mark: &str) {
    assert_none_left(|| holding(mark));
}

/// Waits until this process has no children, not even unreaped ones; for failed starts, of which
/// nobody knows the session's name.
///
/// # Panics
/// Where some are there after [`GONE_WITHIN`]; it names them.
pub fn assert_childless() {
    assert_none_left(children);
}

/// Waits until `look` finds nothing any more.
///
/// # Panics
/// Where it still finds something after [`GONE_WITHIN`]; it names them.
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
