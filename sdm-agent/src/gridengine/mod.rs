//! Grid Engine, by its own commands: `qstat`, `qhost`, `qsub`, `qdel`, `qhold`, `qrls`, `qalter`, `qconf` and `qacct`.
//!
//! A snapshot costs its master two requests (`qhost`, `qstat`), and one more where the user has new jobs. `qstat`
//! does not list jobs that have ended: the user's own are looked up in the accounting with the first snapshot, and
//! when one disappears.

mod accounting;
mod job_words;
mod programs;
mod user_jobs;
mod xml;

use nix::unistd::{Uid, User};
use sdm_runtime::attribute as id;
use sdm_runtime::states::Machine;
use sdm_system::files;
use sdm_text::printable;

use crate::error::ManagerError;
use crate::held_jobs::HeldSessions;
use crate::manager::{JobChange, Manager, Submission, machine};
use crate::script;
use crate::snapshot::{Attributes, Job, Snapshot};
use programs::{ask, order};
use user_jobs::UserJobs;
pub use xml::UnreadableXml;

/// The exit code of a script that puts its job into the error state (`sge_shepherd(8)`).
const NOT_STARTED: u8 = 100;
/// Shell expression for the number of the job in which the shell runs. A member of an array has its index after a dot.
/// For other jobs Grid Engine gives `undefined` as the index, which is removed.
const NUMBER: &str = r#""$(PATH=/usr/local/bin:/usr/bin:/bin; echo "$JOB_ID.${SGE_TASK_ID-}" | sed 's/[.]undefined$//; s/[.]$//')""#;

/// The Grid Engine whose commands are on `PATH`, as a resource manager.
pub struct GridEngine {
    own: UserJobs,
}

impl GridEngine {
    /// The Grid Engine whose commands are on `PATH`.
    ///
    /// # Errors
    /// Grid Engine's commands are not on `PATH`, or the system's user database cannot be read.
    pub fn new() -> Result<Self, ManagerError> {
        if files::search("qstat").is_none() {
            return Err(ManagerError::NoProgram("qstat".to_owned()));
        }
        let user = User::from_uid(Uid::effective());
        let user = user.map_err(|why| {
            ManagerError::System("cannot get the name of this user".to_owned(), why.into())
        })?;
        let home = user
            .as_ref()
            .map(|it| it.dir.to_string_lossy().into_owned());
        let user = files::user(Uid::effective().as_raw());
        Ok(Self {
            own: UserJobs::new(user, home.unwrap_or_default()),
        })
    }
}

