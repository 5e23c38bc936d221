//! Running jobs: the host and the process of each rank.
//!
//! A [`Target`] is the user's name for a job; [`find`] looks the job up on this machine. The search reads process
//! tables from a launcher's memory, and the rest from `/proc`. If that does not suffice, it queries PMIx servers,
//! Slurm, or other hosts by `ssh`. It changes nothing. It stops a process only if gdb must read the table.

mod access;
pub mod core_file;
mod error;
mod gdb;
mod hold_state;
mod hosts;
mod hydra;
mod launcher;
mod mpir;
mod packed;
mod pmix;
mod processes;
mod ranks;
mod remote_ranks;
mod slurm;
mod target;
mod wrappers;

use std::collections::BTreeSet;
use std::path::Path;

pub use access::{Access, Obstacle, obstacles};
pub use error::JobError;
pub use hold_state::{HeldRanks, StoppedAt};
pub use hosts::{is_host, is_this_host};
pub(crate) use mpir::fuzz_mpir;
pub use pmix::{PmixError, STARTING};
pub(crate) use pmix::{has_pmix, helper as pmix_helper};
use processes::{Process, Processes};
pub use ranks::size_of;
use sdm_text::printable_name;
pub use target::Target;

/// Maximum number of processes that a job can have.
pub const PROCESSES_MAX: u32 = 4 << 20;

/// Maximum number of a job's processes that an error message lists.
const SHOWN_MAX: usize = 4;

/// Program names of launchers. A search by program name finds no launchers, unless it names one.
const STARTERS: &[&str] = &[
    "mpiexec",
    "mpiexec.hydra",
    "mpiexec.mpich",
    "mpiexec.openmpi",
    "mpirun",
    "mpirun.mpich",
    "mpirun.openmpi",
    "orterun",
    "prte",
    "prterun",
    "srun",
];

/// Programs between a launcher and its ranks, and programs of a debugger.
const HELPERS: &[&str] = &[
    "gdb",
    "hydra_bstrap_proxy",
    "hydra_pmi_proxy",
    "orted",
    "prted",
    "sdm",
    "sdm-master",
    "sdm-server",
    "slurmstepd",
];

/// One process of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProcess {
    /// Rank of the process in the job; its index in the list if it has no rank.
    pub rank: u32,
    /// Name of the process's host as the source reports it; empty for this machine.
    pub host: String,
    /// The program that the process runs; empty if unknown.
    pub program: String,
    /// Pid of the process on its host.
    pub pid: i32,
}

/// A running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Source of the list of processes, for the user: `the process table of mpirun (pid 4711)`.
    pub source: String,
    /// Processes of the job, by rising rank.
    pub processes: Vec<JobProcess>,
    /// True if the ranks were assigned by a runtime, such as MPI or Slurm; false if they are indices in the list.
    pub ranked: bool,
    /// Slurm's `JOB.STEP` if this user's `srun` or Slurm itself reported the job; otherwise `None`.
    pub slurm: Option<String>,
    /// A sentence about processes that could not be found or must not be used, with the reason; `None` if there are
    /// none.
    pub incomplete: Option<String>,
    /// Further sentences for the user about the search.
    pub notes: Vec<String>,
}

/// Looks up a job on this machine.
///
/// # Errors
/// No such process, or no suitable one; the error gives advice.
pub fn find(target: &Target) -> Result<Job, JobError> {
    find_in(Path::new("/proc"), target)
}

/// A launcher to whose job a user can attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachable {
    /// The pid of the launcher.
    pub pid: i32,
    /// Command line of the launcher, as text for the user.
    pub line: String,
}

/// Launchers of this user's jobs on this machine, by rising pid. Launchers below a debugger are left out: their jobs
/// are debugged already. So are launchers below another launcher, or below a helper such as `slurmstepd`.
///
/// # Errors
/// The processes cannot be listed.
pub fn attachable() -> Result<Vec<Attachable>, JobError> {
    attachable_in(Path::new("/proc"), nix::unistd::geteuid().as_raw())
}

fn attachable_in(proc: &Path, uid: u32) -> Result<Vec<Attachable>, JobError> {
    let processes = Processes::read(proc).map_err(|source| JobError::Proc { source })?;
    let is_starter = |process: &&Process| process.is_of(uid) && process.is_called_any(STARTERS);
    let is_free = |process: &&Process| {
        let above = processes.ancestors(process.pid);
        let mut above = processes.all().filter(|it| above.contains(&it.pid));
        // A launcher's own helper is no separate job.
        above.all(|it| it.pid == process.pid || !(is_starter(&it) || it.is_called_any(HELPERS)))
    };
    let found = processes.all().filter(is_starter).filter(is_free);
    let mut found: Vec<_> = found
        .map(|process| Attachable {
            pid: process.pid,
            line: sdm_text::printable(process.words().join(" ").as_bytes()),
        })
        .collect();
    found.sort_by_key(|job| job.pid);
    Ok(found)
}

