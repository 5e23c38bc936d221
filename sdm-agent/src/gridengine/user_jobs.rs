//! Details of the user's own jobs: paths of their output, causes of their error states, and their end as the accounting
//! has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sdm_runtime::{attribute as id, states};
use sdm_text::printable;

use super::accounting;
use super::programs::ask;
use super::xml::{self, Details};
use crate::manager::Submission;
use crate::snapshot::{Attributes, Job, set, set_end, set_session, set_state};

/// Time after its end for which a job is reported.
const ENDED: Duration = Duration::from_secs(86_400);
/// Number of snapshots after which the accounting is not queried any more for a job that has ended. The accounting gets
/// a job some time after its end, and never if the job did not begin or accounting is off. Nothing tells these cases
/// apart.
const TRIES_MAX: u32 = 10;
/// Maximum number of jobs per snapshot whose details are queried.
const ASKED_MAX: usize = 500;
/// Maximum number of jobs per snapshot for which the accounting is queried one by one, because its list of all jobs
/// lacks them.
const ALONE_MAX: usize = 10;
/// Maximum number of ended jobs that are reported.
const ENDED_MAX: usize = 1000;

/// Prefix of the names of sessions in which jobs wait.
pub(super) const SESSION: &str = "gridengine-";

/// State of the user's own jobs that is kept from snapshot to snapshot.
pub(super) struct UserJobs {
    pub(super) user: String,
    home: String,
    /// Details by the jobs' numbers.
    details: BTreeMap<String, Details>,
    /// The environment of jobs that this agent has submitted: Grid Engine would show it to all users.
    environments: BTreeMap<String, Vec<String>>,
    /// Jobs in the last snapshot.
    open: BTreeMap<String, Job>,
    /// Jobs that have disappeared, with the number of unsuccessful queries of the accounting.
    gone: BTreeMap<String, (Job, u32)>,
    /// Ended jobs; `None` before the first query of the accounting.
    ended: Option<BTreeMap<String, Job>>,
}

impl UserJobs {
    pub(super) fn new(user: String, home: String) -> Self {
        Self {
            user,
            home,
            details: BTreeMap::new(),
            environments: BTreeMap::new(),
            open: BTreeMap::new(),
            gone: BTreeMap::new(),
            ended: None,
        }
    }

    /// Adds the details of the user's own jobs, and the jobs that have ended.
    pub(super) fn complete(&mut self, jobs: &mut BTreeMap<String, Job>) {
        self.learn(jobs);
        for (key, job) in jobs.iter_mut() {
            if is_of(job, &self.user) {
                self.tell(key, job);
            }
        }
        self.add_ended(jobs);
        let numbers: BTreeSet<&str> = jobs.keys().map(|key| parts(key).0).collect();
        self.details.retain(|number, _| numbers.contains(&**number));
        self.environments
            .retain(|number, _| numbers.contains(&**number));
    }

    /// True while jobs have disappeared that the accounting does not list yet.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Records a submitted job with its output paths, as it may end before a query shows it.
    pub(super) fn remember(&mut self, number: &str, name: &str, job: &Submission) {
        let environment = job.environment.clone();
        self.environments.insert(number.to_owned(), environment);
        let is_array = job.options.iter().any(|option| option == "-t");
        let mut attributes = Attributes::new();
        for (id, value) in [
            (id::NAME, name),
            (id::USER_ID, &self.user),
            (id::SYSTEM_JOB_ID, number),
            (id::JOB_STATE, states::Job::Pending.word()),
            (id::JOB_NUM_PROCS, &job.processes.to_string()),
            (id::SUBMIT_TIME, &now().to_string()),
        ] {
            set(&mut attributes, id, value);
        }
        let job = Job {
            queue: job.queue.clone().unwrap_or_default(),
            attributes,
            processes: Vec::new(),
        };
        let mut jobs = BTreeMap::from([(number.to_owned(), job)]);
        self.learn(&jobs);
        // The members of an array are known once they are seen.
        if !is_array {
            jobs.iter_mut().for_each(|(key, job)| self.tell(key, job));
            self.open.append(&mut jobs);
        }
    }

