//! The hosts of a list as one machine, reached by `ssh`: each host is a node, and runs its jobs with its own runners.
//!
//! On a host `sdm-agent` answers one request at a time ([`host_request`]). It has the same path there as here, or a
//! given one.

pub mod host_request;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sdm_hosts::HostShare;
use sdm_hosts::job::is_this_host;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, Node};
use sdm_system::files;
use sdm_system::programs::{self, remote_line};
use sdm_system::run_bounded::{Bounds, run};
use sdm_text::{printable, shell_word};

use crate::error::{ManagerError, SubmissionError};
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::snapshot::{self, Attributes, Job, Snapshot, set, set_state};
use host_request::{HostReply, HostRequest};

/// Options of `ssh` after the user's own. If an option is given twice, `ssh` uses the first value.
const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];
/// Limits of one request: time, and number of output lines.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(60),
    lines_max: 1000,
};
/// Maximum length of a reply, in bytes.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Maximum number of hosts queried at the same time.
const ASKED_MAX: usize = 64;
/// Name of the single queue that this manager reports.
const QUEUE: &str = "default";
/// Shell command that stores its standard input as an executable on a host, and prints the path.
const STAGE: &str =
    "f=$(umask 077; mktemp \"$1\") && cat >\"$f\" && chmod 700 \"$f\" && printf '%s\\n' \"$f\"";

/// The hosts of a list, as a resource manager.
pub struct Ssh {
    hosts: Vec<Host>,
    options: Vec<String>,
    /// Path of `sdm-agent` on the hosts.
    program: PathBuf,
}

/// A host, with its last reply.
struct Host {
    name: String,
    /// True if the host is this one, so that no `ssh` is needed.
    is_here: bool,
    node: Attributes,
    jobs: BTreeMap<String, Job>,
}

impl Ssh {
    /// A manager of these hosts, with the user's options of `ssh`. `program` is the path of `sdm-agent` on the hosts;
    /// `None` stands for the path that it has here.
    ///
    /// # Errors
    /// `hosts` is empty, or `program` is `None` and the path of this program is unknown.
    pub fn new(
        hosts: &[HostShare],
        options: Vec<String>,
        program: Option<PathBuf>,
    ) -> Result<Self, ManagerError> {
        if hosts.is_empty() {
            return Err(ManagerError::program("ssh", "no hosts: --hosts is missing"));
        }
        let own = std::env::current_exe().map_err(ManagerError::system(
            "cannot determine the path of sdm-agent",
        ));
        let host = |share: &HostShare| Host {
            name: share.host.clone(),
            is_here: is_this_host(&share.host),
            node: Attributes::new(),
            jobs: BTreeMap::new(),
        };
        Ok(Self {
            hosts: hosts.iter().map(host).collect(),
            options,
            program: program.map_or(own, Ok)?,
        })
    }

    /// The host on which a job is to run: the one that the submission names, or else the one with the fewest processes.
    /// Hosts that are known to be down are then left out.
    fn choose(&self, job: &Submission) -> Result<&Host, ManagerError> {
        if let Some(name) = job.options.first() {
            let mut hosts = self.hosts.iter();
            let named = hosts.find(|host| host.name == *name);
            return named.ok_or_else(|| SubmissionError::NoHost(name.clone()).into());
        }
        let is_up =
            |host: &&Host| snapshot::state(&host.node).is_none_or(|it: Node| it == Node::Up);
        let least = self.hosts.iter().filter(is_up).min_by_key(|it| it.load());
        least.ok_or_else(|| ManagerError::program("ssh", "none of the hosts can be reached"))
    }

    fn ask(&self, host: &Host, request: &HostRequest) -> Result<HostReply, ManagerError> {
        ask(host, &self.options, &self.program, request)
    }
}

impl Host {
    /// Number of processes that run on the host.
    fn load(&self) -> usize {
        let is_running = |job: &&Job| !job.attributes.contains_key(id::END_TIME);
        let jobs = self.jobs.values().filter(is_running);
        jobs.map(|job| job.processes.len()).sum()
    }

