//! Processes of a launcher: from its process table, its PMIx server, or its descendants.
//!
//! A launcher's data is trusted as far as its owner. If root queries another user's job, only processes of that user on
//! this host are taken, and nothing else that a table names.

use std::collections::BTreeSet;

use sdm_text::{agree, counted};

use super::processes::Process;
use super::{
    Job, JobError, JobProcess, STARTERS, Search, gdb, hydra, is_this_host, mpir, pmix, ranks,
    slurm, wrappers,
};

/// Launchers that have a process table, although its symbols may be in a separate file.
const WITH_TABLE: &[&str] = &["orterun", "mpirun.openmpi", "mpiexec.openmpi", "srun"];

impl Search {
    /// The job of the launcher with this pid. A process that is not a launcher and has started no ranks is a job of its
    /// own.
    pub(super) fn of_pid(&self, pid: i32) -> Result<Job, JobError> {
        let process = self.process(pid)?;
        let is_starter = process.is_called_any(STARTERS);
        if self.uid != 0 && !process.is_of(self.uid) {
            // Nothing in the process is read. The reason why it cannot be attached to is the same as for any process.
            return match is_starter && process.uid != self.uid {
                true => Err(JobError::Foreign {
                    pid,
                    program: process.program().to_owned(),
                    owner: process.owner(),
                }),
                false => self.of_pids(&[pid]),
            };
        }
        let table = read_table(process);
        match table {
            Ok(Some(mpir)) if !mpir.table.is_empty() => return self.of_table(process, mpir),
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

    fn of_table(&self, starter: &Process, mpir: mpir::Mpir) -> Result<Job, JobError> {
        let launcher = self.name(starter);
        let source = format!("the process table of {launcher}");
        let mut job = self.of_words(starter, source, mpir.table)?;
        // Two processes of one rank are an error only without a table.
        let known: BTreeSet<i32> = job.processes.iter().map(|it| it.pid).collect();
        let spawned = ranks::below(&self.processes, starter.pid).map(|it| it.spawned);
        let is_new = |pid: &i32| !known.contains(pid);
        let spawned: Vec<i32> = spawned
            .unwrap_or_default()
            .into_iter()
            .filter(is_new)
            .collect();
        job.notes.extend(self.spawned(starter, &spawned));
        // It would be asked for servers on the job's hosts.
        job.slurm = mpir.slurm.filter(|_| starter.is_of(self.uid));
        Ok(job)
    }

    /// A job from the data of its launcher.
    ///
    /// # Errors
    /// The launcher belongs to another user, and none of the processes that it names is that user's on this host.
    fn of_words(
        &self,
        starter: &Process,
        source: String,
        told: Vec<JobProcess>,
    ) -> Result<Job, JobError> {
        let count = told.len();
        let (mut processes, doubts) = self.looked_through(told);
        if !starter.is_of(self.uid) {
            processes.retain(|it| is_this_host(&it.host) && self.is_of(it.pid, starter.uid));
        }
        let others = count - processes.len();
        let (owner, starter) = (starter.owner(), name(starter));
        let incomplete = format!(
            "{others} of the {count} processes of {starter} {are} on other hosts or {do_not} belong to {owner}: only \
             {owner}'s processes on this host are used (run sdm as {owner})",
            are = agree(others, "is", "are"),
            do_not = agree(others, "does not", "do not"),
        );
        if processes.is_empty() && others > 0 {
            return Err(JobError::NotTheirs { what: incomplete });
        }
        Ok(Job {
            source,
            processes,
            ranked: true,
            slurm: None,
            incomplete: (others > 0).then_some(incomplete),
            notes: doubts,
        })
    }

    fn is_of(&self, pid: i32, uid: u32) -> bool {
        self.processes.get(pid).is_some_and(|it| it.uid == uid)
    }

    /// A process as text for the user: `mpirun (pid 4711)`, of another user `alice's mpirun (pid 4711)`.
    fn name(&self, process: &Process) -> String {
        match process.is_of(self.uid) {
            true => name(process),
            false => format!("{}'s {}", process.owner(), name(process)),
        }
    }

    /// Replaces wrappers on this machine by the programs that they have started. Also returns sentences about ranks
    /// whose program is uncertain.
    fn looked_through(&self, mut processes: Vec<JobProcess>) -> (Vec<JobProcess>, Vec<String>) {
        let mut found = Vec::new();
        for process in &mut processes {
            if is_this_host(&process.host) {
                let program = wrappers::program_of(&self.processes, process.pid);
                process.pid = program.pid;
                found.push((process.rank, program));
            }
        }
        (processes, wrappers::doubts(&self.processes, &found))
    }

    /// A sentence about jobs that the launcher's ranks have spawned; `None` if there are none.
    fn spawned(&self, starter: &Process, pids: &[i32]) -> Option<String> {
        let programs = pids
            .iter()
            .map(|pid| wrappers::program_of(&self.processes, *pid).pid);
        let programs: Vec<String> = programs.map(|pid| pid.to_string()).collect();
        (!programs.is_empty()).then(|| {
            let launcher = name(starter);
            let more = counted(programs.len(), "more process");
            let pids = programs.join(",");
            format!(
                "the ranks of {launcher} have started {more} (MPI_Comm_spawn): use --pids {pids}"
            )
        })
    }

    /// The job of a launcher without a process table: its descendants with ranks in their environment. If these are not
    /// the whole job, its PMIx server is queried. Ranks of Hydra on other hosts are queried by `ssh`. `None` if no
    /// ranks are found.
    fn without_table(&self, starter: &Process) -> Result<Option<Job>, JobError> {
        let found = ranks::below(&self.processes, starter.pid)?;
        let count = u32::try_from(found.pids.len()).unwrap_or(u32::MAX);
        let is_all = count > 0 && found.size.is_none_or(|size| size <= count);
        let mut why = match starter.is_of(self.uid) {
            true => String::from("and the launcher does not report where"),
            false => {
                let owner = starter.owner();
                format!("and SDM does not use the ssh of {owner} to reach them")
            }
        };
        if !is_all && pmix::is_server(starter) {
            match pmix::ask(starter.pid) {
                Ok(jobs) => {
                    if let Some(job) = self.only_one(starter, jobs)? {
                        return Ok(Some(job));
                    }
                }
                Err(error) => why = error.to_string(),
            }
        }
        let elsewhere = hydra::elsewhere(&self.processes, starter, self.uid);
        let elsewhere = elsewhere.unwrap_or_default();
        if !elsewhere.failures.is_empty() {
            why = elsewhere.failures.join("; ");
        }
        let entry = |(rank, pid): (u32, i32)| self.entry(rank, pid);
        let outermost: Vec<_> = found.pids.into_iter().map(entry).collect();
        let (mut processes, doubts) = self.looked_through(outermost);
        let spawned = self.spawned(starter, &found.spawned);
        processes.retain(|it| starter.is_of(self.uid) || self.is_of(it.pid, starter.uid));
        processes.extend(elsewhere.processes);
        processes.sort_by_key(|process| process.rank);
        if processes.is_empty() {
            return Ok(None);
        }
        let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
        let size = found.size.max(elsewhere.size);
        let incomplete = size.filter(|size| *size > count).map(|size| {
            let missing = size - count;
            let run = agree(missing, "runs", "run");
            format!(
                "{missing} of the {size} ranks {run} on other hosts, {why} (run sdm there, or give the pids)"
            )
        });
        Ok(Some(Job {
            source: format!("the descendant processes of {}", self.name(starter)),
            processes,
            ranked: true,
            slurm: None,
            incomplete,
            notes: doubts.into_iter().chain(spawned).collect(),
        }))
    }

    fn only_one(
        &self,
        server: &Process,
        mut jobs: Vec<pmix::Namespace>,
    ) -> Result<Option<Job>, JobError> {
        if jobs.len() > 1 {
            let owner = (!server.is_of(self.uid)).then(|| server.owner());
            return Err(JobError::Namespaces {
                pid: server.pid,
                program: server.program().to_owned(),
                owner,
                namespaces: jobs
                    .into_iter()
                    .map(|it| format!("pmix:{}", it.name))
                    .collect(),
            });
        }
        jobs.pop().map(|job| self.of_job(server, job)).transpose()
    }

    fn of_job(&self, server: &Process, job: pmix::Namespace) -> Result<Job, JobError> {
        let (name, server_name) = (&job.name, self.name(server));
        let source = format!("the PMIx namespace {name} of {server_name}");
        self.of_words(server, source, job.processes)
    }

    /// Finds the job with this PMIx namespace. Queries this user's PMIx servers on this machine, one after another.
    pub(super) fn of_namespace(&self, wanted: &str) -> Result<Job, JobError> {
        let mut known = Vec::new();
        let mine = |it: &&Process| it.is_of(self.uid);
        for server in self.processes.all().filter(mine) {
            if !pmix::is_server(server) {
                continue;
            }
            match pmix::ask(server.pid) {
                Ok(jobs) => {
                    for job in jobs {
                        if job.name == wanted {
                            return self.of_job(server, job);
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

    /// The job of the `srun` on this machine that has this job and step in its memory. If there is none, Slurm and the
    /// job's nodes are queried.
    pub(super) fn of_slurm(&self, job: u32, step: Option<u32>) -> Result<Job, JobError> {
        let meant = |slurm: &str| match step {
            Some(step) => slurm == format!("{job}.{step}"),
            None => slurm.split('.').next() == Some(&*job.to_string()),
        };
        let mut found: Vec<(&Process, mpir::Mpir)> = Vec::new();
        let may_be_read = |it: &&Process| self.uid == 0 || it.is_of(self.uid);
        let called = self.processes.all().filter(|it| it.is_called("srun"));
        for process in called.filter(may_be_read) {
            // A process that cannot be read is not the parent of srun's two processes.
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
        let sruns: Vec<&Process> = found.iter().map(|(process, _)| *process).collect();
        match (found.pop(), sruns.len()) {
            (Some((process, mpir)), 1) => self.of_table(process, mpir),
            (Some(_), _) => Err(super::ambiguous(&format!("srun of job {job}"), &sruns)),
            (None, _) => slurm::find(&job.to_string(), step, self.uid),
        }
    }
}

/// Reads the table from the launcher's memory, by a gdb if that is impossible; `None` if there is no table.
fn read_table(starter: &Process) -> Result<Option<mpir::Mpir>, JobError> {
    let read = mpir::read(starter.pid);
    let by_gdb = match &read {
        Ok(Some(_)) => false,
        Ok(None) => starter.is_called_any(WITH_TABLE),
        Err(error) => !error.is_gone() && starter.is_called_any(STARTERS),
    };
    match by_gdb.then(|| gdb::read(starter.pid)) {
        Some(Ok(table)) => Ok(Some(table)),
        // The user can act on the first error, not on gdb's.
        _ => read,
    }
}

/// A process as text for the user: `mpirun (pid 4711)`.
fn name(process: &Process) -> String {
    format!("{} (pid {})", process.program(), process.pid)
}
