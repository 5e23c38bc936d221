//! Slurm as a resource manager, queried by its own programs.
//!
//! A snapshot costs Slurm's controller three requests: one of `squeue`, two of `sinfo`, which has no JSON for
//! partitions in every version. A new job of the user costs one more for its script. So does a query of steps while
//! running jobs have no known step.

mod accounting;
mod failed_start;
mod held_jobs;
mod job_script;
mod json;
mod output;
mod placement;
mod programs;
mod states;
mod steps;
mod text;

pub use output::Unreadable;

use std::collections::{BTreeMap, BTreeSet};

use nix::unistd::{Uid, User};
use sdm_runtime::attribute as id;
use sdm_runtime::states as model;
use sdm_text::printable;

use crate::error::ManagerError;
use crate::held_jobs::HeldSessions;
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::program::Program;
use crate::snapshot::{Attributes, Job, Snapshot};
use placement::Placements;
use programs::{ask, find};

/// Output format for partitions: name, availability, time limit, and the name with a mark at the default partition.
const PARTITIONS: &str = "%R|%a|%l|%P";

/// Maximum number of batch scripts that one query reads: each is a request.
const SCRIPTS_MAX: usize = 20;
/// Maximum number of ended jobs from the accounting that are reported.
const ENDED_MAX: usize = 1000;

/// The Slurm whose programs are on `PATH`.
pub struct Slurm {
    user: String,
    /// Name of the cluster; `None` before the first query.
    cluster: Option<String>,
    /// True if Slurm's programs have no JSON output.
    is_text_only: bool,
    /// The programs of this user's jobs by job id; `None` for a job whose script names none.
    programs: BTreeMap<String, Option<Program>>,
    placements: Placements,
    accounting: Accounting,
}

/// Answers of Slurm's accounting.
#[derive(Default)]
struct Accounting {
    /// True if Slurm has no accounting, or there is no `sacct`.
    is_absent: bool,
    was_asked: bool,
    /// Jobs that have ended, and that the controller has forgotten.
    ended: BTreeMap<String, Job>,
    /// The jobs that had not ended in the last query.
    open: BTreeSet<String>,
}

impl Slurm {
    /// The Slurm on `PATH`, as this user sees it.
    ///
    /// # Errors
    /// One of Slurm's programs is not on `PATH`; the error names the program.
    pub fn new() -> Result<Self, ManagerError> {
        for program in ["squeue", "sinfo", "scontrol", "sbatch", "scancel"] {
            find(program)?;
        }
        let user = User::from_uid(Uid::effective()).ok().flatten();
        let user = user.map_or_else(|| Uid::effective().to_string(), |user| user.name);
        Ok(Self {
            user,
            cluster: None,
            is_text_only: false,
            programs: BTreeMap::new(),
            placements: Placements::default(),
            accounting: Accounting::default(),
        })
    }

    /// The name of the cluster, which is queried until it is known; `slurm` if it is unknown.
    fn cluster(&mut self) -> String {
        if self.cluster.is_none() {
            let said = ask("scontrol", &["show", "config"], &[]).unwrap_or_default();
            let name = said
                .iter()
                .find_map(|line| line.strip_prefix("ClusterName"));
            let name = name.map(|rest| rest.trim_start_matches([' ', '=']).trim().to_owned());
            self.cluster = name;
        }
        self.cluster.clone().unwrap_or_else(|| "slurm".to_owned())
    }
}

impl Slurm {
    /// Adds the programs to this user's jobs, from the batch scripts that SDM has written. Slurm gives a script to the
    /// job's user and root only.
    fn tell_programs(&mut self, jobs: &mut BTreeMap<String, Job>) {
        self.programs.retain(|id, _| jobs.contains_key(id));
        let is_own = |job: &Job| job.attributes.get(id::USER_ID) == Some(&self.user);
        let own: Vec<String> = jobs
            .iter()
            .filter(|(_, job)| is_own(job))
            .map(|(id, _)| id.clone())
            .collect();
        let unknown = own.iter().filter(|id| !self.programs.contains_key(*id));
        for id in unknown.take(SCRIPTS_MAX).cloned().collect::<Vec<_>>() {
            // A job without a batch script is refused.
            let said = ask("scontrol", &["write", "batch_script", &id, "-"], &[]);
            let program = job_script::program(&said.unwrap_or_default().join("\n"));
            self.programs.insert(id, program);
        }
        for (id, program) in &self.programs {
            if let (Some(program), Some(job)) = (program, jobs.get_mut(id)) {
                program.tell(&mut job.attributes);
            }
        }
    }

