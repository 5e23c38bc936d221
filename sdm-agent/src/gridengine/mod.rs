//! Grid Engine, by its own commands: `qstat`, `qhost`, `qsub`, `qdel`, `qhold`, `qrls`, `qalter`, `qconf` and `qacct`.
//!
//! Jobs that have ended are no longer there: the user's own are looked up in the accounting when they go, and told for a day.

mod xml;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::unistd::{Uid, User};
use sdm_system::bounded::{Bounds, run};
use sdm_system::files;
use sdm_text::printable;

use crate::error::ManagerError;
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::script;
use crate::snapshot::{Attributes, Job, Snapshot, set};
pub use xml::UnreadableXml;

/// How long one of Grid Engine's programs may take.
const WAIT: Duration = Duration::from_secs(90);
/// How many lines it may say.
const LINES_MAX: usize = 32 << 20;
/// For how long a job that has ended is told.
const ENDED: Duration = Duration::from_secs(86_400);
/// How many looks later the accounting is expected to know of a job that has ended.
const TRIES_MAX: u32 = 10;

/// A Grid Engine.
pub struct GridEngine {
    user: String,
    home: String,
    /// The user's own jobs as the last look found them.
    own: BTreeMap<String, Job>,
    /// Those that are gone, and how often the accounting was asked of them in vain.
    gone: BTreeMap<String, (Job, u32)>,
    /// Those that have ended, and when that was found.
    ended: BTreeMap<String, (Job, SystemTime)>,
    /// Where the user's own jobs print and run.
    paths: BTreeMap<String, [String; 3]>,
}

impl GridEngine {
    /// The one whose commands are on `PATH`.
    ///
    /// # Errors
    /// There are none, or this user has no name.
    pub fn new() -> Result<Self, ManagerError> {
        if files::search("qstat").is_none() {
            return Err(ManagerError::NoProgram("qstat".to_owned()));
        }
        let user = User::from_uid(Uid::effective());
        let user = user.map_err(|why| ManagerError::System("this user".to_owned(), why.into()))?;
        let home = user
            .as_ref()
            .map(|it| it.dir.to_string_lossy().into_owned());
        Ok(Self {
            user: files::user(Uid::effective().as_raw()),
            home: home.unwrap_or_default(),
            own: BTreeMap::new(),
            gone: BTreeMap::new(),
            ended: BTreeMap::new(),
            paths: BTreeMap::new(),
        })
    }

    /// Tells where the user's own jobs print; each is asked of once.
    fn add_paths(&mut self, jobs: &mut BTreeMap<String, Job>) {
        for (key, job) in jobs {
            if job.attributes.get("userId") != Some(&self.user) {
                continue;
            }
            let (number, task) = key.split_once('.').unwrap_or((key, ""));
            if !self.paths.contains_key(number) {
                let said = ask("qstat", &["-j", number, "-xml"], "");
                let found = said.ok().and_then(|text| xml::paths(&text.join("\n")).ok());
                self.paths
                    .insert(number.to_owned(), found.unwrap_or_default());
            }
            let Some([output, errors, folder]) = self.paths.get(number) else {
                continue;
            };
            let folder = if folder.is_empty() {
                &self.home
            } else {
                folder
            };
            let name = job.attributes.get("name").map_or("", String::as_str);
            let usual = |letter: char| match task.is_empty() {
                true => format!("{folder}/{name}.{letter}{number}"),
                false => format!("{folder}/{name}.{letter}{number}.{task}"),
            };
            let path = |given: &str, letter| match given {
                "" => usual(letter),
                given if given.ends_with('/') => format!("{given}{name}.{letter}{number}"),
                given => given.replace("$JOB_ID", number).replace("$TASK_ID", task),
            };
            let paths = [
                ("outputPath", path(output, 'o')),
                ("errorPath", path(errors, 'e')),
            ];
            set(&mut job.attributes, "workingDir", &**folder);
            for (id, path) in paths {
                set(&mut job.attributes, id, path);
            }
        }
    }

