//! Whether this machine has room for what is to be started: said before it starts, with the figure
//! that would be needed.

use sdm_text::printable_name;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use sdm_system::proc;

use crate::LaunchError;

/// Descriptors that a process of ours has besides those that are counted.
const DESCRIPTORS_SPARE: u64 = 64;
/// What the kernel keeps of its process ids after they have come around once.
const PIDS_RESERVED: u64 = 300;

/// The limit of descriptors that this process was started with, where it has been raised.
static DESCRIPTORS_BEFORE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// The limit that a child finds again: soft and hard.
pub(crate) fn descriptors_of_children() -> Option<(rlim_t, rlim_t)> {
    DESCRIPTORS_BEFORE.get().copied()
}

/// How many descriptors this process can open beside those it has, its limit raised as far as
/// that is allowed.
pub(crate) fn descriptors_left() -> u64 {
    let open = descriptors_open();
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return u64::MAX;
    };
    hard.max(soft).saturating_sub(open + DESCRIPTORS_SPARE)
}

fn descriptors_open() -> u64 {
    proc::own()
        .descriptor_count()
        .map_or(0, |count| count as u64)
}

/// Raises this process's limit so that it can open `count` descriptors more. Those that it starts
/// from here find the limit that it had before.
///
/// # Errors
/// The limit does not allow it; the error says what would be needed.
pub fn reserve_descriptors(count: u64, who: &str) -> Result<(), LaunchError> {
    let open = descriptors_open();
    let needed = count + open + DESCRIPTORS_SPARE;
    let io = |source: io::Error| LaunchError::Limits { source };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| io(error.into()))?;
    if needed <= soft {
        return Ok(());
    }
    // More than the hard limit is for root only.
    let raised = setrlimit(Resource::RLIMIT_NOFILE, needed, hard.max(needed));
    if raised.is_err() {
        return Err(LaunchError::Descriptors {
            who: who.to_owned(),
            needed,
            allowed: hard,
        });
    }
    DESCRIPTORS_BEFORE.get_or_init(|| (soft, hard));
    Ok(())
}

/// Checks that another process of this machine, which finds the limit that this one was started
/// with, can open `count` descriptors; `raised` where it raises its limit itself.
///
/// # Errors
/// The limit does not allow it; the error says what would be needed.
pub fn check_descriptors_of(who: &str, count: u64, raised: bool) -> Result<(), LaunchError> {
    let now = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| LaunchError::Limits {
        source: error.into(),
    })?;
    let (soft, hard) = descriptors_of_children().unwrap_or(now);
    let allowed = if raised { hard } else { soft };
    let needed = count + DESCRIPTORS_SPARE;
    if needed <= allowed {
        return Ok(());
    }
    Err(LaunchError::Descriptors {
        who: who.to_owned(),
        needed,
        allowed,
    })
}

/// Checks that `count` processes more can be started.
///
/// # Errors
/// A limit of the system that does not allow it, and what would be needed.
pub(crate) fn check_processes(count: u64) -> Result<(), LaunchError> {
    for (limit, max, used) in process_limits() {
        if used + count > max {
            return Err(LaunchError::Processes {
                count,
                limit,
                allowed: max,
                needed: used + count,
            });
        }
    }
    Ok(())
}

/// Every limit of processes that holds here: its name, how many there may be, how many there are.
fn process_limits() -> Vec<(String, u64, u64)> {
    let mut limits = Vec::new();
    let all = all_threads();
    for (name, reserved) in [("pid_max", PIDS_RESERVED), ("threads-max", 0)] {
        let max = proc::of_machine(&format!("sys/kernel/{name}")).ok();
        if let Some(max) = max.and_then(|text| text.trim().parse().ok()) {
            limits.push((format!("kernel.{name}"), max, all + reserved));
        }
    }
    // The kernel holds root to no number of processes.
    if !nix::unistd::geteuid().is_root()
        && let Ok((max, _)) = getrlimit(Resource::RLIMIT_NPROC)
        && max != nix::libc::RLIM_INFINITY
    {
        limits.push(("ulimit -u".to_owned(), max, own_threads()));
    }
    let groups = proc::of_machine("self/cgroup").unwrap_or_default();
    for group in groups.lines().filter_map(cgroup_of_pids) {
        let below = Path::new("/sys/fs/cgroup");
        for folder in Path::new(&group).ancestors().take_while(|it| *it != below) {
            let (max, used) = (folder.join("pids.max"), folder.join("pids.current"));
            if let (Some(max), Some(used)) = (number_in(&max), number_in(&used)) {
                limits.push((printable_name(folder.join("pids.max")), max, used));
            }
        }
    }
    limits
}

/// The folder that a line of `/proc/self/cgroup` names, where it may bound processes:
/// `0::/user.slice` or `8:pids:/user.slice`.
fn cgroup_of_pids(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(':')?;
    match rest.split_once(':')? {
        ("", path) => Some(format!("/sys/fs/cgroup{path}")),
        (controllers, path) if controllers.split(',').any(|it| it == "pids") => {
            Some(format!("/sys/fs/cgroup/{controllers}{path}"))
        }
        _ => None,
    }
}

/// A number that a file of the kernel holds; `max` is none.
fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// All threads of this machine: the number behind the slash of `/proc/loadavg`.
fn all_threads() -> u64 {
    let text = proc::of_machine("loadavg").unwrap_or_default();
    let field = text.split_whitespace().nth(3);
    let total = field.and_then(|it| it.split_once('/')?.1.parse().ok());
    total.unwrap_or(0)
}

/// The threads of this user.
fn own_threads() -> u64 {
    let own = nix::unistd::getuid().as_raw();
    let pids = proc::pids().into_iter().flatten();
    let statuses = pids.filter_map(|pid| proc::of(pid).status().ok());
    statuses
        .filter(|status| status.ids("Uid").is_some_and(|ids| ids[0] == own))
        .filter_map(|status| status.number::<u64>("Threads"))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_refused_with_what_would_be_needed() {
        let error = check_processes(1 << 40).unwrap_err().to_string();
        assert!(error.contains("1099511627776 processes"), "{error}");
        assert!(error.contains("would be needed"), "{error}");
        let error = reserve_descriptors(1 << 40, "sdm").unwrap_err().to_string();
        assert!(error.contains("file descriptors"), "{error}");
        assert!(error.contains("ulimit -n"), "{error}");
        check_processes(1).unwrap();
    }

    #[test]
    fn groups_that_bound_processes() {
        let check = |line, expect: Option<&str>| {
            assert_eq!(cgroup_of_pids(line).as_deref(), expect, "{line}");
        };
        check("0::/a/b", Some("/sys/fs/cgroup/a/b"));
        check("8:pids:/a", Some("/sys/fs/cgroup/pids/a"));
        check("4:memory:/a", None);
        check("", None);
    }
}
