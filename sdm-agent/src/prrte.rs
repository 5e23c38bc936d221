//! The user's PRRTE servers on this host (`prte`, `prterun`) as one machine, as `sdm pmix` reports them. Each server is
//! a queue.
//!
//! A tool must use the PMIx library of the server that it connects to, in a process that may crash. `sdm pmix` provides
//! both.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::unistd::{geteuid, gethostname};
use sdm_hosts::job::is_this_host;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, Machine, Queue};
use sdm_system::programs;
use sdm_system::run_bounded::{Bounds, Said, run};
use sdm_system::{files, own_program};
use sdm_text::printable;
use serde::Deserialize;

use crate::error::{ManagerError, SubmissionError};
use crate::local::runner;
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::snapshot::{self, Attributes, Job, Process, Snapshot, set, set_state};

/// Name of the queried program in errors.
const PROGRAM: &str = "sdm pmix";
/// Limits of one query: time, and number of output lines.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(60),
    lines_max: 1000,
};
/// Name of the queue that is reported if there is no server.
const NO_QUEUE: &str = "default";
/// Program name of a server that takes jobs; other servers end with the one job that they were started for.
const TAKES_JOBS: &str = "prte";
/// Time for which a job that its server no longer lists is reported, in seconds.
const GONE_S: i64 = 3600;
/// Maximum number of reported jobs that their server no longer lists.
const GONE_MAX: usize = 1000;

/// The user's servers on this host.
pub struct Prrte {
    /// Path of the program `sdm`.
    program: PathBuf,
    host: String,
    /// The jobs that the last query found, and those that have recently disappeared.
    jobs: BTreeMap<String, Job>,
}

/// A PRRTE server, as `sdm pmix list --json` prints it.
#[derive(Debug, Deserialize)]
struct PrrteServer {
    namespace: String,
    pid: i32,
    program: String,
    version: String,
    jobs: Vec<Listed>,
}

/// A job of a server.
#[derive(Debug, Deserialize)]
struct Listed {
    namespace: String,
    command: Option<String>,
    processes: Vec<Row>,
}

/// A process of a job.
#[derive(Debug, Deserialize)]
struct Row {
    host: String,
    program: String,
    pid: i32,
    exit_code: i32,
    state: String,
}

/// The answer of `sdm pmix spawn --detach --json`.
#[derive(Debug, Deserialize)]
struct Spawned {
    namespace: String,
}

impl Prrte {
    /// Prepares queries of all PRRTE servers of this user on this host. There may be no server yet.
    ///
    /// # Errors
    /// There is no `sdm`, or this host has no name.
    pub fn new() -> Result<Self, ManagerError> {
        let program =
            own_program("sdm", None).ok_or_else(|| ManagerError::NoProgram("sdm".to_owned()))?;
        let host = gethostname().map_err(|why| {
            ManagerError::System("cannot get the name of this host".to_owned(), why.into())
        })?;
        Ok(Self {
            program,
            host: host.to_string_lossy().into_owned(),
            jobs: BTreeMap::new(),
        })
    }

    /// Runs `sdm pmix` and returns its output, whether it succeeded or not.
    fn ask(&self, fill: impl FnOnce(&mut Command)) -> Result<Said, ManagerError> {
        let mut command = programs::at(&self.program);
        command.arg("pmix");
        fill(&mut command);
        run(&mut command, &[], BOUNDS).map_err(ManagerError::system(PROGRAM))
    }

    /// Updates the jobs from a new list of servers. `complaints` are the errors of servers that have not answered. The
    /// state of their jobs becomes unknown, with these errors as the reason.
    fn take(&mut self, servers: &[PrrteServer], complaints: &[String], now: i64) {
        let mut jobs = BTreeMap::new();
        for server in servers {
            for job in &server.jobs {
                jobs.insert(job.namespace.clone(), job_of(server, job));
            }
        }
        let answered: BTreeSet<&str> = servers.iter().map(|it| &*it.namespace).collect();
        for (name, mut job) in std::mem::take(&mut self.jobs) {
            if jobs.contains_key(&name) {
                continue;
            }
            if !answered.contains(&*job.queue) && !complaints.is_empty() {
                job.set_unknown(&complaints.join("; "));
            } else if !job.attributes.contains_key(id::END_TIME) {
                end(&mut job, now);
            }
            jobs.insert(name, job);
        }
        let ended = |job: &Job| job.attributes.get(id::END_TIME)?.parse::<i64>().ok();
        let mut gone: Vec<(i64, String)> = jobs
            .iter()
            .filter_map(|(name, job)| Some((ended(job)?, name.clone())))
            .collect();
        gone.sort();
        let too_many = gone.len().saturating_sub(GONE_MAX);
        for (index, (since, name)) in gone.iter().enumerate() {
            if index < too_many || now - since > GONE_S {
                jobs.remove(name);
            }
        }
        self.jobs = jobs;
    }