    /// Stores a new reply. A failed query keeps the known jobs; it marks the node as down, and running jobs as unknown.
    fn take(&mut self, reply: Result<HostReply, ManagerError>) {
        let why = match reply {
            Ok(HostReply::Looked(node, jobs)) => {
                (self.node, self.jobs) = (node, BTreeMap::new());
                for (number, mut job) in jobs {
                    let number = format!("{}/{number}", self.name);
                    set(&mut job.attributes, id::SYSTEM_JOB_ID, &*number);
                    set(&mut job.attributes, id::JOB_NODES, &*self.name);
                    for process in &mut job.processes {
                        process.node = Some(self.name.clone());
                    }
                    self.jobs.insert(number, job);
                }
                set(&mut self.node, id::NAME, &*self.name);
                return;
            }
            Ok(other) => format!("the host did not list its jobs: its reply is {other:?}"),
            Err(why) => why.to_string(),
        };
        set(&mut self.node, id::NAME, &*self.name);
        set_state(&mut self.node, Node::Down);
        set(&mut self.node, id::NODE_REASON, &*why);
        for job in self.jobs.values_mut() {
            if !job.attributes.contains_key(id::END_TIME) {
                job.set_unknown(&why);
            }
        }
    }
}

impl Manager for Ssh {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let (options, program) = (&self.options, &self.program);
        for some in self.hosts.chunks_mut(ASKED_MAX) {
            std::thread::scope(|scope| {
                for host in some {
                    scope.spawn(|| host.take(ask(host, options, program, &HostRequest::Look)));
                }
            });
        }
        let mut queue = Attributes::new();
        set(&mut queue, id::NAME, QUEUE);
        set_state(&mut queue, states::Queue::Normal);
        set(&mut queue, id::QUEUE_IS_DEFAULT, "true");
        let mut snapshot = Snapshot {
            machine: machine("ssh", states::Machine::Up),
            queues: [(QUEUE.to_owned(), queue)].into(),
            ..Snapshot::default()
        };
        let count = self.hosts.len().to_string();
        set(&mut snapshot.machine, id::NUM_NODES, count);
        for (index, host) in self.hosts.iter().enumerate() {
            let mut node = host.node.clone();
            set(&mut node, id::NODE_NUMBER, index.to_string());
            snapshot.nodes.insert(host.name.clone(), node);
            snapshot.jobs.extend(host.jobs.clone());
        }
        Ok(snapshot)
    }

    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError> {
        let host = self.choose(job)?;
        // The option is the host: its launcher has none.
        let job = Submission {
            options: Vec::new(),
            ..job.clone()
        };
        match self.ask(host, &HostRequest::Submit(job))? {
            HostReply::Submitted(number) => Ok(format!("{}/{number}", host.name)),
            other => Err(ManagerError::program(&host.name, format!("{other:?}"))),
        }
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        let (name, number) = job.rsplit_once('/').unwrap_or_default();
        let host = self.hosts.iter().find(|host| host.name == name);
        let host =
            host.ok_or_else(|| ManagerError::job(job, "does not run on any host of this cluster"))?;
        let request = HostRequest::Terminate(number.to_owned());
        self.ask(host, &request).map(drop)
    }

    fn copy_output(&mut self, job: &Job, errors: bool, to: &mut File) -> Result<(), ManagerError> {
        let id = if errors {
            id::ERROR_PATH
        } else {
            id::OUTPUT_PATH
        };
        let value = |id: &str| job.attributes.get(id).map_or("", String::as_str);
        let (name, path) = (value(id::JOB_NODES), value(id));
        let host = self.hosts.iter().find(|host| host.name == name);
        let host = host.ok_or_else(|| {
            let why = format!("ran on `{name}`, which is not a host of this cluster");
            ManagerError::job(value(id::SYSTEM_JOB_ID), why)
        })?;
        let mut command = match host.is_here {
            true => programs::helper("cat").map_err(ManagerError::system("cat"))?,
            false => ssh(host, &self.options)?,
        };
        match host.is_here {
            true => command.args(["--", path]),
            false => command.arg(remote_line("exec cat -- \"$1\"", &[path])),
        };
        let own = to.try_clone().map_err(ManagerError::system(path))?;
        command
            .stdin(Stdio::null())
            .stdout(own)
            .stderr(Stdio::null());
        let status = command.status().map_err(ManagerError::system(name))?;
        match status.success() {
            true => Ok(()),
            false => Err(refusal(host, format!("{path}: {status}"))),
        }
    }

    fn stage(&mut self, program: &str, folder: &str) -> Result<String, ManagerError> {
        let [host] = &self.hosts[..] else {
            return Err(ManagerError::program(
                "ssh",
                "a program can be copied to one host only",
            ));
        };
        if host.is_here {
            return Ok(program.to_owned());
        }
        let folder = match folder.is_empty() {
            true => "/tmp",
            false => folder,
        };
        let file = files::open(program.as_ref()).map_err(ManagerError::system(program))?;
        let place = format!("{folder}/sdm-staged-XXXXXXXX");
        let mut command = ssh(host, &self.options)?;
        command.arg(remote_line(STAGE, &[&place]));
        let said = command.stdin(file).output();
        let said = said.map_err(ManagerError::system(&*host.name))?;
        let path = String::from_utf8_lossy(&said.stdout);
        match path.lines().last().filter(|_| said.status.success()) {
            Some(path) if path.starts_with('/') => Ok(path.to_owned()),
            _ => {
                let words = String::from_utf8_lossy(&said.stderr);
                let words = words
                    .lines()
                    .last()
                    .unwrap_or("the program cannot be copied to the host");
                Err(refusal(host, printable(words.as_bytes())))
            }
        }
    }

    fn unstage(&mut self, program: &str) -> Result<(), ManagerError> {
        let [host] = &self.hosts[..] else {
            return Ok(());
        };
        let mut command = ssh(host, &self.options)?;
        command.arg(remote_line("exec rm -f -- \"$1\"", &[program]));
        let said = run(&mut command, &[], BOUNDS).map_err(ManagerError::system(&*host.name))?;
        match said.status.success() {
            true => Ok(()),
            false => Err(refusal(host, format!("{program}: {}", said.status))),
        }
    }

    fn change(&mut self, job: &str, _: &JobChange) -> Result<(), ManagerError> {
        let why = "is not pending: jobs on hosts without a queue start at once";
        Err(ManagerError::job(job, why))
    }
}

