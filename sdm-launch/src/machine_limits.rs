//! Checks before the start that this machine has room for the processes, memory and descriptors, and raises the
//! descriptor limit of this process. Errors give the number that would be needed.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use sdm_system::proc;
use sdm_system::resource_limits::{self, Bound};

use crate::{LaunchError, LaunchSpec};

/// Number of descriptors that a process of SDM has besides the counted ones.
const DESCRIPTORS_SPARE: u64 = 64;

/// The descriptor limit with which this process was started, soft and hard, if it was raised since.
static DESCRIPTORS_BEFORE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// The soft and hard limit of descriptors that started processes get; `None` if this process has not raised its own.
pub(crate) fn descriptors_of_children() -> Option<(rlim_t, rlim_t)> {
    DESCRIPTORS_BEFORE.get().copied()
}

/// Number of further descriptors that this process can open after it has raised its limit as far as allowed.
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

/// Raises this process's limit so that it can open `count` more descriptors. Processes that this crate starts still get
/// the limit that this process had before.
///
/// # Errors
/// The limit cannot be raised so far; the error gives the limit that would be needed.
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

/// Checks that another process on this machine can open `count` descriptors. It gets the limit that this process was
/// started with. `raised` says that the other process raises its soft limit itself.
///
/// # Errors
/// The limit does not allow so many descriptors; the error gives the limit that would be needed.
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

/// Checks that this machine has room for the processes, and for the memory of all that will be started on it.
///
/// # Errors
/// A limit of the system does not allow what will be started; the error gives the limit that would be needed.
pub(crate) fn check_room(spec: &LaunchSpec) -> Result<(), LaunchError> {
    check_processes(spec.processes)?;
    check_memory(spec.memory)
}

/// Checks that this machine has `needed` bytes of memory, and that the limits of this process allow them.
fn check_memory(needed: u64) -> Result<(), LaunchError> {
    match resource_limits::most_memory() {
        Some((allowed, limit)) if needed > allowed => Err(LaunchError::Memory {
            needed: needed >> 20,
            limit,
            allowed: allowed >> 20,
        }),
        _ => Ok(()),
    }
}

/// Checks that `count` more processes can be started.
fn check_processes(count: u64) -> Result<(), LaunchError> {
    for Bound { by, max, used } in resource_limits::of_processes() {
        if used + count > max {
            return Err(LaunchError::Processes {
                count,
                limit: by,
                allowed: max,
                needed: used + count,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_demand_is_refused_with_the_needed_amount() {
        let error = check_processes(1 << 40).unwrap_err().to_string();
        assert!(error.contains("for 1099511627776 more"), "{error}");
        assert!(error.contains("are needed"), "{error}");
        let error = reserve_descriptors(1 << 40, "sdm").unwrap_err().to_string();
        assert!(error.contains("file descriptors"), "{error}");
        assert!(error.contains("ulimit -n"), "{error}");
        check_processes(1).unwrap();
        let error = check_memory(1 << 60).unwrap_err().to_string();
        assert!(error.contains("1099511627776 MiB of memory"), "{error}");
        assert!(error.contains("MemAvailable"), "{error}");
        check_memory(0).unwrap();
    }
}