    /// Adds ended jobs that only the accounting still knows: this user's of the last day, and those that the controller
    /// has forgotten since the previous snapshot.
    fn add_ended(&mut self, jobs: &mut BTreeMap<String, Job>) {
        let it = &mut self.accounting;
        if it.is_absent {
            return;
        }
        let gone = it.open.iter().filter(|id| !jobs.contains_key(*id));
        let gone: Vec<String> = gone.take(ENDED_MAX).cloned().collect();
        if !it.was_asked || !gone.is_empty() {
            let numbers = if it.was_asked { &*gone } else { &[] };
            let words = accounting::arguments(numbers);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match ask("sacct", &words, &[]) {
                Ok(said) => {
                    it.ended.extend(accounting::jobs(&said));
                    it.was_asked = true;
                }
                Err(why) => it.is_absent = !it.was_asked && is_without_accounting(&why),
            }
        }
        while it.ended.len() > ENDED_MAX {
            it.ended.pop_first();
        }
        it.ended.retain(|id, _| !jobs.contains_key(id));
        let is_open = |job: &Job| !job.state().is_some_and(model::Job::has_ended);
        it.open = jobs
            .iter()
            .filter(|(_, job)| is_open(job))
            .map(|(id, _)| id.clone())
            .collect();
        jobs.extend(it.ended.clone());
    }
}

impl Manager for Slurm {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let (jobs, nodes) = match self.is_text_only {
            true => in_text()?,
            false => match in_json() {
                Ok(both) => both,
                // If the controller is down, both forms fail. A Slurm without JSON is not asked for it again.
                Err(why) => {
                    self.is_text_only = is_without_json(&why);
                    in_text().map_err(|_| why)?
                }
            },
        };
        let queues = output::queues(&ask("sinfo", &["-a", "-h", "-o", PARTITIONS], &[])?);
        let mut machine = machine(&self.cluster(), model::Machine::Up);
        machine.insert(id::NUM_NODES.to_owned(), nodes.len().to_string());
        // Whose jobs are the client's own.
        machine.insert(id::USER_ID.to_owned(), self.user.clone());
        let mut snapshot = Snapshot {
            machine,
            nodes,
            queues,
            jobs,
            ..Snapshot::default()
        };
        output::mark_nodes(&mut snapshot, &self.user);
        self.tell_programs(&mut snapshot.jobs);
        let programs = &self.programs;
        let is_started = |id: &str| programs.get(id).is_some_and(Option::is_some);
        self.placements
            .place(&mut snapshot.jobs, &self.user, is_started);
        self.add_ended(&mut snapshot.jobs);
        Ok(snapshot)
    }

    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError> {
        let mut options = vec!["--parsable".to_owned()];
        if !job.batch || job.processes > 1 {
            options.push(format!("--ntasks={}", job.processes));
        }
        let program = job.program.rsplit('/').next().unwrap_or_default();
        let name = if job.name.is_empty() {
            program
        } else {
            &job.name
        };
        options.push(format!("--job-name={name}"));
        if let Some(queue) = &job.queue {
            options.push(format!("--partition={queue}"));
        }
        if !job.directory.is_empty() {
            options.push(format!("--chdir={}", job.directory));
        }
        if HeldSessions::wants(job) {
            options.push(format!("--comment={}", held_jobs::COMMENT));
        }
        options.extend(job.options.iter().cloned());
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let said = ask("sbatch", &options, script(job)?.as_bytes())?;
        let number = said.last().map(String::as_str).unwrap_or_default();
        // With several clusters, the cluster's name follows a semicolon.
        let number = number.split(';').next().unwrap_or_default();
        match number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty() {
            true => Ok(number.to_owned()),
            false => {
                let words = printable(said.join(" ").as_bytes()).to_string();
                let words = format!("the output `{words}` contains no job number");
                Err(ManagerError::program("sbatch", words))
            }
        }
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        ask("scancel", &[job], &[]).map(drop)
    }

    fn change(&mut self, job: &str, change: &JobChange) -> Result<(), ManagerError> {
        let job_id = format!("JobId={job}");
        let told = match change {
            JobChange::Hold => ask("scontrol", &["hold", job], &[]).or_else(|why| {
                // Slurm can refuse, although it holds the job: of one that its partition cannot start.
                is_held(job).then(Vec::new).ok_or(why)
            }),
            JobChange::Release => ask("scontrol", &["release", job], &[]),
            JobChange::Priority(number) => {
                let priority = format!("Priority={number}");
                ask("scontrol", &["update", &job_id, &priority], &[])
            }
            JobChange::Move(queue) => {
                let partition = format!("Partition={queue}");
                ask("scontrol", &["update", &job_id, &partition], &[])
            }
        };
        told.map(drop)
    }
}