/// Sends a request to a host and returns its reply. A reply that refuses the request is returned as an error.
fn ask(
    host: &Host,
    options: &[String],
    program: &Path,
    request: &HostRequest,
) -> Result<HostReply, ManagerError> {
    let mut command = match host.is_here {
        true => {
            let mut command = programs::at(program);
            command.arg(host_request::WORD);
            command
        }
        false => {
            let mut command = ssh(host, options)?;
            let program = shell_word(&program.to_string_lossy());
            command.arg(format!("exec {program} {}", host_request::WORD));
            command
        }
    };
    let mut text = serde_json::to_vec(request).map_err(|why| refusal(host, why))?;
    text.push(b'\n');
    let said = run(&mut command, &text, BOUNDS).map_err(ManagerError::system(&*host.name))?;
    if !said.status.success() {
        let status = said.status.to_string();
        let words = said.complaints.last().unwrap_or(&status);
        return Err(refusal(host, printable(words.as_bytes())));
    }
    // Login scripts may have printed text before the reply.
    let reply = said.lines.last().map(String::as_str).unwrap_or_default();
    if reply.len() > REPLY_BYTES_MAX {
        return Err(refusal(
            host,
            format!(
                "the reply of the host has {} bytes: the maximum is {REPLY_BYTES_MAX}",
                reply.len()
            ),
        ));
    }
    match serde_json::from_str(reply).map_err(|why| refusal(host, why))? {
        HostReply::Refused(why) => Err(refusal(host, printable(why.as_bytes()))),
        reply => Ok(reply),
    }
}

/// An `ssh` command for a host; the caller appends the remote command.
fn ssh(host: &Host, options: &[String]) -> Result<Command, ManagerError> {
    let found = files::search("ssh");
    let ssh = found.ok_or_else(|| ManagerError::NoProgram("ssh".to_owned()))?;
    let mut command = programs::at(ssh);
    command.args(options).args(OPTIONS).args(["--", &host.name]);
    Ok(command)
}

fn refusal(host: &Host, words: impl ToString) -> ManagerError {
    ManagerError::program(&host.name, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_for_output_of_a_removed_host_names_job_and_host() {
        let host = HostShare {
            host: "localhost".to_owned(),
            slots: None,
        };
        let mut ssh = Ssh::new(&[host], Vec::new(), Some("/nosuch/sdm-agent".into())).unwrap();
        let mut attributes = Attributes::new();
        set(&mut attributes, id::SYSTEM_JOB_ID, "n9/7");
        set(&mut attributes, id::JOB_NODES, "n9");
        let job = Job {
            queue: String::new(),
            attributes,
            processes: Vec::new(),
        };
        let mut to = File::open("/dev/null").unwrap();
        let why = ssh.copy_output(&job, false, &mut to).unwrap_err();
        let told = "job n9/7 ran on `n9`, which is not a host of this cluster";
        assert_eq!(why.to_string(), told);
    }
}
