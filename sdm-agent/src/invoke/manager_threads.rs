//! Jobs of the invoke server at their managers: a thread for each manager, which starts, watches and ends its jobs.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use sdm_runtime::{attribute as id, states};
use sdm_system::files::{self, Writing};

use super::attributes::JobRequest;
use super::guard::{Guard, Note};
use super::options;
use super::server::{JobNumber, JobState};
use super::target::Target;
use crate::error::ManagerError;
use crate::manager::Manager;
use crate::script;
use crate::snapshot::{self, Job};

/// The shortest pause between two queries of a manager's jobs.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause between two queries of a manager's jobs, unless the client sets one or the queries take long.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The pause after a query of a manager is at least this many times as long as the query took.
const PAUSE_OF_LOOK: u32 = 10;
/// Number of queries in a row that lack a job, at which it counts as gone.
const MISSING_MAX: u32 = 3;

/// A request to a manager's thread.
enum ManagerRequest {
    Start(JobNumber, Box<JobRequest>),
    Cancel(JobNumber),
    Forget(JobNumber),
}

/// A change of a job's state, or a line for the log.
#[derive(Debug)]
pub enum JobUpdate {
    /// A job is in this state now. The text is the message for the log.
    Job(JobNumber, JobState, String),
    /// A line for the log of the server.
    Log(String),
}

/// The threads of all managers that have been given a job, and the channel by which they report.
pub struct ManagerThreads {
    threads: BTreeMap<Target, Sender<ManagerRequest>>,
    homes: BTreeMap<JobNumber, Target>,
    news: Receiver<JobUpdate>,
    sender: NewsSender,
    bell: PipeReader,
    guard: Guard,
}

/// The maximum pause between two queries: the shortest polling interval in seconds that any of the jobs requests, at
/// most an hour; 0 requests none. Without a request it is [`PAUSE_MAX`].
fn pause_max(asked: impl Iterator<Item = u64>) -> Duration {
    let shortest = asked.filter(|seconds| *seconds > 0).min();
    shortest
        .map_or(PAUSE_MAX, Duration::from_secs)
        .min(Duration::from_secs(3600))
}

/// Sends updates from a manager's thread to the event loop, and writes a byte to the pipe that wakes the loop.
struct NewsSender {
    news: Sender<JobUpdate>,
    bell: PipeWriter,
}

impl NewsSender {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            news: self.news.clone(),
            bell: self.bell.try_clone()?,
        })
    }

    fn send(&mut self, news: JobUpdate) {
        // Without a receiver the process is ending.
        let _ = self.news.send(news);
        let _ = self.bell.write_all(&[1]);
    }
}

impl ManagerThreads {
    /// Starts without threads and jobs. `guard` ends the jobs that this process leaves running.
    ///
    /// # Errors
    /// The pipe that wakes the event loop cannot be made.
    pub fn new(guard: Guard) -> io::Result<Self> {
        let (sender, news) = channel();
        let (bell, ring) = io::pipe()?;
        Ok(Self {
            threads: BTreeMap::new(),
            homes: BTreeMap::new(),
            news,
            sender: NewsSender {
                news: sender,
                bell: ring,
            },
            bell,
            guard,
        })
    }

    /// The pipe that wakes the event loop: readable while updates wait.
    #[must_use]
    pub fn bell(&self) -> &PipeReader {
        &self.bell
    }

    /// Returns the next update; `None` if none waits. Call it once for each time that the pipe has become readable.
    ///
    /// # Errors
    /// [`io::Error`] of the pipe.
    pub fn news(&mut self) -> io::Result<Option<JobUpdate>> {
        self.bell.read_exact(&mut [0])?;
        Ok(self.news.try_recv().ok())
    }

    /// Has a manager's thread start a job. The thread is started if the manager has none yet.
    ///
    /// # Errors
    /// The thread or its descriptors cannot be made.
    pub fn start(
        &mut self,
        number: JobNumber,
        target: Target,
        request: Box<JobRequest>,
    ) -> io::Result<()> {
        if !self.threads.contains_key(&target) {
            let (ask, asked) = channel();
            let work = Thread {
                target: target.clone(),
                manager: None,
                jobs: BTreeMap::new(),
                news: self.sender.try_clone()?,
                guard: self.guard.try_clone()?,
                pause: PAUSE_MIN,
            };
            let thread = thread::Builder::new().name("manager".to_owned());
            thread.spawn(move || work.run(&asked))?;
            self.threads.insert(target.clone(), ask);
        }
        self.homes.insert(number, target);
        self.ask(number, ManagerRequest::Start(number, request));
        Ok(())
    }