/// True if Slurm holds a pending job: its priority is 0.
fn is_held(job: &str) -> bool {
    let asked = ask("squeue", &["-h", "-t", "PD", "-j", job, "-o", "%Q"], &[]);
    asked.is_ok_and(|said| said.first().is_some_and(|priority| priority.trim() == "0"))
}

type Both = (BTreeMap<String, Job>, BTreeMap<String, Attributes>);

/// Queries jobs and nodes by the JSON output of `squeue` and `sinfo`.
fn in_json() -> Result<Both, ManagerError> {
    let said = ask("squeue", &["-a", "--json"], &[])?.join("\n");
    let jobs = output::jobs(&said).map_err(|why| ManagerError::Unreadable("squeue --json", why))?;
    let said = ask("sinfo", &["-a", "--json"], &[])?.join("\n");
    let nodes =
        output::nodes(&said).map_err(|why| ManagerError::Unreadable("sinfo --json", why))?;
    Ok((jobs, nodes))
}

/// True if the error of [`in_json`] says that Slurm is too old for JSON, or built without it. Any other error, such as
/// that of a busy controller, may be gone at the next query.
fn is_without_json(why: &ManagerError) -> bool {
    let refusals = ["option", "json", "serializer", "plugin"];
    matches!(why, ManagerError::Program { words, .. }
        if refusals.iter().any(|refusal| words.to_lowercase().contains(refusal)))
}

/// True if there is no `sacct`, or its error says that there is no accounting: "Slurm accounting storage is disabled".
fn is_without_accounting(why: &ManagerError) -> bool {
    match why {
        ManagerError::NoProgram(_) => true,
        ManagerError::Program { words, .. } => words.contains("disabled"),
        _ => false,
    }
}

/// Queries jobs and nodes as text lines in formats that SDM defines, for versions of Slurm without JSON output.
fn in_text() -> Result<Both, ManagerError> {
    let format = text::job_format();
    let said = ask(
        "squeue",
        &["-a", "-h", "-r", "-t", "all", "-o", &format],
        &[],
    )?;
    let jobs = text::jobs(&said);
    let nodes = text::nodes(&ask("sinfo", &["-a", "-h", "-N", "-o", text::NODES], &[])?);
    Ok((jobs, nodes))
}

/// The batch script of a job: the program under `srun`, which starts its processes, or a kept session that has `srun`
/// start them. A program that is a batch script itself runs alone.
fn script(job: &Submission) -> Result<String, ManagerError> {
    let held = HeldSessions {
        prefix: held_jobs::PREFIX,
    };
    match HeldSessions::wants(job) {
        true => held.script(job, "$SLURM_JOB_ID", "--launcher srun"),
        false => Ok(job_script::of(job)),
    }
}

/// Parses arbitrary text as output of Slurm's programs. Checks that nothing panics.
pub(crate) fn fuzz_answers(text: &str) {
    let _ = output::jobs(text);
    let _ = output::nodes(text);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut snapshot = Snapshot {
        nodes: text::nodes(&lines),
        queues: output::queues(&lines),
        jobs: text::jobs(&lines),
        ..Snapshot::default()
    };
    snapshot.jobs.extend(accounting::jobs(&lines));
    output::mark_nodes(&mut snapshot, "ann");
    let pids = steps::pids(&lines);
    for (name, step) in steps::steps(&lines) {
        let _ = steps::ranks(&step, pids.get(&name));
    }
    let _ = sdm_hosts::hostlist::names(text);
    let _ = text::minutes(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_errors_for_missing_json_support_are_recognized() {
        for (words, is_lasting) in [
            ("unrecognized option '--json'", true),
            ("error: Unable to find plugin: serializer/json", true),
            (
                "error: Unable to contact slurm controller (connect failure)",
                false,
            ),
            (
                "slurm_load_jobs error: Socket timed out on send/recv operation",
                false,
            ),
        ] {
            let why = ManagerError::program("squeue", words);
            assert_eq!(is_without_json(&why), is_lasting, "{words}");
        }
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert!(!is_without_json(&ManagerError::system("squeue")(late)));
    }
}