    /// A job may have ended before it is seen: it is one that was there, and where it prints is known.
    fn remember(&mut self, number: &str, name: &str, job: &Submission) {
        let option = |wanted: &str| {
            let place = job.options.iter().position(|option| option == wanted);
            let value = place.and_then(|place| job.options.get(place + 1));
            value.cloned().unwrap_or_default()
        };
        let paths = [option("-o"), option("-e"), job.directory.clone()];
        self.paths.insert(number.to_owned(), paths);
        // The members of an array are known once they are seen.
        if job.options.iter().any(|option| option == "-t") {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut attributes = Attributes::new();
        for (id, value) in [
            ("name", name),
            ("userId", &self.user),
            ("systemJobId", number),
            ("jobState", "PENDING"),
            ("jobNumProcs", &job.processes.to_string()),
            (
                "submitTime",
                &since.map_or(0, |it| it.as_secs()).to_string(),
            ),
        ] {
            set(&mut attributes, id, value);
        }
        let job = Job {
            queue: job.queue.clone().unwrap_or_default(),
            attributes,
            processes: Vec::new(),
        };
        let mut jobs = BTreeMap::from([(number.to_owned(), job)]);
        self.add_paths(&mut jobs);
        self.own.append(&mut jobs);
    }

    /// Looks up those of the user's own jobs that are gone.
    fn add_ended(&mut self, jobs: &mut BTreeMap<String, Job>) {
        let is_own = |job: &&Job| job.attributes.get("userId") == Some(&self.user);
        let now: BTreeMap<String, Job> = jobs
            .iter()
            .filter(|(_, job)| is_own(job))
            .map(|(key, job)| (key.clone(), job.clone()))
            .collect();
        let before = std::mem::replace(&mut self.own, now);
        for (key, job) in before {
            if !self.own.contains_key(&key) {
                self.gone.insert(key, (job, 0));
            }
        }
        let mut found = Vec::new();
        for (key, (job, tries)) in &mut self.gone {
            let (number, task) = key.split_once('.').unwrap_or((key, ""));
            let mut words = vec!["-j", number];
            if !task.is_empty() {
                words.extend(["-t", task]);
            }
            *tries += 1;
            let ended = ask("qacct", &words, "")
                .map(|lines| xml::ended(&lines))
                .ok();
            let ended = ended.filter(|ended| ended.contains_key("exitCode"));
            if ended.is_none() && *tries < TRIES_MAX {
                continue;
            }
            job.attributes.remove("jobStatus");
            set(&mut job.attributes, "jobState", "TERMINATED");
            job.attributes.extend(ended.unwrap_or_default());
            for process in &mut job.processes {
                set(&mut process.attributes, "processState", "EXITED");
            }
            found.push(key.clone());
        }
        for key in found {
            if let Some((job, _)) = self.gone.remove(&key) {
                self.ended.insert(key, (job, SystemTime::now()));
            }
        }
        self.ended
            .retain(|_, (_, since)| since.elapsed().is_ok_and(|it| it < ENDED));
        for (key, (job, _)) in self.gone.iter() {
            jobs.entry(key.clone()).or_insert_with(|| job.clone());
        }
        for (key, (job, _)) in &self.ended {
            jobs.entry(key.clone()).or_insert_with(|| job.clone());
        }
        self.paths.retain(|number, _| {
            let of_it = |key: &String| key.split('.').next() == Some(number);
            jobs.keys().any(of_it)
        });
    }
}

impl Manager for GridEngine {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let said = ask("qhost", &["-q", "-xml"], "")?.join("\n");
        let (nodes, queues) = xml::places(&said).map_err(ManagerError::Xml)?;
        let said = ask("qstat", &["-u", "*", "-g", "dt", "-xml"], "")?.join("\n");
        let mut jobs = xml::jobs(&said).map_err(ManagerError::Xml)?;
        self.add_paths(&mut jobs);
        self.add_ended(&mut jobs);
        let mut of_it = machine("gridengine", "UP");
        of_it.insert("numNodes".to_owned(), nodes.len().to_string());
        of_it.insert("userId".to_owned(), self.user.clone());
        let mut snapshot = Snapshot {
            machine: of_it,
            nodes,
            queues,
            jobs,
        };
        // Jobs that wait have no queue yet.
        let first = snapshot.queues.keys().next().cloned().unwrap_or_default();
        if snapshot.queues.is_empty() {
            let queue = Attributes::from([("name".to_owned(), "default".to_owned())]);
            snapshot.queues.insert("default".to_owned(), queue);
        }
        for job in snapshot
            .jobs
            .values_mut()
            .filter(|job| job.queue.is_empty())
        {
            job.queue.clone_from(&first);
        }
        let used = snapshot.jobs.values().flat_map(|job| &job.processes);
        let used: Vec<String> = used.filter_map(|it| it.node.clone()).collect();
        for (name, node) in &mut snapshot.nodes {
            let word = if used.contains(name) {
                "USER_ALLOC_SHARED"
            } else {
                "NONE"
            };
            set(node, "nodeExtraState", word);
        }
        Ok(snapshot)
    }

    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError> {
        if job.debug && job.debugger.is_empty() {
            let words = "debug=true needs debugExecPath under Grid Engine";
            return Err(ManagerError::program("qsub", words));
        }
        let program = job.program.rsplit('/').next().unwrap_or_default();
        let name = if job.name.is_empty() {
            program
        } else {
            &job.name
        };
        let mut options: Vec<String> = ["-terse", "-S", "/bin/sh", "-N", name]
            .map(str::to_owned)
            .to_vec();
        if let Some(queue) = &job.queue {
            options.extend(["-q".to_owned(), queue.clone()]);
        }
        if !job.directory.is_empty() {
            options.extend(["-wd".to_owned(), job.directory.clone()]);
        }
        let has_environment = job.options.iter().any(|option| option == "-pe");
        if job.processes > 1 && !has_environment {
            let all = ask("qconf", &["-spl"], "")?;
            let first = all.first().ok_or_else(|| {
                let words = "several processes need a parallel environment, and there is none";
                ManagerError::program("qconf", words)
            })?;
            options.extend(["-pe".to_owned(), first.clone(), job.processes.to_string()]);
        }
        options.extend(job.options.iter().cloned());
        let starter = match job.processes {
            1 => "exec".to_owned(),
            // Open MPI and Hydra find Grid Engine's hosts by themselves.
            count => format!("exec mpirun -n {count}"),
        };
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let said = ask("qsub", &options, &script::of(job, &starter))?;
        let number = said.last().map(String::as_str).unwrap_or_default();
        // Of an array its members are behind a dot; the first stands for it.
        let (number, members) = number.split_once('.').unwrap_or((number, ""));
        let first = members.split(['-', ':']).next().unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            let words = printable(said.join(" ").as_bytes()).to_string();
            let words = format!("no number of a job in `{words}`");
            return Err(ManagerError::program("qsub", words));
        }
        self.remember(number, name, job);
        Ok(match first {
            "" => number.to_owned(),
            first => format!("{number}.{first}"),
        })
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        let (number, task) = job.split_once('.').unwrap_or((job, ""));
        match task {
            "" => ask("qdel", &[number], ""),
            task => ask("qdel", &[number, "-t", task], ""),
        }
        .map(drop)
    }

    fn change(&mut self, job: &str, change: &JobChange) -> Result<(), ManagerError> {
        match change {
            JobChange::Hold => ask("qhold", &[job], ""),
            JobChange::Release => ask("qrls", &[job], ""),
            JobChange::Priority(number) => ask("qalter", &["-p", &number.to_string(), job], ""),
            JobChange::Move(queue) => ask("qalter", &["-q", queue, job], ""),
        }
        .map(drop)
    }
}

