//! The guard of an invoke server: a separate process that knows the running jobs, and ends them if the server does not.

use sdm_system::programs;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sdm_runtime::attribute as id;
use serde::{Deserialize, Serialize};

use super::server::JobNumber;
use super::target::Target;
use crate::manager::Manager;

/// The argument with which `sdm-agent` runs as a guard.
pub const WORD: &str = "--guard-jobs";
/// Time limit for the guard to find and end jobs.
const END_WAIT: Duration = Duration::from_secs(60);
/// Time for which a job that its manager does not report is searched: the manager may be accepting it at that moment.
const SEARCH: Duration = Duration::from_secs(10);
/// Pause between two rounds of requests to end the remaining jobs.
const PAUSE: Duration = Duration::from_millis(300);

/// A message to the guard, one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A job is about to be submitted to a manager, under this job name.
    Starts(JobNumber, Target, String),
    /// The number that its manager has given a job is known.
    Has(JobNumber, String),
    /// A job has ended, or was not started. The guard forgets it.
    Over(JobNumber),
}

/// The invoke server's end of the pipe to its guard. The guard ends the jobs once all copies of this are gone.
#[derive(Clone)]
pub struct Guard(Arc<Mutex<ChildStdin>>);

impl Guard {
    /// Starts a guard process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut command = programs::at(program);
        command.arg(WORD).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let input = input.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(Self(Arc::new(Mutex::new(input))))
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Sends the guard a message. Does nothing if the guard has ended: a living server ends its jobs itself.
    pub(super) fn note(&self, note: &Note) {
        let Ok(mut line) = serde_json::to_vec(note) else {
            return;
        };
        line.push(b'\n');
        let mut input = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = input.write_all(&line);
    }
}

/// A job that the guard must end: it may have been submitted, and the server has not reported its end.
struct Watched {
    target: Target,
    name: String,
    id: Option<String>,
}

/// Reads the server's messages until they end, and then ends the remaining jobs.
///
/// # Errors
/// [`io::Error`]: the input cannot be read, or a line is not a message.
pub fn run(input: impl BufRead) -> io::Result<()> {
    // Signals for the client's process group must not reach this process. `setsid` succeeds where the guard was
    // started as above.
    let _ = nix::unistd::setsid();
    let mut jobs: BTreeMap<JobNumber, Watched> = BTreeMap::new();
    for line in input.lines() {
        match serde_json::from_str(&line?) {
            Ok(Note::Starts(number, target, name)) => {
                let id = None;
                jobs.insert(number, Watched { target, name, id });
            }
            Ok(Note::Has(number, id)) => {
                if let Some(job) = jobs.get_mut(&number) {
                    job.id = Some(id);
                }
            }
            Ok(Note::Over(number)) => {
                jobs.remove(&number);
            }
            Err(why) => return Err(io::Error::other(why)),
        }
    }
    end(jobs);
    Ok(())
}

/// Ends jobs: repeats the requests until no job is left, at most for [`END_WAIT`].
fn end(mut jobs: BTreeMap<JobNumber, Watched>) {
    let began = Instant::now();
    let mut managers: BTreeMap<Target, Box<dyn Manager>> = BTreeMap::new();
    while !jobs.is_empty() && began.elapsed() < END_WAIT {
        jobs.retain(|_, job| {
            let manager = match managers.get_mut(&job.target) {
                Some(manager) => manager,
                None => match job.target.open() {
                    Ok(manager) => managers.entry(job.target.clone()).or_insert(manager),
                    Err(_) => return true,
                },
            };
            match end_one(&mut **manager, job) {
                Some(is_left) => is_left,
                None => began.elapsed() < SEARCH,
            }
        });
        thread::sleep(PAUSE);
    }
}

/// Asks the manager to end a job. Returns true if the job still runs, false if it has ended, and `None` if it is not
/// found or the query fails.
fn end_one(manager: &mut dyn Manager, job: &mut Watched) -> Option<bool> {
    if job.id.is_none() {
        let all = manager.look().ok()?.jobs;
        let mut named = all
            .iter()
            .filter(|(_, it)| it.attributes.get(id::NAME) == Some(&job.name));
        job.id = named.next().map(|(id, _)| id.clone());
    }
    let id = job.id.clone()?;
    // The manager refuses to end a job that has ended; the query shows that.
    let _ = manager.terminate(&id);
    let found = manager.look_at(std::slice::from_ref(&id)).ok()?;
    Some(!found.get(&id)?.state()?.has_ended())
}