fn find_in(proc: &Path, target: &Target) -> Result<Job, JobError> {
    let processes = Processes::read(proc).map_err(|source| JobError::Proc { source })?;
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let search = Search {
        processes,
        own,
        uid: nix::unistd::geteuid().as_raw(),
    };
    let job = match target {
        Target::Pids(pids) => match pids[..] {
            [pid] => search.of_pid(pid),
            _ => search.of_pids(pids),
        },
        Target::Name(name) => search.of_name(name),
        Target::Namespace(name) => search.of_namespace(name),
        Target::Number(number) => search.of_number(*number),
        Target::Slurm {
            job,
            element,
            component,
            step,
        } => match (element, component) {
            (None, None) => search.of_slurm(*job, *step),
            (Some(element), _) => slurm::find(&format!("{job}_{element}"), *step, search.uid),
            (None, Some(part)) => slurm::find(&format!("{job}+{part}"), *step, search.uid),
        },
    }?;
    if job.processes.len() > PROCESSES_MAX as usize {
        return Err(JobError::TooMany {
            count: job.processes.len(),
            max: PROCESSES_MAX,
        });
    }
    check_hosts(&job)?;
    Ok(job)
}

/// Rejects invalid host names, whatever their source: servers are started on these hosts.
fn check_hosts(job: &Job) -> Result<(), JobError> {
    for process in &job.processes {
        // This machine has no name.
        if process.host.is_empty() {
            continue;
        }
        crate::host_names::check_name(&process.host).map_err(|what| JobError::Host {
            job: job.source.clone(),
            rank: process.rank,
            host: crate::host_names::quoted(&process.host),
            what,
        })?;
    }
    Ok(())
}

/// The processes of this machine, and the pid and user id of this process.
struct Search {
    processes: Processes,
    own: i32,
    uid: u32,
}

impl Search {
    fn process(&self, pid: i32) -> Result<&Process, JobError> {
        let missing = || match self.processes.process_of_thread(pid) {
            Some(process) => JobError::Thread {
                thread: pid,
                pid: process.pid,
                program: process.program().to_owned(),
            },
            None => JobError::NoProcess { pid },
        };
        self.processes.get(pid).ok_or_else(missing)
    }

    fn entry(&self, rank: u32, pid: i32) -> JobProcess {
        let program = self.processes.get(pid).map_or("", Process::program);
        JobProcess {
            rank,
            host: String::new(),
            program: program.to_owned(),
            pid,
        }
    }

    /// The job of a number: a pid on this machine, or else a Slurm job. It is an error if both exist.
    fn of_number(&self, number: i32) -> Result<Job, JobError> {
        let is_here = self.processes.get(number).is_some();
        let job = number.unsigned_abs();
        match (is_here, slurm::knows(number, is_here)) {
            (true, true) => Err(JobError::PidAndJob {
                number,
                program: self.process(number)?.program().to_owned(),
            }),
            (false, true) => self.of_slurm(job, None),
            (_, false) => self.of_pid(number),
        }
    }

    /// A job of the processes with these pids, with their ranks if all are ranks of one job.
    fn of_pids(&self, pids: &[i32]) -> Result<Job, JobError> {
        let mut pids = pids.to_vec();
        pids.sort_unstable();
        pids.dedup();
        for pid in &pids {
            self.process(*pid)?;
        }
        let source = match pids[..] {
            [pid] => format!("process {pid}"),
            _ => format!("{} processes", pids.len()),
        };
        let by_job = ranks::ByJob::of(&self.processes, &pids);
        let mut job = Job {
            source,
            processes: Vec::new(),
            ranked: true,
            slurm: None,
            incomplete: None,
            notes: Vec::new(),
        };
        let entry = |(rank, pid): (u32, i32)| self.entry(rank, pid);
        if let Some(ranks) = by_job.only() {
            job.processes = ranks.iter().copied().map(entry).collect();
            return Ok(job);
        }
        if !by_job.jobs.is_empty() {
            let jobs = self.jobs(&by_job).join("; ");
            job.notes.push(format!(
                "these processes are not ranks of one job and are listed by pid: {jobs}"
            ));
        }
        job.ranked = false;
        job.processes = (0..).zip(pids).map(entry).collect();
        Ok(job)
    }