    /// Queries the details of jobs that are new, or newly in an error state, by one `qstat` for all of them.
    fn learn(&mut self, jobs: &BTreeMap<String, Job>) {
        let is_unknown = |key: &str, job: &Job| {
            let (number, task) = parts(key);
            let status = job
                .attributes
                .get(id::JOB_STATUS)
                .map_or("", String::as_str);
            match self.details.get(number) {
                None => true,
                Some(known) => status.contains('E') && !known.reasons.contains_key(task),
            }
        };
        let own = jobs.iter().filter(|(_, job)| is_of(job, &self.user));
        let unknown = own.filter(|(key, job)| is_unknown(key, job));
        let unknown: BTreeSet<&str> = unknown.map(|(key, _)| parts(key).0).collect();
        let unknown: Vec<&str> = unknown.into_iter().take(ASKED_MAX).collect();
        if unknown.is_empty() {
            return;
        }
        // A query that fails is repeated with the next snapshot.
        if let Ok(said) = ask("qstat", &["-j", &unknown.join(","), "-xml"])
            && let Ok(details) = xml::details(&said.join("\n"))
        {
            self.details.extend(details);
        }
    }

    /// Copies the details of the job with this number into its attributes.
    fn tell(&self, key: &str, job: &mut Job) {
        let (number, task) = parts(key);
        let Some(known) = self.details.get(number) else {
            return;
        };
        let folder = match &*known.folder {
            "" => &self.home,
            folder => folder,
        };
        let output = self.path(&known.output, folder, 'o', key, job);
        // Errors that go with the output have no file of their own.
        let errors = match known.is_merged {
            true => output.clone(),
            false => self.path(&known.errors, folder, 'e', key, job),
        };
        let mut reason = known.reasons.get(task).cloned().unwrap_or_default();
        if reason.ends_with("exit_status of job start = 100")
            && let Some(program) = known.program.words.first()
        {
            let program = printable(program.as_bytes());
            reason = format!("{program} cannot be started, or has exited with code 100");
        }
        let is_in_error = job
            .attributes
            .get(id::JOB_STATUS)
            .is_some_and(|it| it.contains('E'));
        let attributes = &mut job.attributes;
        let mut program = known.program.clone();
        let environment = self.environments.get(number);
        program
            .environment
            .extend(environment.into_iter().flatten().cloned());
        program.tell(attributes);
        set(attributes, id::WORKING_DIR, folder);
        set(attributes, id::OUTPUT_PATH, output);
        set(attributes, id::ERROR_PATH, errors);
        set(attributes, id::ACCOUNT, &*known.account);
        if is_in_error {
            set(attributes, id::JOB_STATUS_MESSAGE, reason);
        }
        if known.is_held {
            set_session(attributes, SESSION, key);
        }
    }

    /// Path of a job's output or errors from the requested one (`qsub(1)`, `-o`), which may have variables or be a
    /// folder.
    fn path(&self, asked: &str, folder: &str, letter: char, key: &str, job: &Job) -> String {
        let (number, task) = parts(key);
        let name = job.attributes.get(id::NAME).map_or("", String::as_str);
        let usual = match key.contains('.') {
            true => format!("{name}.{letter}{number}.{task}"),
            false => format!("{name}.{letter}{number}"),
        };
        let host = job.processes.first().and_then(|it| it.node.as_deref());
        let variables = [
            ("$HOME", &*self.home),
            ("$USER", &self.user),
            ("$JOB_ID", number),
            ("$JOB_NAME", name),
            ("$HOSTNAME", host.unwrap_or("$HOSTNAME")),
            (
                "$TASK_ID",
                if key.contains('.') { task } else { "undefined" },
            ),
        ];
        let mut path = asked.to_owned();
        for (variable, value) in variables {
            path = path.replace(variable, value);
        }
        let path = Path::new(folder).join(path);
        let path = match asked.is_empty() || asked.ends_with('/') || path.is_dir() {
            // The default name is used literally, even with a slash in it.
            true => path.join(usual.trim_start_matches('/')),
            false => path,
        };
        path.to_string_lossy().into_owned()
    }

