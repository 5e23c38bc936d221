//! Slurm, queried by its own programs.
//!
//! A snapshot costs its controller three requests: one of `squeue`, two of `sinfo`, which has no JSON for
//! partitions in every version.

mod accounting;
mod held_jobs;
mod json;
mod output;
mod states;
mod steps;
mod text;

pub use output::Unreadable;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::{Uid, User};
use sdm_runtime::attribute as id;
use sdm_runtime::states as model;
use sdm_system::run_bounded::{Bounds, run};
use sdm_system::{files, programs};
use sdm_text::printable;

use crate::error::ManagerError;
use crate::held_jobs::HeldSessions;
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::script;
use crate::snapshot::{Attributes, Job, Process, Snapshot, set, set_state};
use steps::Rank;

/// Time limit of one of Slurm's programs, whose own time-outs are about a minute.
const WAIT: Duration = Duration::from_secs(90);
/// Maximum number of output lines of one program: a job takes some hundred lines of JSON.
const LINES_MAX: usize = 64 << 20;
/// Output format for partitions: name, availability, time limit, and the name with a mark at the default.
const PARTITIONS: &str = "%R|%a|%l|%P";

/// Maximum number of queries for the pids of a job whose step is known. A step that has just begun lacks them, and so
/// does each one where `sstat` is refused: nothing tells the two apart.
const PID_QUERIES_MAX: u32 = 5;
/// Maximum number of jobs whose ranks are queried together.
const PLACED_MAX: usize = 50;
/// Maximum number of ended jobs from the accounting that are reported.
const ENDED_MAX: usize = 1000;

/// The known locations of a job's ranks.
#[derive(Default)]
struct Placed {
    /// The ranks; empty while Slurm does not report all of them: a job may have no step of `srun` for hours.
    ranks: Vec<Rank>,
    /// Number of queries that gave ranks.
    queries: u32,
}

impl Placed {
    fn add(&mut self, ranks: Vec<Rank>) {
        self.queries += u32::from(!ranks.is_empty());
        self.ranks = ranks;
    }

    /// True if the ranks are known and no further query is to be made for a pid.
    fn is_final(&self) -> bool {
        let has_pids = self.ranks.iter().all(|rank| rank.pid.is_some());
        !self.ranks.is_empty() && (has_pids || self.queries >= PID_QUERIES_MAX)
    }
}

/// The Slurm whose programs are on `PATH`.
pub struct Slurm {
    user: String,
    /// Name of the cluster, once it is known.
    cluster: Option<String>,
    /// True if its programs have no JSON output.
    is_text_only: bool,
    /// The ranks of this user's running jobs by job id, where they are known.
    ranks: BTreeMap<String, Placed>,
    accounting: Accounting,
}

