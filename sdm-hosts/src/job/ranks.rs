//! Ranks that runtimes set in the environment of their processes, and the jobs of these ranks.

use std::collections::BTreeMap;
use std::path::Path;

use sdm_system::launcher_env::Identity;

use super::processes::{Environment, Process, Processes};
use super::{HELPERS, JobError, STARTERS};

/// A process's rank in a job, from the environment that a runtime has given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EnvironmentRank {
    pub(super) rank: u32,
    size: Option<u32>,
    /// Identifier of the job among the jobs of the same runtime.
    pub(super) job: String,
    /// True if the runtime is that of an MPI library.
    pub(super) is_of_mpi: bool,
}

/// Processes to which a runtime has given ranks.
pub(super) struct Ranked {
    /// Pairs of rank and pid, by rising rank.
    pub(super) pids: Vec<(u32, i32)>,
    /// Number of ranks on all hosts; `None` if the runtime does not give it.
    pub(super) size: Option<u32>,
    /// Pids of later jobs' processes, which the ranks in `pids` have spawned.
    pub(super) spawned: Vec<i32>,
}

/// The processes below `starter` that a runtime gave a rank, topmost ones only. Of several jobs of one launcher the
/// oldest is taken: its ranks have started the others.
///
/// A variable that the launcher has itself does not count: `mpiexec` in a batch script of Slurm
/// inherits the script's `SLURM_PROCID=0`.
///
/// # Errors
/// Two processes of one rank: more than one job runs below a process that is not a launcher.
pub(super) fn below(processes: &Processes, starter: i32) -> Result<Ranked, JobError> {
    let inherited = processes.environment(starter);
    let mut found: Vec<(i32, EnvironmentRank)> = Vec::new();
    let mut open: Vec<i32> = processes.children(starter).map(|it| it.pid).collect();
    while let Some(pid) = open.pop() {
        let Some(process) = processes.get(pid) else {
            continue;
        };
        let given = given(processes, pid, &inherited);
        match given.filter(|_| !process.is_called_any(HELPERS)) {
            Some(given) => found.push((pid, given)),
            None => open.extend(processes.children(pid).map(|it| it.pid)),
        }
    }
    let mut spawned = Vec::new();
    if processes.get(starter).is_some_and(is_starter) {
        let age = |pid: i32| (processes.get(pid).map(|it| it.began), pid);
        let first = found.iter().min_by_key(|(pid, _)| age(*pid));
        let first = first.map(|(_, given)| given.job.clone());
        let is_later = |(_, given): &mut (i32, EnvironmentRank)| Some(&given.job) != first.as_ref();
        spawned = found.extract_if(.., is_later).map(|(pid, _)| pid).collect();
        spawned.sort_unstable();
    }
    let size = found.iter().filter_map(|(_, given)| given.size).max();
    let mut ranks: BTreeMap<u32, i32> = BTreeMap::new();
    for (pid, EnvironmentRank { rank, .. }) in found {
        if let Some(other) = ranks.insert(rank, pid) {
            return Err(JobError::SameRank {
                starter,
                rank,
                pids: (other.min(pid), other.max(pid)),
            });
        }
    }
    let pids = ranks.into_iter().collect();
    Ok(Ranked {
        pids,
        size,
        spawned,
    })
}

fn is_starter(process: &Process) -> bool {
    process.is_called_any(STARTERS)
}

/// Processes by job, each with its rank; and the processes without a rank.
#[derive(Debug, Default)]
pub(super) struct ByJob {
    pub(super) jobs: BTreeMap<String, Vec<(u32, i32)>>,
    pub(super) unranked: Vec<i32>,
}

impl ByJob {
    pub(super) fn of(processes: &Processes, pids: &[i32]) -> Self {
        let mut found = Self::default();
        for pid in pids {
            match given(processes, *pid, &Environment::default()) {
                Some(EnvironmentRank { rank, job, .. }) => {
                    found.jobs.entry(job).or_default().push((rank, *pid));
                }
                None => found.unranked.push(*pid),
            }
        }
        for ranks in found.jobs.values_mut() {
            ranks.sort_unstable();
        }
        found
    }

    /// The processes of the job by rising rank, if all are ranks of one job and no two have the same rank; else `None`.
    pub(super) fn only(&self) -> Option<&[(u32, i32)]> {
        let ranks = self.jobs.values().next()?;
        let is_one = self.jobs.len() == 1 && self.unranked.is_empty();
        let is_distinct = ranks.windows(2).all(|pair| pair[0].0 != pair[1].0);
        (is_one && is_distinct).then_some(ranks)
    }
}

/// Number of ranks, on all hosts, of the job to which a process of this machine belongs. `None` if the process has no
/// rank, or the runtime does not give the number.
#[must_use]
pub fn size_of(pid: i32) -> Option<u32> {
    let processes = Processes::read(Path::new("/proc")).ok()?;
    given(&processes, pid, &Environment::default())?.size
}

/// The rank of a process from its environment; `None` if it has none. Variables in `inherited`, the environment of the
/// launcher, do not count.
pub(super) fn given(
    processes: &Processes,
    pid: i32,
    inherited: &Environment,
) -> Option<EnvironmentRank> {
    let own = processes.environment(pid);
    let identity = identity(&own, inherited)?;
    let text = |name: &str| Some(own.get(name)?.to_string_lossy().into_owned());
    let step = |job| Some(format!("Slurm {}.{}", text(job)?, text("SLURM_STEP_ID")?));
    let told = match identity.source {
        "OMPI_COMM_WORLD_RANK" | "PMIX_RANK" => {
            text("PMIX_NAMESPACE").or_else(|| text("OMPI_MCA_ess_base_jobid"))
        }
        "PMI_RANK" => step("PMI_JOBID"),
        "SLURM_PROCID" => step("SLURM_JOB_ID"),
        _ => None,
    };
    let job = told.unwrap_or_else(|| above(processes, pid, &identity));
    Some(EnvironmentRank {
        rank: identity.server,
        size: identity.size,
        job,
        is_of_mpi: !matches!(identity.source, "SLURM_PROCID" | "RANK"),
    })
}

/// A name for a job that the runtime does not name: the pid of the nearest ancestor without the same rank.
fn above(processes: &Processes, pid: i32, own: &Identity) -> String {
    let mut at = pid;
    while let Some(parent) = processes.get(at).map(|it| it.parent) {
        let of_parent = processes.environment(parent);
        let is_same = identity(&of_parent, &Environment::default()).as_ref() == Some(own);
        if !is_same || parent == at {
            return format!("below {parent}");
        }
        at = parent;
    }
    format!("below {at}")
}

fn identity(own: &Environment, inherited: &Environment) -> Option<Identity> {
    let lookup = |name: &str| {
        let value = own.get(name)?;
        inherited.get(name).is_none().then(|| value.to_owned())
    };
    // Variables with malformed values give no rank.
    Identity::from_env(lookup, None).ok()
}