    /// Asks the manager's thread to end a job.
    pub fn cancel(&mut self, number: JobNumber) {
        self.ask(number, ManagerRequest::Cancel(number));
    }

    /// Has the manager's thread delete its record of a job that has ended.
    pub fn forget(&mut self, number: JobNumber) {
        self.ask(number, ManagerRequest::Forget(number));
        self.homes.remove(&number);
    }

    fn ask(&self, number: JobNumber, ask: ManagerRequest) {
        let home = self.homes.get(&number);
        if let Some(thread) = home.and_then(|home| self.threads.get(home)) {
            // It ends with this process only.
            let _ = thread.send(ask);
        }
    }
}

/// A job that a manager has accepted.
struct Running {
    /// The number that the manager has given the job.
    id: String,
    request: Box<JobRequest>,
    state: JobState,
    missing: u32,
    /// Path of the copied executable on the manager's host; `None` if none was copied.
    staged: Option<String>,
    cancelled: bool,
}

struct Thread {
    target: Target,
    manager: Option<Box<dyn Manager>>,
    jobs: BTreeMap<JobNumber, Running>,
    news: NewsSender,
    guard: Guard,
    pause: Duration,
}

impl Thread {
    fn run(mut self, asked: &Receiver<ManagerRequest>) {
        let mut next = Instant::now();
        loop {
            let watches = self.jobs.values().any(|job| !is_over(job.state));
            let ask = match watches {
                true => asked.recv_timeout(next.saturating_duration_since(Instant::now())),
                false => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match ask {
                Ok(ask) => {
                    self.carry_out(ask);
                    // The effect of the request should be seen soon.
                    self.pause = PAUSE_MIN;
                    next = next.min(Instant::now() + self.pause);
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let began = Instant::now();
                    self.look();
                    let least = began.elapsed() * PAUSE_OF_LOOK;
                    next = Instant::now() + self.pause.max(least);
                    self.pause = (self.pause * 2).min(self.longest());
                }
            }
        }
    }

    fn longest(&self) -> Duration {
        pause_max(self.jobs.values().map(|job| job.request.status_polling))
    }

    fn carry_out(&mut self, ask: ManagerRequest) {
        match ask {
            ManagerRequest::Start(number, request) => {
                if let Err(why) = self.start(number, request) {
                    self.guard.note(&Note::Over(number));
                    self.tell(number, JobState::Failed, why.to_string());
                }
            }
            ManagerRequest::Cancel(number) => {
                let Some(job) = self.jobs.get_mut(&number) else {
                    // It could not be started.
                    return self.tell(number, JobState::Done, "the job was not started".to_owned());
                };
                job.cancelled = true;
                let id = job.id.clone();
                if let Some(manager) = &mut self.manager
                    && let Err(why) = manager.terminate(&id)
                {
                    // It may have ended by itself, which the next look shows.
                    self.news.send(JobUpdate::Log(format!("cancel: {why}")));
                }
            }
            ManagerRequest::Forget(number) => {
                if let (Some(job), Some(manager)) = (self.jobs.remove(&number), &mut self.manager)
                    && let Err(why) = manager.forget(&job.id)
                {
                    self.news.send(JobUpdate::Log(format!("forget: {why}")));
                }
            }
        }
    }

    fn start(&mut self, number: JobNumber, request: Box<JobRequest>) -> Result<(), ManagerError> {
        let manager = match &mut self.manager {
            Some(manager) => manager,
            None => self.manager.insert(self.target.open()?),
        };
        let mut job = request.job.clone();
        let program = job.program.rsplit('/').next().unwrap_or_default();
        // The guard finds the job by this name if this process ends before the job's number is known.
        let program = script::plain_name(program);
        job.name = format!("{program}.{}.{number}", std::process::id());
        let mut staged = None;
        if request.staging {
            job.program = manager.stage(&job.program, &job.directory)?;
            staged = Some(job.program.clone()).filter(|it| *it != request.job.program);
        }
        for line in options::add(&self.target, &request, &mut job) {
            self.news.send(JobUpdate::Log(line));
        }
        self.guard
            .note(&Note::Starts(number, self.target.clone(), job.name.clone()));
        let id = manager.submit(&job)?;
        self.guard.note(&Note::Has(number, id.clone()));
        self.news.send(JobUpdate::Log(format!(
            "job {number} was submitted with the id {id} to the resource manager {:?}",
            self.target
        )));
        let running = Running {
            id,
            request,
            state: JobState::Pending,
            missing: 0,
            staged,
            cancelled: false,
        };
        self.jobs.insert(number, running);
        Ok(())
    }

    fn tell(&mut self, number: JobNumber, state: JobState, words: String) {
        self.news.send(JobUpdate::Job(number, state, words));
    }

    fn look(&mut self) {
        let Some(manager) = &mut self.manager else {
            return;
        };
        let watched = self.jobs.iter().filter(|(_, job)| !is_over(job.state));
        let watched: Vec<(JobNumber, String)> = watched
            .map(|(number, job)| (*number, job.id.clone()))
            .collect();
        let ids: Vec<String> = watched.iter().map(|(_, id)| id.clone()).collect();
        let found = match manager.look_at(&ids) {
            Ok(found) => found,
            Err(why) => return self.news.send(JobUpdate::Log(format!("look: {why}"))),
        };
        for (number, id) in watched {
            self.take(number, found.get(&id));
        }
    }

    /// Updates a job from a query; `found` is `None` if the manager did not list the job.
    fn take(&mut self, number: JobNumber, found: Option<&Job>) {
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        let (state, words) = match found {
            Some(found) => {
                job.missing = 0;
                state_of(found)
            }
            None => {
                job.missing += 1;
                if job.missing < MISSING_MAX {
                    return;
                }
                (
                    JobState::Done,
                    "the resource manager no longer reports the job".to_owned(),
                )
            }
        };
        if state == job.state {
            return;
        }
        job.state = state;
        self.pause = PAUSE_MIN;
        if is_over(state) {
            self.end(number, found);
        }
        self.tell(number, state, words);
    }

    /// Copies the output of an ended job to the client's files and removes its staged executable, before its end is
    /// reported.
    fn end(&mut self, number: JobNumber, found: Option<&Job>) {
        self.guard.note(&Note::Over(number));
        let (Some(job), Some(manager)) = (self.jobs.get(&number), &mut self.manager) else {
            return;
        };
        let mut complaints = Vec::new();
        // One that its manager would still start, once someone has cleared its error.
        let is_left = |it: &Job| {
            it.state() == Some(states::Job::Error) && !it.attributes.contains_key(id::END_TIME)
        };
        if found.is_some_and(is_left) {
            let _ = manager.terminate(&job.id);
        }
        let request = &job.request;
        for (path, errors) in [(&request.output, false), (&request.errors, true)] {
            let (Some(path), Some(found)) = (path, found) else {
                continue;
            };
            if self.target.writes_files() {
                continue;
            }
            // The client has made the file, or names one.
            let opened = files::open_to_write(path.as_ref(), Writing::Anew);
            let copied = opened
                .map_err(ManagerError::system(path))
                .and_then(|mut file| manager.copy_output(found, errors, &mut file));
            complaints.extend(copied.err().map(|why| format!("output: {why}")));
        }
        if let Some(staged) = &job.staged {
            let removed = manager.unstage(staged);
            complaints.extend(removed.err().map(|why| format!("staged executable: {why}")));
        }
        for line in complaints {
            self.news.send(JobUpdate::Log(line));
        }
    }
}

fn is_over(state: JobState) -> bool {
    matches!(state, JobState::Done | JobState::Failed)
}

/// The state of a job as the manager reports it, with its message.
fn state_of(job: &Job) -> (JobState, String) {
    let value = |id: &str| job.attributes.get(id).map_or("", String::as_str);
    let number = |id| value(id).parse::<i64>().unwrap_or(0);
    let words = value(id::JOB_STATUS_MESSAGE).to_owned();
    match job.state() {
        Some(states::Job::Running | states::Job::Suspended) => (JobState::Active, words),
        Some(states::Job::Terminated) => {
            let signalled = job.processes.iter().any(|process| {
                snapshot::state(&process.attributes) == Some(states::Process::Signalled)
            });
            let failed = number(id::EXIT_CODE) != 0 || number(id::EXIT_SIGNAL) != 0 || signalled;
            match failed {
                true => {
                    let code = number(id::EXIT_CODE);
                    (JobState::Failed, format!("exit code {code} {words}"))
                }
                false => (JobState::Done, words),
            }
        }
        Some(states::Job::Error) => (JobState::Failed, words),
        _ => (JobState::Pending, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_pause_is_at_most_the_shortest_polling_interval() {
        for (asked, seconds) in [
            (&[][..], 2),
            (&[0, 0], 2),
            (&[0, 7], 7),
            (&[30, 7, 0], 7),
            (&[1_000_000], 3600),
        ] {
            let pause = pause_max(asked.iter().copied());
            assert_eq!(pause, Duration::from_secs(seconds), "{asked:?}");
        }
    }
}