    /// The jobs of these processes, as text for the user: `mpirun (pid 4711): ranks 0 (pid 4712), 1 (pid 4713)`.
    fn jobs(&self, by_job: &ranks::ByJob) -> Vec<String> {
        let listed = |all: &mut dyn Iterator<Item = String>, count: usize| {
            let mut shown: Vec<String> = all.take(SHOWN_MAX).collect();
            if count > SHOWN_MAX {
                shown.push(format!("and {} more", count - SHOWN_MAX));
            }
            shown.join(", ")
        };
        let job = |ranks: &Vec<(u32, i32)>| {
            let pid = ranks[0].1;
            let is_starter = |pid: &i32| {
                let process = self.processes.get(*pid);
                process.is_some_and(|it| it.is_called_any(STARTERS))
            };
            let above = self.processes.ancestors(pid);
            let starter = above.into_iter().filter(is_starter).max();
            let name = match starter.and_then(|pid| self.processes.get(pid)) {
                Some(it) => format!("{} (pid {})", printable_name(it.program()), it.pid),
                None => "a job".to_owned(),
            };
            let mut one = ranks
                .iter()
                .map(|(rank, pid)| format!("{rank} (pid {pid})"));
            format!("{name}: ranks {}", listed(&mut one, ranks.len()))
        };
        let mut jobs: Vec<String> = by_job.jobs.values().map(job).collect();
        let unranked = &by_job.unranked;
        if !unranked.is_empty() {
            let mut one = unranked.iter().map(|pid| format!("pid {pid}"));
            jobs.push(format!(
                "without a rank: {}",
                listed(&mut one, unranked.len())
            ));
        }
        jobs
    }

    /// The job of this user's processes with the program name `name`. If there are none, the job of one program's
    /// processes (an interpreter) that have `name` as a word of their command line, with or without its folder.
    /// Launchers count only if `name` is a launcher. Helpers and this process's ancestors never count.
    fn of_name(&self, name: &str) -> Result<Job, JobError> {
        let ancestors = self.processes.ancestors(self.own);
        let mine =
            |process: &&Process| process.is_of(self.uid) && !ancestors.contains(&process.pid);
        let called: Vec<_> = self
            .processes
            .all()
            .filter(|it| it.is_called(name))
            .collect();
        if STARTERS.contains(&name) {
            return self.of_starter(name, called.into_iter().filter(mine).collect());
        }
        let meant = |process: &&Process| {
            mine(process) && !process.is_called_any(STARTERS) && !process.is_called_any(HELPERS)
        };
        let mut found: Vec<&Process> = called.iter().copied().filter(meant).collect();
        if found.is_empty() {
            let runs = |process: &&Process| process.has_word(name);
            found = self.processes.all().filter(meant).filter(runs).collect();
            // An editor that has the script open must not count, and it cannot be told from the interpreter.
            let programs: BTreeSet<_> = found.iter().map(|it| it.program()).collect();
            if programs.len() > 1 {
                return Err(ambiguous(name, &found));
            }
        }
        if let (true, Some(other)) = (
            found.is_empty(),
            called.iter().find(|it| it.uid != self.uid),
        ) {
            return Err(JobError::Foreign {
                pid: other.pid,
                program: name.to_owned(),
                owner: other.owner(),
            });
        }
        if found.is_empty() {
            return Err(JobError::NoName {
                name: name.to_owned(),
            });
        }
        let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        let by_job = ranks::ByJob::of(&self.processes, &self.without_helpers(&pids));
        if !by_job.jobs.is_empty() && by_job.only().is_none() {
            return Err(JobError::SeveralJobs {
                name: name.to_owned(),
                jobs: self.jobs(&by_job),
            });
        }
        let meant: Vec<i32> = match by_job.only() {
            Some(ranks) => ranks.iter().map(|(_, pid)| *pid).collect(),
            None => pids,
        };
        let mut job = self.of_pids(&meant)?;
        job.source = format!("{} processes called {name}", meant.len());
        Ok(job)
    }

    /// These pids without other processes of the same ranks: where processes of one rank descend from each other, only
    /// the rank's program is kept.
    fn without_helpers(&self, pids: &[i32]) -> Vec<i32> {
        let none = processes::Environment::default();
        let given = |pid: i32| ranks::given(&self.processes, pid, &none);
        let is_outermost = |pid: &&i32| {
            let own = given(**pid);
            let mut above = self.processes.ancestors(**pid);
            above.remove(*pid);
            own.is_none()
                || !pids
                    .iter()
                    .any(|it| above.contains(it) && given(*it) == own)
        };
        let outermost: Vec<i32> = pids.iter().filter(is_outermost).copied().collect();
        if outermost.len() == pids.len() {
            return outermost;
        }
        let program = |pid: &i32| match given(*pid) {
            Some(_) => wrappers::program_of(&self.processes, *pid).pid,
            None => *pid,
        };
        outermost.iter().map(program).collect()
    }

    fn of_starter(&self, name: &str, found: Vec<&Process>) -> Result<Job, JobError> {
        match found[..] {
            [one] => self.of_pid(one.pid),
            [] => Err(JobError::NoName {
                name: name.to_owned(),
            }),
            _ => Err(ambiguous(name, &found)),
        }
    }
}

fn ambiguous(name: &str, found: &[&Process]) -> JobError {
    JobError::Ambiguous {
        name: name.to_owned(),
        found: found
            .iter()
            .map(|process| (process.pid, process.program().to_owned()))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