    fn snapshot(&self, servers: &[PrrteServer], complaints: &[String]) -> Snapshot {
        let state = match servers.is_empty() {
            true => Machine::Down,
            false => Machine::Up,
        };
        let mut machine = machine(&self.host, state);
        let hosts = self.jobs.values().flat_map(|job| &job.processes);
        let mut hosts: BTreeSet<&str> = hosts.filter_map(|it| it.node.as_deref()).collect();
        hosts.insert(&self.host);
        set(&mut machine, id::NUM_NODES, hosts.len().to_string());
        let nodes = hosts.iter().enumerate().map(|(index, host)| {
            let mut node = Attributes::new();
            set(&mut node, id::NAME, *host);
            set_state(&mut node, states::Node::Up);
            set(&mut node, id::NODE_NUMBER, index.to_string());
            ((*host).to_owned(), node)
        });
        let mut snapshot = Snapshot {
            machine,
            nodes: nodes.collect(),
            queues: queues(servers, complaints),
            jobs: self.jobs.clone(),
            ..Snapshot::default()
        };
        let user = files::user(geteuid().as_raw());
        snapshot.mark_nodes(
            &user,
            |job| {
                job.processes
                    .iter()
                    .filter_map(|it| it.node.clone())
                    .collect()
            },
            |_| false,
        );
        snapshot
    }
}

impl Manager for Prrte {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let said = self.ask(|command| {
            command.args(["list", "--json"]);
        })?;
        let servers: Vec<PrrteServer> = parsed(&said)?;
        self.take(&servers, &said.complaints, runner::now());
        Ok(self.snapshot(&servers, &said.complaints))
    }

    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError> {
        if job.debug {
            let words = "PRRTE cannot hold a job for a debugger: attach to the job when it runs";
            return Err(ManagerError::program("prrte", words));
        }
        if let Some(word) = job.options.first() {
            let words = format!(
                "PRRTE takes no options for a job: `{}`",
                printable(word.as_bytes())
            );
            return Err(ManagerError::program("prrte", words));
        }
        let here = std::env::current_dir()
            .map_err(ManagerError::system("cannot get the working directory"))?;
        let directory = here.join(&job.directory);
        if !runner::is_folder(&directory) {
            return Err(SubmissionError::NoFolder(job.directory.clone()).into());
        }
        let variables = job.environment.iter().filter_map(|it| it.split_once('='));
        let said = self.ask(|command| {
            if let Some(queue) = job.queue.as_deref().filter(|it| *it != NO_QUEUE) {
                command.args(["--server", queue]);
            }
            let count = job.processes.to_string();
            command.args(["--json", "spawn", "--detach", "-n", &count, "--"]);
            command.arg(&job.program).args(&job.arguments);
            command.envs(variables).current_dir(directory);
        })?;
        let spawned: Spawned = parsed(&said)?;
        Ok(spawned.namespace)
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        let known = self
            .jobs
            .get(job)
            .filter(|it| !it.attributes.contains_key(id::END_TIME));
        let queue = known
            .ok_or_else(|| ManagerError::job(job, "does not exist or has ended"))?
            .queue
            .clone();
        let said = self.ask(|command| {
            command.args(["--server", &queue, "kill", job]);
        })?;
        match said.status.success() {
            true => Ok(()),
            false => Err(failed(&said)),
        }
    }

    fn change(&mut self, job: &str, _: &JobChange) -> Result<(), ManagerError> {
        Err(ManagerError::job(
            job,
            "is not pending: jobs of PRRTE start at once",
        ))
    }

    fn copy_output(&mut self, _: &Job, _: bool, _: &mut File) -> Result<(), ManagerError> {
        let words = "PRRTE does not store the output of jobs: `sdm pmix io JOB` shows it while the job runs";
        Err(ManagerError::program("prrte", words))
    }
}

/// Parses the output of `sdm pmix` as one JSON document. If the output is empty, the error is the program's message.
fn parsed<T: for<'de> Deserialize<'de>>(said: &Said) -> Result<T, ManagerError> {
    let text = said.lines.join("\n");
    if text.is_empty() {
        return Err(failed(said));
    }
    serde_json::from_str(&text).map_err(|why| ManagerError::program(PROGRAM, why))
}

fn failed(said: &Said) -> ManagerError {
    let words = match said.complaints.is_empty() {
        true => said.status.to_string(),
        false => said.complaints.join("; "),
    };
    ManagerError::program(PROGRAM, words.trim_start_matches("sdm: "))
}

