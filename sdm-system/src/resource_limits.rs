//! Limits on the number of processes and on the memory, for this process and the processes that it starts.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sdm_text::printable_name;

use crate::proc;

/// Number of process ids that the kernel does not give again after a wrap-around.
const PIDS_RESERVED: u64 = 300;
/// Directory of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// A limit, with the present use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Name of the limit.
    pub by: String,
    /// Maximum amount.
    pub max: u64,
    /// Amount in use.
    pub used: u64,
}

/// All limits on the number of processes that apply here.
#[must_use]
pub fn of_processes() -> Vec<Bound> {
    let mut bounds = Vec::new();
    let all = all_threads();
    for (name, reserved) in [("pid_max", PIDS_RESERVED), ("threads-max", 0)] {
        let max = proc::of_machine(&format!("sys/kernel/{name}")).ok();
        if let Some(max) = max.and_then(|text| text.trim().parse().ok()) {
            let (by, used) = (format!("kernel.{name}"), all + reserved);
            bounds.push(Bound { by, max, used });
        }
    }
    // The kernel does not limit root's number of processes.
    if !nix::unistd::geteuid().is_root()
        && let Ok((max, _)) = getrlimit(Resource::RLIMIT_NPROC)
        && max != nix::libc::RLIM_INFINITY
    {
        let (by, used) = ("ulimit -u".to_owned(), own_threads());
        bounds.push(Bound { by, max, used });
    }
    bounds.extend(of_groups("pids", ["pids.max", "pids.current"]));
    bounds
}

/// Every memory limit that control groups set for this process, in bytes.
#[must_use]
pub fn of_memory() -> Vec<Bound> {
    of_groups("memory", ["memory.max", "memory.current"])
}

/// The most memory that processes started here can use, in bytes, and the limit that determines it; `None` if
/// unknown.
#[must_use]
pub fn most_memory() -> Option<(u64, String)> {
    let text = proc::of_machine("meminfo").unwrap_or_default();
    let machine = available(&text).map(|bytes| (bytes, "MemAvailable".to_owned()));
    // A part of a group's memory is file cache that it can release. So only the group's limit counts, not its present
    // use.
    let groups = of_memory().into_iter().map(|it| (it.max, it.by));
    groups.chain(machine).min()
}

fn available(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// Limits of this process's control groups and of their parents.
fn of_groups(controller: &str, [max_file, used_file]: [&str; 2]) -> Vec<Bound> {
    let groups = proc::of_machine("self/cgroup").unwrap_or_default();
    let mut bounds = Vec::new();
    for group in groups.lines().filter_map(|it| group_of(it, controller)) {
        let below = Path::new(GROUPS);
        for folder in group.ancestors().take_while(|it| *it != below) {
            let file = folder.join(max_file);
            if let (Some(max), Some(used)) = (number_in(&file), number_in(&folder.join(used_file)))
            {
                let by = printable_name(file);
                bounds.push(Bound { by, max, used });
            }
        }
    }
    bounds
}

/// The directory that a line of `/proc/self/cgroup` names: `0::/user.slice` or `8:pids:/user.slice`. `None` if the line
/// is not about this controller.
fn group_of(line: &str, controller: &str) -> Option<PathBuf> {
    let (_, rest) = line.split_once(':')?;
    match rest.split_once(':')? {
        ("", path) => Some(format!("{GROUPS}{path}").into()),
        (controllers, path) if controllers.split(',').any(|it| it == controller) => {
            Some(format!("{GROUPS}/{controllers}{path}").into())
        }
        _ => None,
    }
}

/// The number in a file of the kernel; `None` for any other content, such as `max`.
fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Number of all threads on this machine, from `/proc/loadavg` after the slash.
fn all_threads() -> u64 {
    let text = proc::of_machine("loadavg").unwrap_or_default();
    let field = text.split_whitespace().nth(3);
    let total = field.and_then(|it| it.split_once('/')?.1.parse().ok());
    total.unwrap_or(0)
}

/// Number of threads of this user.
fn own_threads() -> u64 {
    let own = nix::unistd::getuid().as_raw();
    let pids = proc::pids().into_iter().flatten();
    let statuses = pids.filter_map(|pid| proc::of(pid).status().ok());
    statuses
        .filter(|status| status.ids("Uid").is_some_and(|ids| ids[0] == own))
        .filter_map(|status| status.number::<u64>("Threads"))
        .sum()
}

/// Raises this process's limit of open files to the hard limit. Programs that it starts inherit the limit. After a
/// failure later opens fail with an error of their own.
///
/// # Errors
/// The kernel refuses it.
pub fn raise_open_files() -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_path_is_read_from_proc() {
        let check = |line, expect: Option<&str>| {
            assert_eq!(
                group_of(line, "pids").as_deref(),
                expect.map(Path::new),
                "{line}"
            );
        };
        check("0::/a/b", Some("/sys/fs/cgroup/a/b"));
        check("8:pids:/a", Some("/sys/fs/cgroup/pids/a"));
        check("4:memory:/a", None);
        check("", None);
    }

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal: 9999 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert_eq!(available("MemAvailable: 99999999999999999999 kB"), None);
        assert_eq!(available(""), None);
        assert!(most_memory().is_some_and(|(bytes, _)| bytes > 0));
    }

    #[test]
    fn process_limit_is_always_known() {
        let bounds = of_processes();
        assert!(
            bounds.iter().any(|it| it.by == "kernel.pid_max"),
            "{bounds:?}"
        );
        assert!(bounds.iter().all(|it| it.used > 0), "{bounds:?}");
    }
}