/// Answers of Slurm's accounting.
#[derive(Default)]
struct Accounting {
    /// True if Slurm has no accounting, or was built without it.
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
    /// One of its programs is not on `PATH`; the error names it.
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
            ranks: BTreeMap::new(),
            accounting: Accounting::default(),
        })
    }

    /// The cluster's name; asked once.
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
    /// Adds the locations of the ranks to this user's running jobs.
    fn place(&mut self, jobs: &mut BTreeMap<String, Job>) {
        let is_own = |job: &Job| {
            job.attributes.get(id::USER_ID) == Some(&self.user)
                && job.state() == Some(model::Job::Running)
        };
        self.ranks.retain(|id, _| jobs.get(id).is_some_and(is_own));
        let own = jobs.iter().filter(|(_, job)| is_own(job));
        let mut unknown: Vec<&String> = own.map(|(id, _)| id).collect();
        unknown.retain(|id| !self.ranks.get(*id).is_some_and(Placed::is_final));
        unknown.truncate(PLACED_MAX);
        if !unknown.is_empty() {
            let said = ask("scontrol", &["--oneliner", "show", "step"], &[]);
            let mut steps = steps::steps(&said.unwrap_or_default());
            steps.retain(|id, _| unknown.contains(&id));
            let list: Vec<&str> = steps.values().map(|step| &*step.id).collect();
            let list = list.join(",");
            // Without sstat, or where it is refused, at least the nodes are known.
            let said = match list.is_empty() {
                true => Vec::new(),
                false => ask("sstat", &["-n", "-P", "-i", "-j", &list], &[]).unwrap_or_default(),
            };
            let pids = steps::pids(&said);
            for id in unknown {
                let step = steps.get(id);
                let ranks = step.and_then(|step| steps::ranks(step, pids.get(&step.id)));
                let placed = self.ranks.entry(id.clone()).or_default();
                placed.add(ranks.unwrap_or_default());
            }
        }
        let known = self.ranks.iter();
        for (id, placed) in known.filter(|(_, placed)| !placed.ranks.is_empty()) {
            if let Some(job) = jobs.get_mut(id) {
                job.processes = placed.ranks.iter().map(process).collect();
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
                Ok(said) => it.ended.extend(accounting::jobs(&said)),
                // If the first query fails, there is no accounting: "Slurm accounting storage is disabled".
                Err(_) => it.is_absent = !it.was_asked,
            }
            it.was_asked = true;
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

fn process(rank: &Rank) -> Process {
    let mut attributes = Attributes::new();
    set_state(&mut attributes, model::Process::Running);
    let pid = rank.pid.map(|pid| pid.to_string());
    set(&mut attributes, id::PROCESS_PID, pid.unwrap_or_default());
    Process {
        node: Some(rank.node.clone()),
        attributes,
    }
}

impl Manager for Slurm {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let (jobs, nodes) = match self.is_text_only {
            true => in_text()?,
            false => match in_json() {
                Ok(both) => both,
                // If the controller is down, both forms fail. If only JSON fails, it is not requested again.
                Err(why) => {
                    let both = in_text().map_err(|_| why)?;
                    self.is_text_only = true;
                    both
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
        self.place(&mut snapshot.jobs);
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
            JobChange::Hold => ask("scontrol", &["hold", job], &[]),
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

/// The batch script of a job: the program under `srun`, which starts its processes, or a kept session that has
/// `srun` start them.
fn script(job: &Submission) -> Result<String, ManagerError> {
    let held = HeldSessions {
        prefix: held_jobs::PREFIX,
    };
    match HeldSessions::wants(job) {
        true => held.script(job, "$SLURM_JOB_ID", "--launcher srun"),
        false if job.batch => Ok(script::of(job, "exec")),
        false => Ok(script::of(job, "exec srun")),
    }
}

fn find(program: &str) -> Result<PathBuf, ManagerError> {
    files::search(program).ok_or_else(|| ManagerError::NoProgram(program.to_owned()))
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

/// Runs one of Slurm's programs and returns its output lines.
fn ask(program: &str, arguments: &[&str], input: &[u8]) -> Result<Vec<String>, ManagerError> {
    let bounds = Bounds {
        wait: WAIT,
        lines_max: LINES_MAX,
    };
    let mut command = programs::at(find(program)?);
    // Times and names as they are everywhere.
    command
        .args(arguments)
        .env("LC_ALL", "C")
        .env("SLURM_TIME_FORMAT", "%s");
    for variable in [
        "SQUEUE_FORMAT",
        "SINFO_FORMAT",
        "SQUEUE_USERS",
        "SQUEUE_STATES",
        "SQUEUE_PARTITION",
    ] {
        command.env_remove(variable);
    }
    let said = run(&mut command, input, bounds).map_err(ManagerError::system(program))?;
    if said.status.success() {
        return Ok(said.lines);
    }
    let complaint = said.complaints.last().or(said.lines.last());
    let complaint = complaint.map_or_else(
        || said.status.to_string(),
        |line| printable(line.as_bytes()).to_string(),
    );
    // Most begin with their own name.
    let words = complaint.strip_prefix(program).unwrap_or(&complaint);
    Err(ManagerError::program(
        program,
        words.trim_start_matches([':', ' ']),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_quotes_program_and_arguments() {
        let job = Submission {
            program: "/opt/my app".to_owned(),
            arguments: vec!["it's".to_owned(), "$HOME".to_owned(), String::new()],
            environment: vec!["A=b c".to_owned()],
            ..Submission::default()
        };
        let expected = "#!/bin/sh\nexport A='b c'\nexec srun '/opt/my app' 'it'\\''s' '$HOME' ''\n";
        assert_eq!(script(&job).unwrap(), expected);
    }

    #[test]
    fn slurm_rank_pids_are_queried_until_found_or_a_bound() {
        let rank = |pid| Rank {
            node: "n1".to_owned(),
            pid,
        };
        let mut placed = Placed::default();
        for _ in 0..100 {
            placed.add(Vec::new());
        }
        assert!(!placed.is_final());
        placed.add(vec![rank(None)]);
        assert!(!placed.is_final());
        let mut known = Placed::default();
        known.add(vec![rank(Some(7))]);
        assert!(known.is_final());
        for _ in 1..PID_QUERIES_MAX {
            placed.add(vec![rank(None)]);
        }
        assert!(placed.is_final());
    }
}