/// What one of Grid Engine's programs says.
fn ask(program: &str, arguments: &[&str], input: &str) -> Result<Vec<String>, ManagerError> {
    let found = files::search(program);
    let path = found.ok_or_else(|| ManagerError::NoProgram(program.to_owned()))?;
    let bounds = Bounds {
        wait: WAIT,
        lines_max: LINES_MAX,
    };
    let mut command = Command::new(path);
    // Times and names as they are everywhere, whatever the user's own defaults are.
    command.args(arguments).env("LC_ALL", "C").env("TZ", "UTC");
    let said =
        run(&mut command, input.as_bytes(), bounds).map_err(ManagerError::system(program))?;
    if said.status.success() {
        return Ok(said.lines);
    }
    let complaint = said.complaints.last().or(said.lines.last());
    let words = complaint.map_or_else(
        || said.status.to_string(),
        |line| printable(line.as_bytes()).to_string(),
    );
    Err(ManagerError::program(program, words))
}

/// Reads any text as whatever Grid Engine's programs say: nothing panics.
pub(crate) fn fuzz_answers(text: &str) {
    let _ = xml::places(text);
    let _ = xml::jobs(text);
    let _ = xml::paths(text);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let _ = xml::ended(&lines);
}

#[cfg(test)]
mod tests;
