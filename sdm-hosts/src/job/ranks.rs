//! Ranks, as runtimes put them into the environment of what they start.

use std::collections::BTreeMap;
use std::path::Path;

use sdm_system::identity::Identity;

use super::processes::{Environment, Processes};
use super::{HELPERS, JobError};

/// Processes that a runtime gave a rank.
pub(super) struct Ranked {
    /// Each with its rank, by rising rank.
    pub(super) pids: Vec<(u32, i32)>,
    /// How many ranks there are, on other hosts too, where the runtime says so.
    pub(super) size: Option<u32>,
}

/// The processes below `starter` that a runtime gave a rank, topmost ones only.
///
/// A variable that the starter has itself says nothing: `mpiexec` in a batch script of Slurm
/// inherits the script's `SLURM_PROCID=0`.
///
/// # Errors
/// Two processes of one rank: more than one job runs below the starter.
pub(super) fn below(processes: &Processes, starter: i32) -> Result<Ranked, JobError> {
    let mut size = None;
    let inherited = processes.environment(starter);
    let mut found: BTreeMap<u32, i32> = BTreeMap::new();
    let mut open: Vec<i32> = processes.children(starter).map(|it| it.pid).collect();
    while let Some(pid) = open.pop() {
        let Some(process) = processes.get(pid) else {
            continue;
        };
        let own = processes.environment(pid);
        let found_one = identity(&own, &inherited).filter(|_| !process.is_called_any(HELPERS));
        let Some(Identity {
            server: rank,
            size: of,
            ..
        }) = found_one
        else {
            open.extend(processes.children(pid).map(|it| it.pid));
            continue;
        };
        size = size.max(of);
        if let Some(other) = found.insert(rank, pid) {
            return Err(JobError::SameRank {
                starter,
                rank,
                pids: (other.min(pid), other.max(pid)),
            });
        }
    }
    let pids = found.into_iter().collect();
    Ok(Ranked { pids, size })
}

/// The ranks of these processes, where each has one and no two have the same.
pub(super) fn of(processes: &Processes, pids: &[i32]) -> Option<Vec<u32>> {
    let none = Environment::default();
    let rank = |pid: &i32| Some(identity(&processes.environment(*pid), &none)?.server);
    let ranks: Vec<u32> = pids.iter().map(rank).collect::<Option<_>>()?;
    let mut distinct = ranks.clone();
    distinct.sort_unstable();
    distinct.dedup();
    (distinct.len() == ranks.len()).then_some(ranks)
}

/// How many ranks the job of a process of this machine has, on other hosts too, where the runtime says so.
#[must_use]
pub fn size_of(pid: i32) -> Option<u32> {
    let processes = Processes::read(Path::new("/proc")).ok()?;
    identity(&processes.environment(pid), &Environment::default())?.size
}

fn identity(own: &Environment, inherited: &Environment) -> Option<Identity> {
    let lookup = |name: &str| {
        let value = own.get(name)?;
        inherited.get(name).is_none().then(|| value.to_owned())
    };
    // Variables that hold nonsense are no rank either.
    Identity::from_env(lookup, None).ok()
}