fn queues(servers: &[PrrteServer], complaints: &[String]) -> BTreeMap<String, Attributes> {
    let takers = servers.iter().filter(|it| it.program == TAKES_JOBS).count();
    let mut queues = BTreeMap::new();
    for server in servers {
        let takes = server.program == TAKES_JOBS;
        let mut queue = Attributes::new();
        set(&mut queue, id::NAME, &*server.namespace);
        let state = match takes {
            true => Queue::Normal,
            false => Queue::Stopped,
        };
        set_state(&mut queue, state);
        let what = format!(
            "{} (pid {}), PMIx {}",
            server.program, server.pid, server.version
        );
        set(&mut queue, id::QUEUE_STATUS, what);
        set(
            &mut queue,
            id::QUEUE_IS_DEFAULT,
            (takes && takers == 1).to_string(),
        );
        queues.insert(server.namespace.clone(), queue);
    }
    if queues.is_empty() {
        let mut queue = Attributes::new();
        set(&mut queue, id::NAME, NO_QUEUE);
        set_state(&mut queue, Queue::Stopped);
        let why = match complaints.is_empty() {
            true => "you have no running PRRTE daemon (prte) on this host".to_owned(),
            false => complaints.join("; "),
        };
        set(&mut queue, id::QUEUE_STATUS, why);
        queues.insert(NO_QUEUE.to_owned(), queue);
    }
    queues
}

fn job_of(server: &PrrteServer, job: &Listed) -> Job {
    let mut attributes = Attributes::new();
    let first = job.processes.first();
    let program = first.map_or("", |row| &*row.program);
    let (path, name) = program.rsplit_once('/').unwrap_or(("", program));
    set(&mut attributes, id::NAME, name);
    set(&mut attributes, id::EXEC_PATH, path);
    set(&mut attributes, id::EXEC_NAME, name);
    set(&mut attributes, id::SYSTEM_JOB_ID, &*job.namespace);
    set(
        &mut attributes,
        id::JOB_NUM_PROCS,
        job.processes.len().to_string(),
    );
    set(
        &mut attributes,
        id::USER_ID,
        files::user(geteuid().as_raw()),
    );
    let hosts: BTreeSet<&str> = job.processes.iter().map(|row| &*row.host).collect();
    set(
        &mut attributes,
        id::JOB_NODES,
        Vec::from_iter(hosts).join(","),
    );
    set(
        &mut attributes,
        id::JOB_STATUS,
        job.command.clone().unwrap_or_default(),
    );
    if server.program != TAKES_JOBS {
        set(&mut attributes, id::STARTER_PID, server.pid.to_string());
    }
    let processes: Vec<Process> = job.processes.iter().map(process).collect();
    let all = processes.iter().map(|it| snapshot::state(&it.attributes));
    let is_any = |state| all.clone().any(|it| it == Some(state));
    let has_failed =
        !processes.is_empty() && all.clone().all(|it| it == Some(states::Process::Error));
    let state = match () {
        () if is_any(states::Process::Running) => states::Job::Running,
        () if is_any(states::Process::Starting) => states::Job::Started,
        () if has_failed => states::Job::Error,
        () => states::Job::Terminated,
    };
    set_state(&mut attributes, state);
    if let Some(row) = job.processes.iter().find(|row| row.exit_code != 0) {
        set(&mut attributes, id::EXIT_CODE, row.exit_code.to_string());
    }
    Job {
        queue: server.namespace.clone(),
        attributes,
        processes,
    }
}

fn process(row: &Row) -> Process {
    let mut attributes = Attributes::new();
    let state = match &*row.state {
        "running" | "connected" | "not terminated" | "to be terminated" => states::Process::Running,
        "prepared" | "being launched" | "to be restarted" | "migrating" => {
            states::Process::Starting
        }
        "ended by a signal" => states::Process::Signalled,
        "failed" | "failed to start" | "cannot be restarted" => states::Process::Error,
        // PMIx defines no state for a rank that has ended while others run.
        _ => states::Process::Exited,
    };
    set_state(&mut attributes, state);
    // Debuggers attach on this host, where another host's pid would name an unrelated process.
    if is_this_host(&row.host) {
        set(&mut attributes, id::PROCESS_PID, row.pid.to_string());
    }
    if state == states::Process::Exited {
        set(
            &mut attributes,
            id::PROCESS_EXIT_CODE,
            row.exit_code.to_string(),
        );
    }
    Process {
        node: Some(row.host.clone()),
        attributes,
    }
}

/// Marks a job that its server no longer lists as ended; the way in which it ended is unknown.
fn end(job: &mut Job, now: i64) {
    set_state(&mut job.attributes, states::Job::Terminated);
    set(&mut job.attributes, id::END_TIME, now.to_string());
    let why = "PRRTE does not report how the job ended";
    set(&mut job.attributes, id::JOB_STATUS_MESSAGE, why);
    job.attributes.remove(id::STARTER_PID);
    for process in &mut job.processes {
        set_state(&mut process.attributes, states::Process::Exited);
    }
}

/// Parses arbitrary text as an answer of `sdm pmix`. Checks that nothing panics.
pub(crate) fn fuzz_answers(text: &str) {
    if let Ok(servers) = serde_json::from_str::<Vec<PrrteServer>>(text) {
        let mut all = Prrte {
            program: PathBuf::from(OsStr::new("sdm")),
            host: "here".to_owned(),
            jobs: BTreeMap::new(),
        };
        all.take(&servers, &[], 0);
        let _ = all.snapshot(&servers, &[]);
    }
    let _ = serde_json::from_str::<Spawned>(text);
}

#[cfg(test)]
mod tests;
