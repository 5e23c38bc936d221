//! What a starter has started: by its process table, its PMIx server, or what runs below it.

use super::processes::Process;
use super::{
    Job, JobError, JobProcess, STARTERS, Search, access, gdb, hydra, is_this_host, mpir, pmix,
    ranks,
};

/// Starters that have a process table, though its symbols may be in a file apart.
const WITH_TABLE: &[&str] = &["orterun", "mpirun.openmpi", "mpiexec.openmpi", "srun"];

impl Search {
    /// A starter stands for what it started; anything else for itself.
    pub(super) fn of_pid(&self, pid: i32) -> Result<Job, JobError> {
        let process = self.process(pid)?;
        let is_starter = process.is_called_any(STARTERS);
        if is_starter && process.uid != self.uid && self.uid != 0 {
            return Err(JobError::Foreign {
                pid,
                program: process.program().to_owned(),
                owner: access::user(process.uid),
            });
        }
        let table = read_table(process);
        match table {
            Ok(Some(mpir)) if !mpir.table.is_empty() => return Ok(self.of_table(process, mpir)),
            _ => {}
        }
        if let Some(job) = self.without_table(process)? {
            return Ok(job);
        }
        if !is_starter {
            return self.of_pids(&[pid]);
        }
        match table {
            Err(error) if !error.is_gone() => Err(error),
            _ => Err(JobError::NothingStarted {
                pid,
                program: process.program().to_owned(),
            }),
        }
    }

    fn of_table(&self, starter: &Process, mpir: mpir::Mpir) -> Job {
        Job {
            source: format!("the process table of {}", name(starter)),
            processes: self.looked_through(mpir.table),
            ranked: true,
            slurm: mpir.slurm,
            incomplete: None,
        }
    }

    /// The programs behind what wraps them, on this machine.
    fn looked_through(&self, mut processes: Vec<JobProcess>) -> Vec<JobProcess> {
        for process in &mut processes {
            if is_this_host(&process.host) {
                process.pid = self.behind_wrappers(process.pid);
            }
        }
        processes
    }

    /// What runs below a starter without a table, known by the ranks in the environment. Only where that
    /// is not all of the job its PMIx server is asked, where it has one.
    fn without_table(&self, starter: &Process) -> Result<Option<Job>, JobError> {
        let found = ranks::below(&self.processes, starter.pid)?;
        let count = u32::try_from(found.pids.len()).unwrap_or(u32::MAX);
        let is_all = count > 0 && found.size.is_none_or(|size| size <= count);
        let mut why = String::from("and it does not say where");
        if !is_all && pmix::is_server(starter) {
            match pmix::ask(starter) {
                Ok(jobs) => {
                    if let Some(job) = self.only_one(starter, jobs)? {
                        return Ok(Some(job));
                    }
                }
                Err(error) => why = error,
            }
        }
        let elsewhere = hydra::elsewhere(&self.processes, starter).unwrap_or_default();
        if !elsewhere.failures.is_empty() {
            why = elsewhere.failures.join("; ");
        }
        let entry = |(rank, pid): (u32, i32)| self.entry(rank, self.behind_wrappers(pid));
        let mut processes: Vec<_> = found.pids.into_iter().map(entry).collect();
        processes.extend(elsewhere.processes);
        processes.sort_by_key(|process| process.rank);
        if processes.is_empty() {
            return Ok(None);
        }
        let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
        let size = found.size.max(elsewhere.size);
        let incomplete = size.filter(|size| *size > count).map(|size| {
            format!(
                "{} of the {size} ranks run on other hosts than this one, {why} (run sdm there, or give \
                 the pids)",
                size - count
            )
        });
        Ok(Some(Job {
            source: format!("the processes below {}", name(starter)),
            processes,
            ranked: true,
            slurm: None,
            incomplete,
        }))
    }

    fn only_one(
        &self,
        server: &Process,
        mut jobs: Vec<pmix::Namespace>,
    ) -> Result<Option<Job>, JobError> {
        if jobs.len() > 1 {
            return Err(JobError::Namespaces {
                pid: server.pid,
                program: server.program().to_owned(),
                namespaces: jobs
                    .into_iter()
                    .map(|it| format!("pmix:{}", it.name))
                    .collect(),
            });
        }
        Ok(jobs.pop().map(|job| self.of_job(server, job)))
    }

    fn of_job(&self, server: &Process, job: pmix::Namespace) -> Job {
        Job {
            source: format!("the PMIx namespace {} of {}", job.name, name(server)),
            processes: self.looked_through(job.processes),
            ranked: true,
            slurm: None,
            incomplete: None,
        }
    }

    /// The servers of this machine are asked one after the other.
    pub(super) fn of_namespace(&self, wanted: &str) -> Result<Job, JobError> {
        let mut known = Vec::new();
        let mine = |it: &&Process| self.uid == 0 || it.uid == self.uid;
        for server in self.processes.all().filter(mine) {
            if !pmix::is_server(server) {
                continue;
            }
            match pmix::ask(server) {
                Ok(jobs) => {
                    for job in jobs {
                        if job.name == wanted {
                            return Ok(self.of_job(server, job));
                        }
                        known.push(job.name);
                    }
                }
                Err(why) => known.push(format!("{}: {why}", name(server))),
            }
        }
        Err(JobError::NoNamespace {
            name: wanted.to_owned(),
            namespaces: known,
        })
    }

    /// The `srun` of a job, whose memory names the job.
    pub(super) fn of_slurm(&self, job: u32, step: Option<u32>) -> Result<Job, JobError> {
        let meant = |slurm: &str| match step {
            Some(step) => slurm == format!("{job}.{step}"),
            None => slurm.split('.').next() == Some(&*job.to_string()),
        };
        let mut found: Vec<(&Process, mpir::Mpir)> = Vec::new();
        for process in self.processes.all().filter(|it| it.is_called("srun")) {
            // One that cannot be read is somebody else's, or no parent of the two that srun is.
            let Ok(Some(mpir)) = mpir::read(process.pid) else {
                continue;
            };
            if !mpir.table.is_empty() && mpir.slurm.as_deref().is_some_and(meant) {
                found.push((process, mpir));
            }
        }
        // srun forks: its child has a copy of the table.
        let pids: Vec<i32> = found.iter().map(|(process, _)| process.pid).collect();
        found.retain(|(process, _)| !pids.contains(&process.parent));
        let step = step.map_or_else(String::new, |step| format!(".{step}"));
        let pids = found.iter().map(|(process, _)| process.pid).collect();
        match (found.pop(), found.is_empty()) {
            (Some((process, mpir)), true) => Ok(self.of_table(process, mpir)),
            (Some(_), false) => Err(JobError::Ambiguous {
                name: format!("srun of job {job}"),
                pids,
            }),
            (None, _) => Err(JobError::NoSrun {
                id: format!("{job}{step}"),
            }),
        }
    }
}

/// The table out of the starter's memory, by a gdb where that cannot be.
fn read_table(starter: &Process) -> Result<Option<mpir::Mpir>, JobError> {
    let read = mpir::read(starter.pid);
    let by_gdb = match &read {
        Ok(Some(_)) => false,
        Ok(None) => starter.is_called_any(WITH_TABLE),
        Err(error) => !error.is_gone() && starter.is_called_any(STARTERS),
    };
    match by_gdb.then(|| gdb::read(starter.pid)) {
        Some(Ok(table)) => Ok(Some(table)),
        // What stood in the way first is what a person can do something about.
        _ => read,
    }
}

/// `mpirun (pid 4711)`.
fn name(process: &Process) -> String {
    format!("{} (pid {})", process.program(), process.pid)
}