    /// Adds the user's ended jobs to a snapshot: those of the last day, and those that `qstat` has ceased to list.
    fn add_ended(&mut self, jobs: &mut BTreeMap<String, Job>) {
        let now = jobs.iter().filter(|(_, job)| is_of(job, &self.user));
        let now: BTreeMap<String, Job> = now.map(|(key, job)| (key.clone(), job.clone())).collect();
        let before = std::mem::replace(&mut self.open, now);
        for (key, job) in before {
            if !self.open.contains_key(&key) {
                self.gone.insert(key, (job, 0));
            }
        }
        // Its controller may have been away.
        self.gone.retain(|key, _| !self.open.contains_key(key));
        if self.ended.is_none() || !self.gone.is_empty() {
            self.ask_accounting();
        }
        for (key, (job, _)) in &self.gone {
            jobs.entry(key.clone()).or_insert_with(|| job.clone());
        }
        for (key, job) in self.ended.iter().flatten() {
            jobs.entry(key.clone()).or_insert_with(|| job.clone());
        }
    }

    /// Reads the user's ended jobs from the accounting: by one `qacct` for all, and by one more for each disappeared
    /// job that the first lacks, at most [`ALONE_MAX`].
    fn ask_accounting(&mut self) {
        let said = ask("qacct", &accounting::of_user(&self.user));
        // `qacct` fails where the user has no such job.
        let mut found = accounting::jobs(&said.unwrap_or_default());
        let mut ended = self.ended.take().unwrap_or_default();
        // A job that never ran is not in the user's accounting, or has no end there.
        let unknown = self.gone.keys().filter(|key| !found.contains_key(*key));
        let unknown: Vec<&String> = unknown.take(ALONE_MAX).collect();
        for key in unknown {
            let (number, task) = parts(key);
            let words = match key.contains('.') {
                true => vec!["-j", number, "-t", task],
                false => vec!["-j", number],
            };
            let said = ask("qacct", &words).unwrap_or_default();
            found.extend(accounting::jobs(&said));
        }
        for (key, (mut job, tries)) in std::mem::take(&mut self.gone) {
            match found.remove(&key) {
                None if tries + 1 < TRIES_MAX => {
                    self.gone.insert(key, (job, tries + 1));
                    continue;
                }
                None if job.state() == Some(states::Job::Error) => {}
                None => set_state(&mut job.attributes, states::Job::Terminated),
                Some(ended) => {
                    let has_not_begun = ended.state() == Some(states::Job::Error);
                    let reason = job.attributes.remove(id::JOB_STATUS_MESSAGE);
                    job.attributes.extend(ended.attributes);
                    // The reason of its host says more than the accounting's.
                    if let Some(reason) = reason.filter(|_| has_not_begun) {
                        set(&mut job.attributes, id::JOB_STATUS_MESSAGE, reason);
                    }
                    if job.queue.is_empty() {
                        job.queue = ended.queue;
                    }
                }
            }
            // One that never ran has no end in the accounting.
            let end = job.attributes.entry(id::END_TIME.to_owned());
            end.or_insert_with(|| now().to_string());
            job.attributes.remove(id::JOB_STATUS);
            for process in &mut job.processes {
                set_end(&mut process.attributes, &job.attributes);
            }
            ended.insert(key, job);
        }
        for (key, job) in found {
            ended.entry(key).or_insert(job);
        }
        let end = |job: &Job| {
            let end = job.attributes.get(id::END_TIME);
            end.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0)
        };
        let mut ends: Vec<u64> = ended.values().map(end).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        let oldest = ends.get(ENDED_MAX).map_or(0, |end| end + 1);
        let oldest = oldest.max(now().saturating_sub(ENDED.as_secs()));
        ended.retain(|_, job| end(job) >= oldest);
        self.ended = Some(ended);
    }
}

/// The present time, in seconds of Unix time.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}

fn is_of(job: &Job, user: &str) -> bool {
    job.attributes.get(id::USER_ID).is_some_and(|it| it == user)
}

/// Splits a key into the job's number and the array index, which is 1 for a job that is no array.
fn parts(key: &str) -> (&str, &str) {
    key.split_once('.').unwrap_or((key, "1"))
}