impl Manager for GridEngine {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        let said = ask("qhost", &["-q", "-xml"])?.join("\n");
        let (nodes, queues) = xml::places(&said).map_err(ManagerError::Xml)?;
        let said = ask("qstat", &["-u", "*", "-g", "dt", "-r", "-xml"])?.join("\n");
        let mut jobs = xml::jobs(&said).map_err(ManagerError::Xml)?;
        self.own.complete(&mut jobs);
        let mut of_it = machine("gridengine", Machine::Up);
        of_it.insert(id::NUM_NODES.to_owned(), nodes.len().to_string());
        of_it.insert(id::USER_ID.to_owned(), self.own.user.clone());
        let mut snapshot = Snapshot {
            machine: of_it,
            nodes,
            queues,
            jobs,
            is_unsettled: self.own.is_unsettled(),
        };
        // Jobs that wait have no queue yet.
        let first = snapshot.queues.keys().next().cloned().unwrap_or_default();
        if snapshot.queues.is_empty() {
            let queue = Attributes::from([(id::NAME.to_owned(), "default".to_owned())]);
            snapshot.queues.insert("default".to_owned(), queue);
        }
        for job in snapshot
            .jobs
            .values_mut()
            .filter(|job| job.queue.is_empty())
        {
            job.queue.clone_from(&first);
        }
        let nodes_of = |job: &Job| {
            job.processes
                .iter()
                .filter_map(|it| it.node.clone())
                .collect()
        };
        snapshot.mark_nodes(&self.own.user, nodes_of, |_| false);
        Ok(snapshot)
    }

    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError> {
        let program = job.program.rsplit('/').next().unwrap_or_default();
        let name = match &*job.name {
            "" => script::plain_name(program),
            name => name.to_owned(),
        };
        let mut options: Vec<String> = ["-terse", "-S", "/bin/sh", "-N", &name]
            .map(str::to_owned)
            .to_vec();
        if HeldSessions::wants(job) {
            let (variable, word) = xml::HELD;
            options.extend(["-ac".to_owned(), format!("{variable}={word}")]);
        }
        if let Some(queue) = &job.queue {
            options.extend(["-q".to_owned(), queue.clone()]);
        }
        if !job.directory.is_empty() {
            options.extend(["-wd".to_owned(), job.directory.clone()]);
        }
        let has_environment = job.options.iter().any(|option| option == "-pe");
        if job.processes > 1 && !has_environment {
            let all = ask("qconf", &["-spl"])?;
            let first = all.first().ok_or_else(|| {
                let words = "a job of several processes needs a parallel environment, and this Grid Engine has none";
                ManagerError::program("qconf", words)
            })?;
            options.extend(["-pe".to_owned(), first.clone(), job.processes.to_string()]);
        }
        options.extend(job.options.iter().cloned());
        options.extend(job_words::operands(job.words()));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let said = order("qsub", &options, &script(job)?)?;
        let number = said.last().map(String::as_str).unwrap_or_default();
        // For an array, the indices of its members follow a dot; the first member represents the array.
        let (number, members) = number.split_once('.').unwrap_or((number, ""));
        let first = members.split(['-', ':']).next().unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            let words = printable(said.join(" ").as_bytes()).to_string();
            let words = format!("the output `{words}` contains no job number");
            return Err(ManagerError::program("qsub", words));
        }
        self.own.remember(number, &name, job);
        Ok(match first {
            "" => number.to_owned(),
            first => format!("{number}.{first}"),
        })
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        let (number, task) = job.split_once('.').unwrap_or((job, ""));
        match task {
            "" => order("qdel", &[number], ""),
            task => order("qdel", &[number, "-t", task], ""),
        }
        .map(drop)
    }

    fn change(&mut self, job: &str, change: &JobChange) -> Result<(), ManagerError> {
        match change {
            JobChange::Hold => order("qhold", &[job], ""),
            JobChange::Release => order("qrls", &[job], ""),
            JobChange::Priority(number) => order("qalter", &["-p", &number.to_string(), job], ""),
            JobChange::Move(queue) => order("qalter", &["-q", queue, job], ""),
        }
        .map(drop)
    }
}

/// The batch script for a job. `qsub` takes lines that begin with `#$`, or with another prefix of the site, for options.
/// So no line of an argument or a variable begins with `#`.
fn script(job: &Submission) -> Result<String, ManagerError> {
    let held = HeldSessions {
        prefix: user_jobs::SESSION,
    };
    let script = match (HeldSessions::wants(job), job.processes) {
        (true, 1) => held.script(job, NUMBER, "--launcher local"),
        (true, _) => held.script(job, NUMBER, ""),
        (false, count) if job.batch || count == 1 => Ok(checked(job, "exec")),
        // Open MPI and Hydra find Grid Engine's hosts by themselves.
        (false, count) => Ok(checked(job, &format!("exec mpirun -n {count}"))),
    };
    // A line break of the script's own has no `#` behind it: this one is within single quotes.
    Ok(script?.replace("\n#", "\n''#"))
}

/// A script that checks the program on the job's first host, and then executes `starter` with it.
fn checked(job: &Submission, starter: &str) -> String {
    let check = script::checked(job, starter, ":", NOT_STARTED);
    script::head(job) + &check
}

/// Parses arbitrary text as output of Grid Engine's programs. Checks that nothing panics.
pub(crate) fn fuzz_answers(text: &str) {
    let _ = xml::places(text);
    let _ = xml::jobs(text);
    let _ = xml::details(text);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let _ = accounting::jobs(&lines);
}

#[cfg(test)]
mod tests;
